package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"

	"example.com/orders/internal/app"
)

// render returns the function that turns a result into the response that is sent now and replayed later: a status, the
// headers that the use-case record declares, and a body. Nothing else is stored.
func render[R any](answer func(R) (status int, header replayHeader, body any)) func(R) (app.Reply, error) {
	return func(result R) (app.Reply, error) {
		status, header, body := answer(result)
		header.ContentType = mediaJSON
		encoded, err := json.Marshal(header)
		if err != nil {
			return app.Reply{}, fmt.Errorf("encode headers: %w", err)
		}
		raw, err := json.Marshal(body)
		if err != nil {
			return app.Reply{}, fmt.Errorf("encode body: %w", err)
		}
		return app.Reply{Status: status, Header: encoded, Body: append(raw, '\n')}, nil
	}
}

// replayHeader lists the headers that a stored response can have. Other headers cannot be replayed: no cookie, caching
// header, hop-by-hop header or token.
type replayHeader struct {
	ContentType string `json:"content_type"`
	Location    string `json:"location,omitempty"`
	ETag        string `json:"etag,omitempty"`
}

// reply writes a stored response. The first response and every replay use it.
type reply app.Outcome

func (o reply) write(w http.ResponseWriter) error {
	var stored replayHeader
	if err := json.Unmarshal(o.Header, &stored); err != nil {
		return fmt.Errorf("decode stored headers: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", stored.ContentType)
	if stored.Location != "" {
		h.Set("Location", stored.Location)
	}
	if stored.ETag != "" {
		h.Set("ETag", stored.ETag)
	}
	if o.Replayed {
		h.Set(headerIdempotentReplayed, "true")
	}
	w.WriteHeader(o.Status)
	_, err := w.Write(o.Body)
	return err
}
