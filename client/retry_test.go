package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/client"
	"example.com/orders/client/openapi"
)

// script answers the attempts of a call in turn, and notes what each of them sent and when. Time is synctest's: it
// stands still but for the waits of the client, so they can be told exactly.
type script struct {
	t       *testing.T
	answers []answer
	sent    []sent
}

type answer struct {
	status int // 0: the connection breaks
	code   string
	header http.Header
	body   string
	hang   bool // no answer comes until the attempt is given up
}

type sent struct {
	at               time.Time
	key, token, body string
}

const receipt = `{"id":"019ae6a0-58c0-7b1e-9d3c-3f3a5b1f6c42","status":"open","total":{"amount":1,"currency":"EUR"}}`

func placed() answer { return answer{status: http.StatusCreated, body: receipt} }

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		require.NoError(s.t, err)
	}
	s.sent = append(s.sent, sent{time.Now(), r.Header.Get("Idempotency-Key"), r.Header.Get("Authorization"), string(body)})
	require.LessOrEqual(s.t, len(s.sent), len(s.answers), "an attempt too many")
	a := s.answers[len(s.sent)-1]
	switch {
	case a.hang:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case a.status == 0:
		return nil, io.ErrUnexpectedEOF
	}
	response := &http.Response{StatusCode: a.status, Header: http.Header{}, Request: r}
	if a.header != nil {
		response.Header = a.header
	}
	if a.code != "" {
		a.body = `{"code":"` + a.code + `","status":0,"title":"t","type":"t"}`
	}
	response.Body = io.NopCloser(strings.NewReader(a.body))
	return response, nil
}

// wait is how long the client waited before an attempt, counted from 0.
func (s *script) wait(attempt int) time.Duration { return s.sent[attempt].at.Sub(s.sent[attempt-1].at) }

// run plays a script in synctest's time.
func run(t *testing.T, answers []answer, use func(t *testing.T, c *client.Client, s *script)) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, answers: answers}
		n := 0
		token := func(context.Context) (string, error) { n++; return "token-" + string(rune('0'+n)), nil }
		c, err := client.New("http://orders.test/base", token, client.WithHTTPClient(&http.Client{Transport: s}))
		require.NoError(t, err)
		use(t, c, s)
	})
}

func in(d time.Duration) http.Header {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) // a server whose clock differs from ours
	return http.Header{"Date": {now.Format(http.TimeFormat)}, "Retry-After": {now.Add(d).Format(http.TimeFormat)}}
}

func seconds(n string) http.Header { return http.Header{"Retry-After": {n}} }

// Ensure what may pass is tried again: with the same key and the same bytes, and with a token asked for anew.
func TestRetriesWhatMayPass(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]answer{
		"lost answer":     {},
		"slow body":       {status: http.StatusRequestTimeout, code: "request_timeout"},
		"rate limited":    {status: http.StatusTooManyRequests},
		"bad gateway":     {status: http.StatusBadGateway, body: "<html>"},
		"gateway timeout": {status: http.StatusGatewayTimeout},
		"unavailable":     {status: http.StatusServiceUnavailable},
		"try again":       {status: http.StatusServiceUnavailable, code: "try_again"},
		"outcome unknown": {status: http.StatusServiceUnavailable, code: "outcome_unknown"},
		"in progress":     {status: http.StatusConflict, code: "idempotency_key_in_progress"},
	} {
		run(t, []answer{a, a, placed()}, func(t *testing.T, c *client.Client, s *script) {
			_, err := c.PlaceOrder(t.Context(), teas(2))
			require.NoError(t, err, name)
			require.Len(t, s.sent, 3, name)
			for i, one := range s.sent {
				require.Equal(t, s.sent[0].key, one.key)
				require.Equal(t, s.sent[0].body, one.body)
				require.Equal(t, "Bearer token-"+string(rune('1'+i)), one.token)
			}
			require.NoError(t, uuid.Validate(s.sent[0].key))
		})
	}
}

