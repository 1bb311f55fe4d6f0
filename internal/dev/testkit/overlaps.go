package testkit

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// exchange is one request that a test sent, from before it was sent until it was answered.
type exchange struct {
	operation  string
	began, end time.Time
}

// exchanges is what each test has sent, by the test's name without those of its subtests. It belongs to the package since
// it is asked for when the tests are over.
var exchanges struct {
	sync.Mutex
	byTest map[string][]exchange
}

// noteExchange remembers a request of a test under the operation that the contract has for it.
func noteExchange(test string, r *http.Request, began time.Time) {
	doc, err := contract()
	if err != nil {
		return
	}
	item := pathItem(doc, r.URL.EscapedPath())
	if item == nil || item.Operations()[r.Method] == nil {
		return
	}
	root, _, _ := strings.Cut(test, "/")
	exchanges.Lock()
	defer exchanges.Unlock()
	if exchanges.byTest == nil {
		exchanges.byTest = map[string][]exchange{}
	}
	sent := exchange{item.Operations()[r.Method].OperationID, began, time.Now()}
	exchanges.byTest[root] = append(exchanges.byTest[root], sent)
}

// Overlapped tells whether a test that has ended sent two operations at once. A test that has sent nothing has not run:
// it has not failed to. An operation that no request can ask for, a job, is not looked for.
func Overlapped(test, one, other string) error {
	exchanges.Lock()
	defer exchanges.Unlock()
	all := exchanges.byTest[test]
	if len(all) == 0 {
		return nil
	}
	of := func(operation string) (sent []exchange) {
		for _, e := range all {
			if e.operation == operation {
				sent = append(sent, e)
			}
		}
		return sent
	}
	for _, operation := range []string{one, other} {
		if callable(operation) && len(of(operation)) == 0 {
			return fmt.Errorf("%s never sends %s", test, operation)
		}
	}
	if !callable(one) || !callable(other) {
		return nil
	}
	for _, a := range of(one) {
		if slices.ContainsFunc(of(other), func(b exchange) bool {
			return a != b && a.began.Before(b.end) && b.began.Before(a.end)
		}) {
			return nil
		}
	}
	return fmt.Errorf("%s sends %s and %s, and never both at once", test, one, other)
}

// callable tells whether the callers of a test can ask for an operation. The events of the provider come from the sandbox.
func callable(operation string) bool {
	doc, err := contract()
	if err != nil {
		return false
	}
	for _, item := range doc.Paths.Map() {
		for _, o := range item.Operations() {
			if o.OperationID == operation && len((*o.Security)[0]["oauth2"]) > 0 {
				return true
			}
		}
	}
	return false
}
