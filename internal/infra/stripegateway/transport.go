package stripegateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// maxAnswer bounds the body of an answer, in bytes. A page of 100 events has a few hundred thousand.
const maxAnswer = 1 << 20

var (
	errTooLarge = errors.New("provider's answer is too large")
	errRedirect = errors.New("provider answered with a redirect, which is not followed")
)

// transport bounds the provider's responses, because stripe-go reads bodies without a limit and quotes them in its
// errors. A redirect is an error, since following it would send the secret key elsewhere.
type transport struct{ next http.RoundTripper }

func newTransport(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return transport{next}
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r, err := withLength(r)
	if err != nil {
		return nil, err
	}
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := readBounded(response.Body)
	switch status := response.StatusCode; {
	case status >= http.StatusBadRequest:
		body = codesOnly(body) // the status is valid even if the body was cut off
	case err != nil:
		return nil, err
	case status >= http.StatusMultipleChoices:
		return nil, errRedirect
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return response, nil
}

// withLength tells how long a request's body is. stripe-go leaves it open, so net/http would send the few bytes in chunks,
// and look at the body from a goroutine of its own first.
func withLength(r *http.Request) (*http.Request, error) {
	if r.Body == nil || r.ContentLength != 0 {
		return r, nil
	}
	body, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	r = r.WithContext(r.Context()) // a copy: a transport leaves its caller's request alone
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if len(body) == 0 {
		r.Body = http.NoBody
	}
	return r, nil
}

func readBounded(body io.ReadCloser) ([]byte, error) {
	read, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	_ = body.Close() // the body was already read
	switch {
	case err != nil:
		return nil, err
	case len(read) > maxAnswer:
		return nil, errTooLarge
	}
	return read, nil
}

// codesOnly returns the body of an error answer with only its codes: other fields can contain a person, a card or a
// secret.
func codesOnly(body []byte) []byte {
	type codes struct {
		Type        string `json:"type"`
		Code        string `json:"code,omitempty"`
		DeclineCode string `json:"decline_code,omitempty"`
	}
	var answer struct {
		Error codes `json:"error"`
	}
	_ = json.Unmarshal(body, &answer) // a body that is not a Stripe error has no codes
	e := &answer.Error
	e.Type, e.Code, e.DeclineCode = token(e.Type), token(e.Code), token(e.DeclineCode)
	safe, _ := json.Marshal(answer) // three strings marshal
	return safe
}