// Ensure an answer of which only a part arrives is lost: the call tries again.
func TestHalfAnAnswerIsLost(t *testing.T) {
	t.Parallel()
	var attempts atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(receipt)))
		w.WriteHeader(http.StatusCreated)
		if attempts.Add(1) < 3 {
			_, _ = io.WriteString(w, receipt[:20]) // and the connection ends here
			return
		}
		_, _ = io.WriteString(w, receipt)
	}))
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, client.StaticToken("t"), client.WithHTTPClient(server.Client()))
	require.NoError(t, err)
	order, err := c.PlaceOrder(t.Context(), teas(1))
	require.NoError(t, err)
	require.EqualValues(t, 3, attempts.Load())
	require.Equal(t, openapi.OrderStatusOpen, order.Value.Status)
}

// Ensure a final answer is not tried again, whatever it is.
func TestLeavesFinalAnswersAlone(t *testing.T) {
	t.Parallel()
	for code, status := range map[string]int{
		"validation_failed": http.StatusBadRequest, "unauthenticated": http.StatusUnauthorized, "forbidden": http.StatusForbidden,
		"order_not_found": http.StatusNotFound, "version_conflict": http.StatusConflict, "insufficient_stock": http.StatusConflict,
		"idempotency_key_reused": http.StatusUnprocessableEntity, "precondition_required": http.StatusPreconditionRequired,
		"internal_error": http.StatusInternalServerError,
	} {
		run(t, []answer{{status: status, code: code}}, func(t *testing.T, c *client.Client, _ *script) {
			_, err := c.PlaceOrder(t.Context(), teas(2))
			require.True(t, client.HasCode(err, openapi.ProblemCode(code)), "%s: %v", code, err)
			require.NotErrorAs(t, err, new(*client.GaveUp))
		})
	}
}

// Ensure a write without a key and without a version is never sent twice: nothing would tell the second from the first.
func TestUnguardedWritesAreSentOnce(t *testing.T) {
	t.Parallel()
	run(t, []answer{{}}, func(t *testing.T, c *client.Client, _ *script) {
		_, err := c.ShipOrder(t.Context(), uuid.New(), "", openapi.ShipOrderRequest{})
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})
}

// Ensure the waits are no shorter than Retry-After asks, in seconds and as a date, and hardly longer.
func TestHonoursRetryAfter(t *testing.T) {
	t.Parallel()
	busy := func(h http.Header) answer {
		return answer{status: http.StatusServiceUnavailable, code: "try_again", header: h}
	}
	answers := []answer{busy(seconds("7")), busy(in(40 * time.Second)), busy(seconds("nonsense")), busy(in(-time.Hour)), placed()}
	run(t, answers, func(t *testing.T, c *client.Client, s *script) {
		_, err := c.PlaceOrder(t.Context(), teas(1))
		require.NoError(t, err)
		require.GreaterOrEqual(t, s.wait(1), 7*time.Second)
		require.LessOrEqual(t, s.wait(1), 9*time.Second)
		require.GreaterOrEqual(t, s.wait(2), 40*time.Second)
		require.LessOrEqual(t, s.wait(2), 50*time.Second)
		require.Less(t, s.wait(3), 5*time.Second, "what cannot be read asks for nothing")
		require.Less(t, s.wait(4), 5*time.Second, "nor does the past")
	})
}

// Ensure the waits grow, with jitter, up to a bound.
func TestBacksOff(t *testing.T) {
	t.Parallel()
	run(t, append(make([]answer, 10), placed()), func(t *testing.T, c *client.Client, s *script) {
		_, err := c.PlaceOrder(t.Context(), teas(1))
		require.NoError(t, err)
		for i, interval := 1, 100*time.Millisecond; i <= 10; i, interval = i+1, min(2*interval, 10*time.Second) {
			require.GreaterOrEqual(t, s.wait(i), interval/2)
			require.LessOrEqual(t, s.wait(i), interval*3/2+1)
		}
	})
}

