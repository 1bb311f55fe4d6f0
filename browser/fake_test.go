package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// These types are the page's half of the lab's interface, written down a second time on purpose: what the page was
// built for. The tests against the running service hold both to each other.
type (
	scenario struct {
		ID      string `json:"id"`
		Title   string `json:"title"`
		Promise string `json:"promise"`
		Rules   []rule `json:"rules"`
		Links   []link `json:"links"`
		Knobs   []knob `json:"knobs"`
	}
	rule struct {
		ID   string `json:"id"`
		Text string `json:"text"`
	}
	link struct {
		Label string `json:"label"`
		Href  string `json:"href"`
	}
	knob struct {
		Name    string   `json:"name"`
		Label   string   `json:"label"`
		Min     int      `json:"min"`
		Max     int      `json:"max"`
		Default int      `json:"default"`
		Choices []choice `json:"choices,omitempty"`
	}
	choice struct {
		Value int    `json:"value"`
		Label string `json:"label"`
	}
	labRun struct {
		ID       string  `json:"id"`
		Scenario string  `json:"scenario"`
		State    string  `json:"state"`
		TookUS   int     `json:"took_us"`
		Lanes    []lane  `json:"lanes"`
		Items    []item  `json:"items"`
		Checks   []check `json:"checks"`
		Steps    []step  `json:"steps"`
	}
	lane struct {
		ID    string `json:"id"`
		Label string `json:"label"`
	}
	item struct {
		ID       string   `json:"id"`
		Kind     string   `json:"kind"`
		Lane     string   `json:"lane"`
		To       string   `json:"to,omitempty"`
		Name     string   `json:"name"`
		StartUS  int      `json:"start_us"`
		EndUS    int      `json:"end_us"`
		OK       bool     `json:"ok"`
		Parent   string   `json:"parent,omitempty"`
		Group    string   `json:"group,omitempty"`
		Detail   []detail `json:"detail,omitempty"`
		Request  string   `json:"request,omitempty"`
		Response string   `json:"response,omitempty"`
	}
	detail struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	check struct {
		Text string `json:"text"`
		OK   bool   `json:"ok"`
		Why  string `json:"why,omitempty"`
	}
	step struct {
		AtUS int    `json:"at_us"`
		Text string `json:"text"`
	}
)

// fake is a lab whose answers a test decides, under the content security policy that the page has to keep to.
type fake struct {
	scenarios func() (int, any)
	start     func() (int, any)
	run       func(id string) (int, any)
	gone      func() bool // whether connections are cut instead; nil: they are not
}

