package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	headerKey         = "Idempotency-Key"
	headerIfMatch     = "If-Match"
	headerIfNoneMatch = "If-None-Match"
	// maxBody bounds an answer's body, in bytes; the largest valid answer is far smaller.
	maxBody = 8 << 20
)

// exchange is one call: its attempts, and the answer to the last of them.
type exchange struct {
	attempts int
	response *http.Response // nil: no answer came
	body     []byte
	final    bool // no further attempt would help
	err      error
	unsure   bool // an earlier attempt, or this one, may have been applied without our knowing
}

// Do makes Client an openapi.HttpRequestDoer, for what the generated client can do and this one does not show: it adds
// the token and tries again as every other call does. Whatever was answered last is the response.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	x, err := c.send(r)
	if x.response != nil {
		return x.response, nil
	}
	return nil, err
}

// send tries until the answer is final, or until the next attempt would begin past the deadline.
func (c *Client) send(r *http.Request) (exchange, error) {
	ctx := r.Context()
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.limit)
		defer cancel()
	}
	deadline, _ := ctx.Deadline()
	var x exchange
	pace := newPace(100*time.Millisecond, 10*time.Second)
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		x.err = c.try(ctx, r, &x)
		if x.err != nil && x.final {
			return struct{}{}, backoff.Permanent(x.err)
		}
		pace.ask(x.err)
		return struct{}{}, x.err
	}, backoff.WithBackOff(pace), backoff.WithMaxElapsedTime(max(time.Until(deadline), 1)))
	if err == nil || x.final && x.response != nil {
		return x, x.err
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(x.err, cause) {
		x.err = fmt.Errorf("%w, after %w", cause, x.err)
	}
	return x, &GaveUp{Key: r.Header.Get(headerKey), Attempts: x.attempts, Err: x.err}
}

// try makes one attempt. An answer counts once its body has come whole: until then it can still be lost.
func (c *Client) try(ctx context.Context, r *http.Request, x *exchange) error {
	ctx, cancel := context.WithTimeout(ctx, c.attempt)
	defer cancel()
	x.attempts, x.response = x.attempts+1, nil
	sent, err := c.prepare(ctx, r)
	if err != nil {
		x.final = true
		return err
	}
	response, err := c.http.Do(sent) //nolint:gosec // G704: where it goes is the caller's own choice
	if err == nil {
		x.body, err = readAll(response)
	}
	if err != nil {
		x.final, x.unsure = !repeatable(r) || hopeless(err), true
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(x.body))
	x.response = response
	if response.StatusCode < http.StatusBadRequest {
		return nil
	}
	p := problemOf(response.StatusCode, response.Header, x.body)
	x.final, x.unsure = !repeatable(r) || !p.passing(), x.unsure || p.unsure()
	return p
}

// prepare copies the request for one attempt: the same bytes and the same key, with a token that is valid now.
func (c *Client) prepare(ctx context.Context, r *http.Request) (*http.Request, error) {
	token, err := c.token(ctx)
	if err != nil {
		return nil, fmt.Errorf("access token: %w", err)
	}
	sent := r.Clone(ctx)
	sent.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	if r.GetBody != nil {
		if sent.Body, err = r.GetBody(); err != nil {
			return nil, fmt.Errorf("request body: %w", err)
		}
	}
	return sent, nil
}

// repeatable reports whether a request may be sent twice: it is a read, or it has an idempotency key, or a version that
// lets it be applied only once.
func repeatable(r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	guarded := r.Header.Get(headerKey) != "" || r.Header.Get(headerIfMatch) != "" || r.Header.Get(headerIfNoneMatch) != ""
	sameBytes := r.Body == nil || r.Body == http.NoBody || r.GetBody != nil
	return (reads || guarded) && sameBytes
}

// hopeless reports whether every later attempt would fail in the same way.
func hopeless(err error) bool {
	var untrusted *tls.CertificateVerificationError
	return errors.As(err, &untrusted) || errors.Is(err, errTooLarge)
}

var errTooLarge = errors.New("the answer is too large")

func readAll(response *http.Response) ([]byte, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if len(body) > maxBody {
		return nil, errTooLarge
	}
	return body, err
}

// pace is the time between attempts: exponential backoff with jitter, never shorter than Retry-After.
type pace struct {
	*backoff.ExponentialBackOff
	asked time.Duration
}

func newPace(first, most time.Duration) *pace {
	exponential := backoff.NewExponentialBackOff() // half to one and a half of each interval
	exponential.InitialInterval, exponential.Multiplier, exponential.MaxInterval = first, 2, most
	return &pace{ExponentialBackOff: exponential}
}

func (p *pace) ask(err error) {
	p.asked = 0
	if problem, ok := errors.AsType[*Problem](err); ok {
		p.asked = problem.RetryAfter
	}
}

// NextBackOff implements backoff.BackOff. It adds jitter of up to a quarter to Retry-After, so that clients do not all
// retry at the same time.
func (p *pace) NextBackOff() time.Duration {
	return max(p.ExponentialBackOff.NextBackOff(), p.asked+rand.N(p.asked/4+1)) //nolint:gosec // G404: jitter, no secret
}

// maxRetryAfter bounds what is understood of a Retry-After: it ends every call, and a quarter more still is a Duration.
const maxRetryAfter = math.MaxInt32 * time.Second

// retryAfter reads Retry-After (RFC 9110, section 10.2.3): seconds, or a date, which counts from the answer's own Date,
// since the two clocks may differ. What is beyond maxRetryAfter is maxRetryAfter.
func retryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(seconds) * time.Second // of what is out of range, the largest
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	from, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		from = time.Now()
	}
	return min(max(0, until.Sub(from)), maxRetryAfter)
}