// Ensure a call gives up in time: at once where the next attempt would come past the deadline, and it says what the
// last answer was and which key to go on with.
func TestGivesUpWithinTheDeadline(t *testing.T) {
	t.Parallel()
	late := answer{status: http.StatusServiceUnavailable, code: "try_again", header: seconds("60")}
	run(t, []answer{late}, func(t *testing.T, c *client.Client, s *script) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		begun := time.Now()
		_, err := c.PlaceOrder(ctx, teas(1))
		var gaveUp *client.GaveUp
		require.ErrorAs(t, err, &gaveUp)
		require.Equal(t, client.GaveUp{Key: s.sent[0].key, Attempts: 1, Err: gaveUp.Err}, *gaveUp)
		require.True(t, client.HasCode(err, openapi.ProblemCodeTryAgain))
		require.Zero(t, time.Since(begun))
	})
	run(t, make([]answer, 100), func(t *testing.T, c *client.Client, _ *script) {
		begun := time.Now()
		_, err := c.GetOrder(t.Context(), uuid.New())
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.LessOrEqual(t, time.Since(begun), client.DefaultLimit, "a context without a deadline has a limit all the same")
		require.Greater(t, time.Since(begun), client.DefaultLimit/2)
	})
}

// Ensure an attempt that hangs ends, and another one follows; and that the caller's own end ends the call.
func TestHangingAttempts(t *testing.T) {
	t.Parallel()
	run(t, []answer{{hang: true}, placed()}, func(t *testing.T, c *client.Client, s *script) {
		_, err := c.PlaceOrder(t.Context(), teas(1))
		require.NoError(t, err)
		require.GreaterOrEqual(t, s.wait(1), client.DefaultAttemptTimeout)
	})
	run(t, []answer{{hang: true}}, func(t *testing.T, c *client.Client, s *script) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := c.PlaceOrder(ctx, teas(1))
		require.ErrorIs(t, err, context.Canceled)
		var gaveUp *client.GaveUp
		require.ErrorAs(t, err, &gaveUp)
		require.Equal(t, s.sent[0].key, gaveUp.Key)
	})
}

// Ensure a token that cannot be had ends the call, and that a lost attempt before it is not forgotten.
func TestTokenSourceFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, answers: []answer{{}}}
		broken := errors.New("the token server is on fire")
		token := func(context.Context) (string, error) {
			if len(s.sent) > 0 {
				return "", broken
			}
			return "good", nil
		}
		c, err := client.New("http://orders.test", token, client.WithHTTPClient(&http.Client{Transport: s}))
		require.NoError(t, err)
		_, err = c.PlaceOrder(t.Context(), teas(1))
		require.ErrorIs(t, err, broken)
		var gaveUp *client.GaveUp
		require.ErrorAs(t, err, &gaveUp)
		require.Equal(t, s.sent[0].key, gaveUp.Key)
	})
}

// Ensure the generated client, with a Client beneath it, tries again and gets the last answer whatever it was.
func TestBeneathTheGeneratedClient(t *testing.T) {
	t.Parallel()
	late := answer{status: http.StatusServiceUnavailable, code: "try_again", header: in(10 * time.Minute)}
	run(t, []answer{{}, {status: http.StatusNotModified}, late}, func(t *testing.T, c *client.Client, s *script) {
		raw, err := openapi.NewClient("http://orders.test", openapi.WithHTTPClient(c))
		require.NoError(t, err)
		known := &openapi.GetOrderParams{IfNoneMatch: new(`"AAAA"`)}
		r, err := raw.GetOrder(t.Context(), uuid.New(), known)
		require.NoError(t, err)
		require.Equal(t, http.StatusNotModified, r.StatusCode)
		require.NotEmpty(t, s.sent[1].token)
		r, err = raw.GetOrder(t.Context(), uuid.New(), known)
		require.NoError(t, err)
		require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Contains(t, string(body), "try_again")
	})
}

// Ensure a client that cannot work is not made.
func TestNewRefusesNonsense(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "orders.test", "ftp://orders.test", "http://", "http://%zz"} {
		_, err := client.New(base, client.StaticToken("t"))
		require.Error(t, err, base)
	}
	_, err := client.New("http://orders.test", nil)
	require.Error(t, err)
}
