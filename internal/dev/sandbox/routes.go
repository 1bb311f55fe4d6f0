package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

const index = `A stand-in for the Stripe endpoints of the order service. Nothing here moves real money.

Stripe (Authorization: Bearer sk_test_…)
  POST /v1/payment_intents              create an intent for a test payment method
  POST /v1/payment_intents/{id}/confirm charge it
  POST /v1/payment_intents/{id}/cancel
  GET  /v1/payment_intents, /v1/payment_intents/{id}
  GET  /v1/payment_intents/search       ?query=metadata['order_id']:'…', a minute behind
  POST /v1/refunds
  GET  /v1/refunds, /v1/refunds/{id}
  GET  /v1/events

Identity
  POST /token                           {"sub","tenant","scope","expires_in"}
  GET  /.well-known/jwks.json

Looking and breaking
  GET  /ledger                          the money that moved or tried to
  GET  /attempts                        every POST that arrived
  GET  /deliveries                      every POST of an event that was made
  GET, PUT, DELETE /faults              {"rules":[{"operation":"charge","kind":"drop","times":1}]}
  GET  /livez
`

// Handler returns all of the sandbox as one handler.
func (s *Sandbox) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/payment_intents", s.endpoint(OpCreateIntent, s.write(parseCreate)))
	mux.Handle("POST /v1/payment_intents/{id}/confirm", s.endpoint(OpConfirmIntent, s.write(parseConfirm)))
	mux.Handle("POST /v1/payment_intents/{id}/cancel", s.endpoint(OpCancelIntent, s.write(parseCancel)))
	mux.Handle("GET /v1/payment_intents", s.endpoint(OpList, s.read(s.listIntents)))
	mux.Handle("GET /v1/payment_intents/search", s.endpoint(OpSearch, s.read(s.searchIntents)))
	mux.Handle("GET /v1/payment_intents/{id}", s.endpoint(OpRetrieveIntent, s.read(s.getIntent)))
	mux.Handle("POST /v1/refunds", s.endpoint(OpRefund, s.write(parseRefund)))
	mux.Handle("GET /v1/refunds", s.endpoint(OpList, s.read(s.listRefunds)))
	mux.Handle("GET /v1/refunds/{id}", s.endpoint(OpList, s.read(s.getRefund)))
	mux.Handle("GET /v1/events", s.endpoint(OpList, s.read(s.listEvents)))
	mux.HandleFunc("/v1/", unknownURL)

	mux.HandleFunc("POST /token", s.postToken)
	mux.HandleFunc("GET /.well-known/jwks.json", show(s.PublicKeys))

	mux.HandleFunc("GET /ledger", show(s.Ledger))
	mux.HandleFunc("GET /attempts", show(s.Attempts))
	mux.HandleFunc("GET /faults", show(s.faultsLeft))
	mux.HandleFunc("PUT /faults", s.putFaults)
	mux.HandleFunc("DELETE /faults", s.deleteFaults)
	mux.HandleFunc("GET /deliveries", show(s.Deliveries))
	mux.HandleFunc("GET /livez", text("ok\n"))
	mux.HandleFunc("GET /{$}", text(index))
	return mux
}

// unknownURL answers as Stripe does to an address that it does not serve, or not by this method.
func unknownURL(w http.ResponseWriter, r *http.Request) {
	e := invalid("", "", fmt.Sprintf("Unrecognized request URL (%s: %s).", r.Method, r.URL.Path))
	e.status = http.StatusNotFound
	writeJSON(w, e.status, map[string]*apiError{"error": e})
}

// show answers with what get returns, as JSON.
func show[T any](get func() T) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, get()) }
}

func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, s)
	}
}

// readJSON reads one JSON value and refuses unknown members and whatever follows.
func readJSON(w http.ResponseWriter, r *http.Request, v any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("the body is not the JSON that is expected: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the body goes on after its JSON value")
	}
	return nil
}

// writeProblem refuses a request to the sandbox's own endpoints.
func writeProblem(w http.ResponseWriter, err error) {
	writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // what fails here is the connection: the client has gone
}