func (f fake) serve(t *testing.T) (url string) {
	t.Helper()
	files := http.StripPrefix("/lab/", http.FileServerFS(os.DirFS("../internal/dev/lab/page")))
	mux := http.NewServeMux()
	mux.Handle("GET /lab/", files)
	mux.HandleFunc("GET /lab/scenarios", func(w http.ResponseWriter, _ *http.Request) { answer(w)(f.scenarios()) })
	mux.HandleFunc("POST /lab/runs", func(w http.ResponseWriter, _ *http.Request) { answer(w)(f.start()) })
	mux.HandleFunc("GET /lab/runs/{id}", func(w http.ResponseWriter, r *http.Request) { answer(w)(f.run(r.PathValue("id"))) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.gone != nil && f.gone() {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'")
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/lab/"
}

func answer(w http.ResponseWriter) func(int, any) {
	return func(status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
}

var lanes = []lane{{"client", "Clients"}, {"api", "API"}, {"postgres", "PostgreSQL"}, {"outbox", "Outbox"}, {"worker", "Worker"}, {"provider", "Provider"}}

// duplicates makes a run in which so many clients send one request at once: the first does the work, the others wait. Each has
// eight items. Then a worker is killed, and another takes over after a long time in which nothing happens.
func duplicates(id string, clients int) labRun {
	r := labRun{ID: id, Scenario: "duplicates", State: "passed", Lanes: lanes, Checks: []check{
		{Text: "all were answered 201", OK: true}, {Text: "the provider's ledger has one charge", OK: true},
	}}
	for c := range clients {
		r.request(c)
	}
	at := 14_000 + clients*260 + 3000
	job := r.add(item{Kind: "span", Lane: "outbox", Name: "charge-order", StartUS: 13_900, EndUS: at + 5_212_000, OK: true})
	r.add(item{Kind: "message", Lane: "outbox", To: "worker", Name: "charge-order", StartUS: 13_900, EndUS: at, OK: true, Parent: job})
	work := r.add(item{Kind: "span", Lane: "worker", Name: "charge-order", StartUS: at, EndUS: at + 8000, OK: false})
	r.call(work, "POST /v1/payment_intents", at+1000)
	r.add(item{Kind: "mark", Lane: "worker", Name: "the worker is killed", StartUS: at + 8000, EndUS: at + 8000, OK: false, Parent: work})
	killed := at + 8000
	at += 5_200_000
	work = r.add(item{Kind: "span", Lane: "worker", Name: "charge-order", StartUS: at, EndUS: at + 9000, OK: true})
	r.call(work, "GET /v1/payment_intents/pi_1", at+1000)
	r.TookUS = at + 12_000
	r.Steps = []step{
		{0, fmt.Sprintf("%d clients send the same request with the same key", clients)},
		{killed, "the worker is killed"}, {at, "another worker takes the job over"},
	}
	return r
}

func (r *labRun) add(i item) (id string) {
	i.ID = fmt.Sprintf("i%d", len(r.Items)+1)
	r.Items = append(r.Items, i)
	return i.ID
}

func (r *labRun) request(client int) {
	group, at, done := fmt.Sprintf("alice %d", client+1), 900+client*41, 14_000+client*260
	sent := r.add(item{
		Kind: "message", Lane: "client", To: "api", Name: "POST /v1/orders", StartUS: at, EndUS: done + 900, OK: true, Group: group,
		Request:  "POST /v1/orders HTTP/1.1\r\nIdempotency-Key: cart-3\r\n\r\n" + `{"currency":"EUR","lines":[{"sku":"TEA-001","quantity":1}]}`,
		Response: "HTTP/1.1 201 Created\r\n\r\n" + `{"id":"0199","status":"open"}`,
	})
	served := r.add(item{Kind: "span", Lane: "api", Name: "place-order", StartUS: at + 300, EndUS: done + 500, OK: true, Parent: sent})
	tx := r.add(item{Kind: "span", Lane: "postgres", Name: "transaction", StartUS: at + 500, EndUS: done, OK: true, Parent: served})
	from := at + 520
	for i, name := range []string{"begin", "take the turn of the key", "update stock, insert orders", "commit"} {
		to := []int{at + 700, done - 900, done - 300, done}[i]
		r.add(item{Kind: "span", Lane: "postgres", Name: name, StartUS: from, EndUS: to, OK: true, Parent: tx, Request: name})
		from = to
	}
	r.add(item{Kind: "span", Lane: "postgres", Name: "waits for a lock", StartUS: at + 800, EndUS: done - 950, OK: true, Group: "api",
		Detail: []detail{{"blocked by", "session 1"}}})
}

func (r *labRun) call(work, name string, at int) {
	sent := r.add(item{Kind: "message", Lane: "worker", To: "provider", Name: name, StartUS: at, EndUS: at + 2000, OK: true, Parent: work,
		Request: name + " HTTP/1.1", Response: "HTTP/1.1 200 OK"})
	r.add(item{Kind: "span", Lane: "provider", Name: name, StartUS: at + 400, EndUS: at + 1600, OK: true, Parent: sent})
}

// shop is a lab with one run of each of its scenarios, all of which end at once.
func shop(r labRun) fake {
	return fake{
		scenarios: func() (int, any) {
			return http.StatusOK, map[string]any{"scenarios": []scenario{
				{
					ID: "duplicates", Title: "Duplicates at once", Promise: "One of them works, the others get its answer, byte for byte.",
					Rules: []rule{{"scope-client-keys", "A key belongs to its tenant, its actor and its operation."}, {"replay-first-answer", "A retry gets the first accepted answer."}},
					Links: []link{{"pipeline.go", "/lab/source/internal/app/pipeline.go"}, {"TestDuplicates", "/lab/source/internal/e2e/idempotency_duplicates_test.go"}},
					Knobs: []knob{{Name: "duplicates", Label: "Duplicates", Min: 2, Max: 50, Default: 20}},
				},
				{
					ID: "crash", Title: "Worker killed in mid-charge", Promise: "Nothing is lost and nothing is charged twice.",
					Rules: []rule{}, Links: []link{}, Knobs: []knob{{Name: "crash_at", Label: "Kill it", Min: 1, Max: 2, Default: 1, Choices: []choice{{1, "after the intent is created"}, {2, "after the charge"}}}},
				},
			}}
		},
		start: func() (int, any) { return http.StatusCreated, map[string]string{"id": r.ID} },
		run: func(id string) (int, any) {
			if id != r.ID {
				return problem(http.StatusNotFound, "There is no such run.")
			}
			return http.StatusOK, r
		},
	}
}

func problem(status int, detail string) (int, any) {
	return status, map[string]any{"title": http.StatusText(status), "detail": detail, "status": status}
}

// hostile is text that would do something if it were read as HTML.
var hostile = `<img src=x onerror="document.title='broken in'">` + strings.Repeat("long ", 40)
