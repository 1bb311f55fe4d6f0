package stripegateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Ensure an answer without an end is given up after a bounded number of bytes, whatever its status.
func TestEndlessAnswers(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 402, 500} {
		var sent atomic.Int64
		p := startProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			chunk := []byte(strings.Repeat(" ", 64<<10))
			for sent.Load() < 1<<30 {
				n, err := w.Write(chunk)
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		})
		for _, c := range []string{"confirm", "retrieve", "refund"} {
			requireSafe(t, call(t.Context(), p.gateway(time.Minute), c))
		}
		require.Less(t, sent.Load(), int64(100<<20), "three calls, and what the sockets buffer")
	}
}

// Ensure a redirect is an error and nothing is sent to where it points: not the secret key above all.
func TestRedirectsAreRefused(t *testing.T) {
	t.Parallel()
	elsewhere := answers(t, 200, intentJSON())
	for _, status := range []int{300, 301, 302, 303, 304, 307, 308} {
		p := startProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", elsewhere.url+"/v1/payment_intents/pi_1")
			reply(w, status, intentJSON())
		})
		for _, c := range allCalls() {
			require.ErrorContains(t, call(t.Context(), p.gateway(time.Minute), c), "redirect", status)
		}
	}
	require.Empty(t, elsewhere.requests())
}

// Ensure what is no HTTP at all is not quoted either.
func TestAnswersThatAreNoHTTP(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"4242 4242 4242 4242 Luck\r\n\r\n",
		"HTTP/1.1 4242 Luck\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 4242\r\n\r\n{\"id\":\"pi_1_secret\"",
		"HTTP/1.1 200 OK\r\nLuck 4242\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4242 Luck",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n4242",
		"HTTP/1.1 500 Luck with 4242\r\nRequest-Id: 4242 4242\r\nContent-Length: 0\r\n\r\n",
	} {
		p := startProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(*keepStatus).ResponseWriter.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, raw)
				_ = conn.Close()
			}
		})
		for _, c := range allCalls() {
			requireSafe(t, call(t.Context(), p.gateway(time.Minute), c))
		}
	}
}

// Ensure what is no list, or has strange items, is an error and never an empty list. (stripe-go's own lists panic on
// null.)
func TestStrangeLists(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{}`, `null`, `[]`, `{"object":"list"}`, `{"object":"list","data":null}`, `{"data":[]}`, intentJSON(),
		list(`null`), list(`[]`), list(`7`), `{"object":"list","data":{}}`,
	} {
		for _, c := range reads[1:] {
			requireSafe(t, call(t.Context(), answers(t, 200, body).gateway(time.Minute), c))
		}
	}
	endless := `{"object":"list","data":[],"has_more":true}`
	for _, body := range []string{endless, list(`{"id":"Luck 4242"}`)} {
		for _, c := range []string{"list of refunds", "intents", "refunds", "events"} {
			requireSafe(t, call(t.Context(), answers(t, 200, body).gateway(time.Minute), c))
		}
	}
	event := list(`{"id":"evt_1","data":{"object":{"object":"payment_intent","id":"Luck 4242"}}}`)
	requireSafe(t, call(t.Context(), answers(t, 200, event).gateway(time.Minute), "events"))
}

// Ensure a list that does not end is given up.
func TestListsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	endless := func(item string) *provider {
		return answers(t, 200, fmt.Sprintf(`{"object":"list","data":[%s],"has_more":true,"next_page":"p"}`, item))
	}
	for c, p := range map[string]*provider{
		"search": endless(intentJSON()), "list of refunds": endless(refundJSON()),
	} {
		require.ErrorContains(t, call(t.Context(), p.gateway(time.Minute), c), "does not end")
		require.Len(t, p.requests(), 100)
	}
}
