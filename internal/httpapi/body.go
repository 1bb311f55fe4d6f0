package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"example.com/orders/internal/domain"
)

const (
	mediaJSON = "application/json"
	// maxBody bounds a request's body, in bytes. It is three times the size of the largest valid order.
	maxBody = 64 << 10
)

// strictBody reads the body, up to maxBody bytes, and accepts only what the contract describes: one JSON value of the
// declared media type, without duplicate or unknown members, trailing data or text that PostgreSQL cannot store.
func strictBody(w http.ResponseWriter, r *http.Request) (*http.Request, error) {
	op := operationOf(r.Context())
	if op.body == nil || op.bodiless && empty(r) {
		return r, nil
	}
	if err := checkMedia(w, r); err != nil {
		return r, err
	}
	if r.ContentLength > maxBody { // the body is not read, so a client with Expect: 100-continue does not send it
		return r, errBodyTooLarge
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return r, readError(err)
	}
	value, err := decodeStrictly(raw)
	if err != nil {
		return r, err
	}
	if err := matchSchema(op.body, value); err != nil {
		return r, err
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	return r, nil
}

// checkMedia requires one Content-Type header with JSON and no content coding. Repeated headers are rejected: a proxy
// in front may have checked the other one.
func checkMedia(w http.ResponseWriter, r *http.Request) error {
	for _, coding := range r.Header.Values("Content-Encoding") {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			w.Header().Set("Accept-Encoding", "identity") // RFC 9110, section 15.5.16
			return errEncodedBody
		}
	}
	lines := r.Header.Values("Content-Type")
	if len(lines) != 1 {
		return errUnsupportedMediaType
	}
	if media, _, err := mime.ParseMediaType(lines[0]); err != nil || media != mediaJSON {
		return errUnsupportedMediaType
	}
	return nil
}

// empty reports whether the request has no body. A chunked body (RFC 9112, section 7.1) has no known length and may be
// empty.
func empty(r *http.Request) bool {
	if r.ContentLength >= 0 {
		return r.ContentLength == 0
	}
	body := bufio.NewReaderSize(r.Body, 16)
	r.Body = struct {
		io.Reader
		io.Closer
	}{body, r.Body}
	_, err := body.Peek(1)
	return errors.Is(err, io.EOF)
}

// readError distinguishes a body that is too large, one that arrived too slowly, and one that was cut off.
func readError(err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return errBodyTooLarge
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return errRequestTimeout
	}
	return malformed("The body could not be read.")
}

// matchSchema validates the body against the contract and reports every invalid field.
func matchSchema(schema *openapi3.Schema, value any) error {
	var violations domain.Violations
	collect(&violations, "", schema.VisitJSON(value, openapi3.VisitAsRequest(), openapi3.MultiErrors()))
	return violations.Err()
}
