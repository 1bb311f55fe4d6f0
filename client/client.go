// Package client calls the order service from Go, on the generated client, and survives what a network does.
//
//   - It makes an Idempotency-Key for each keyed call, or takes the caller's own (WithKey).
//   - It sends a request again, with the same key and the same bytes, when that is safe: the answer was lost, or it was
//     408, 429, 502, 503, 504 or 409 idempotency_key_in_progress. It waits as Retry-After asks, else longer each time, and ends
//     within the context's deadline, or after DefaultLimit.
//   - It hands out ETags and carries them back; Update reads, changes and writes, and reads again when another client was
//     faster.
//   - Every refusal is a *Problem. A call that got no final answer is a *GaveUp: its outcome is unknown, and it holds the
//     key with which to go on.
package client

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// DefaultLimit bounds a call, with all its attempts, whose context has no deadline.
	DefaultLimit = 2 * time.Minute
	// DefaultAttemptTimeout bounds one attempt. It is longer than the service's own 30 s, so that it is the service that
	// gives an answer.
	DefaultAttemptTimeout = 40 * time.Second
)

// TokenSource returns an access token. It is called before every attempt, since a call may outlive a token, so it
// should cache the token until shortly before its expiry. Its error ends the call.
type TokenSource func(ctx context.Context) (string, error)

// StaticToken is the source of one token.
func StaticToken(token string) TokenSource {
	return func(context.Context) (string, error) { return token, nil }
}

// Client calls one service as one caller. It is safe for concurrent use.
type Client struct {
	base    string
	token   TokenSource
	http    *http.Client
	limit   time.Duration
	attempt time.Duration
}

// Option configures a Client.
type Option func(*Client)

// WithHTTPClient sets the HTTP client; the default is http.DefaultClient.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithLimit replaces DefaultLimit.
func WithLimit(d time.Duration) Option { return func(c *Client) { c.limit = d } }

// WithAttemptTimeout replaces DefaultAttemptTimeout.
func WithAttemptTimeout(d time.Duration) Option { return func(c *Client) { c.attempt = d } }

// New makes a Client of the service at baseURL.
func New(baseURL string, token TokenSource, options ...Option) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("client: the base URL must be an absolute http or https URL")
	}
	if token == nil {
		return nil, errors.New("client: a TokenSource is required")
	}
	c := &Client{base: strings.TrimSuffix(u.String(), "/") + "/", token: token}
	for _, o := range options {
		o(c)
	}
	c.http = cmp.Or(c.http, http.DefaultClient)
	c.limit, c.attempt = cmp.Or(c.limit, DefaultLimit), cmp.Or(c.attempt, DefaultAttemptTimeout)
	return c, nil
}

// ETag is the opaque version of a resource in an answer. Send it back unchanged.
type ETag string

// Answer is the result of a successful call.
type Answer[T any] struct {
	Value    T
	ETag     ETag   // empty where the contract has none
	Location string // of what was created or accepted, where the contract says so
	// Replayed: this attempt changed nothing, because an earlier one had done it already.
	Replayed bool

	unsure bool // an earlier attempt of this call may have been applied
}
