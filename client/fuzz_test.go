package client

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzProblem: whatever answers in the service's place is a problem with the status, and the next attempt comes no sooner
// than it asks.
func FuzzProblem(f *testing.F) {
	for _, after := range []string{
		"", "0", "1", "-1", "+1", "3600", "2147483648", "99999999999999999999", "1.5", "Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", "soon", "1, 2",
	} {
		f.Add(503, after, "Tue, 01 Dec 2026 00:00:00 GMT", []byte(`{"code":"try_again","title":"Try again"}`))
		f.Add(409, after, "", []byte(`{"code":"idempotency_key_in_progress","errors":[{"field":"a"}]}`))
		f.Add(502, after, "x", []byte(`<html>`))
	}
	f.Fuzz(func(t *testing.T, status int, after, date string, body []byte) {
		p := problemOf(status, http.Header{"Retry-After": {after}, "Date": {date}}, body)
		require.Equal(t, status, p.Status)
		require.GreaterOrEqual(t, p.RetryAfter, time.Duration(0))
		if seconds := strings.TrimLeft(after, "0"); seconds != "" && strings.Trim(seconds, "0123456789") == "" {
			require.GreaterOrEqual(t, p.RetryAfter, time.Second)
		}
		require.NotEmpty(t, p.Error())
		require.False(t, p.Code != "" && !json.Valid(body))
		pace := newPace(time.Millisecond, 10*time.Millisecond)
		pace.ask(p)
		require.GreaterOrEqual(t, pace.NextBackOff(), p.RetryAfter)
	})
}
