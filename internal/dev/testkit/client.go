package testkit

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// AllScopes is every scope but orders:admin.
const AllScopes = "orders:read orders:write orders:fulfil orders:refund catalog:read catalog:write"

// Caller sends requests as one actor.
type Caller struct {
	t     testing.TB
	s     *Service
	Token string
	HTTP  *http.Client
}

// As returns a caller of tenant default with AllScopes.
func (s *Service) As(t testing.TB, actor string) *Caller {
	t.Helper()
	return s.AsOf(t, actor, "default", AllScopes)
}

// AsOf returns a caller of any tenant with any scopes. Every answer that it gets is held to the contract.
func (s *Service) AsOf(t testing.TB, actor, tenant, scopes string) *Caller {
	t.Helper()
	token, err := s.Sandbox.Token(actor, tenant, scopes, time.Hour)
	require.NoError(t, err)
	return &Caller{t: t, s: s, Token: token, HTTP: checkedClient(t)}
}

func checkedClient(t testing.TB) *http.Client {
	return &http.Client{Timeout: Wait, Transport: Checked(t, http.DefaultTransport)}
}

// Answer is a response, read whole.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Code is the problem code of an error, or empty.
func (a Answer) Code() string { return a.Text("code") }

// Text is a string member of the body, or empty. Nested members are separated by dots.
func (a Answer) Text(path string) string { s, _ := a.value(path).(string); return s }

// Number is a number member of the body, or 0.
func (a Answer) Number(path string) int64 {
	n, _ := a.value(path).(json.Number)
	i, _ := n.Int64()
	return i
}

func (a Answer) value(path string) any {
	d := json.NewDecoder(bytes.NewReader(a.Body))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	for name := range strings.SplitSeq(path, ".") {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// Try sends a request and returns the error of a lost answer. headers are pairs of name and value.
func (c *Caller) Try(method, path, body string, headers ...string) (Answer, error) {
	r, err := http.NewRequest(method, c.s.URL+path, strings.NewReader(body))
	require.NoError(c.t, err)
	r.Header.Set("Authorization", "Bearer "+c.Token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	response, err := c.HTTP.Do(r)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	return Answer{response.StatusCode, response.Header, raw}, err
}

// Do sends a request that must be answered.
func (c *Caller) Do(method, path, body string, headers ...string) Answer {
	c.t.Helper()
	a, err := c.Try(method, path, body, headers...)
	require.NoError(c.t, err)
	return a
}

// Get reads a path.
func (c *Caller) Get(path string, headers ...string) Answer {
	c.t.Helper()
	return c.Do(http.MethodGet, path, "", headers...)
}

// Address is a valid shipping address.
const Address = `{"name":"Alice Ames","line1":"1 High Street","city":"Berlin","postal_code":"10115","country":"DE"}`

// OrderBody is a valid order of tenant default's catalogue: pairs of sku and quantity, such as "TEA-001", "2".
func OrderBody(method string, lines ...string) string {
	var items []string
	for i := 0; i+1 < len(lines); i += 2 {
		items = append(items, `{"sku":"`+lines[i]+`","quantity":`+lines[i+1]+`}`)
	}
	return `{"currency":"EUR","lines":[` + strings.Join(items, ",") + `],"shipping_address":` + Address +
		`,"payment_method":"` + method + `"}`
}

// Place places an order with a key; it must be accepted. It returns the order's id.
func (c *Caller) Place(key, body string) string {
	c.t.Helper()
	a := c.Do(http.MethodPost, "/v1/orders", body, "Idempotency-Key", key)
	require.Equal(c.t, http.StatusCreated, a.Status, string(a.Body))
	return a.Text("id")
}

// PaymentStatus waits until the payment of an order has the status.
func (c *Caller) PaymentStatus(order, status string) Answer {
	c.t.Helper()
	var a Answer
	Eventually(c.t, "payment "+status, func() bool {
		a = c.Get("/v1/orders/" + order + "/payment")
		return a.Text("status") == status
	})
	return a
}
