package httpapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json/jsontext"

	"example.com/orders/internal/domain"
)

const (
	mediaJSON = "application/json"
	// maxBody bounds a request's body, in bytes: the largest legal order is a third of it.
	maxBody = 64 << 10
)

// strictBody reads the body, bounded, and lets only what the contract describes pass: one JSON value of the declared
// media type, without duplicate or unknown members, trailing data or text that PostgreSQL cannot store.
func strictBody(w http.ResponseWriter, r *http.Request) (*http.Request, error) {
	op := operationOf(r.Context())
	if op.body == nil || op.bodiless && empty(r) {
		return r, nil
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != mediaJSON {
		return r, errUnsupportedMediaType
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return r, readError(err)
	}
	if err := strictJSON(raw); err != nil {
		return r, err
	}
	if err := matchSchema(op.body, raw); err != nil {
		return r, err
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	return r, nil
}

// empty tells whether the request has no body. One of unknown length (RFC 9112, section 7.1) may turn out to be empty.
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

func readError(err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return errBodyTooLarge
	}
	return malformed("The body could not be read.")
}

// strictJSON refuses what encoding/json lets pass: duplicate members, invalid UTF-8, lone surrogates (jsontext does),
// anything after the value, and the null character, which PostgreSQL's text cannot hold.
func strictJSON(raw []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	for first := true; first || d.StackDepth() > 0; first = false {
		token, err := d.ReadToken()
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return malformed("The body repeats a member.")
		}
		if err != nil {
			return malformed("The body is not valid JSON.")
		}
		if token.Kind() == '"' && strings.ContainsRune(token.String(), 0) {
			return malformed("The body contains a null character.")
		}
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return malformed("The body goes on after its JSON value.")
	}
	return nil
}

// matchSchema checks the body against the contract and names every field that is wrong.
func matchSchema(schema *openapi3.Schema, raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // amounts keep all their digits
	var value any
	if err := d.Decode(&value); err != nil {
		return malformed("The body is not valid JSON.")
	}
	var violations domain.Violations
	collect(&violations, "", schema.VisitJSON(value, openapi3.VisitAsRequest(), openapi3.MultiErrors()))
	return violations.Err()
}

// collect adds the schema's complaints to v, each under the path of its field.
func collect(v *domain.Violations, field string, err error) {
	var many openapi3.MultiError
	var one *openapi3.SchemaError
	switch {
	case err == nil:
	case errors.As(err, &many):
		for _, e := range many {
			collect(v, field, e)
		}
	case errors.As(err, &one):
		if path := one.JSONPointer(); field == "" {
			field = strings.Join(path, "/")
		}
		code, message := broken(one.SchemaField)
		v.Add(field, code, message)
	default:
		v.Add(field, "invalid", "is not valid")
	}
}

// broken names a rule of the contract's schema as the domain names its own, in words that quote nothing of the input.
func broken(keyword string) (code, message string) {
	switch keyword {
	case "required":
		return "required", "is missing"
	case "properties":
		return "unknown", "has a member that is not known"
	case "type", "nullable":
		return "type", "is not of the type that the contract names"
	case "minLength", "maxLength", "minItems", "maxItems":
		return "length", "is too short or too long"
	case "minimum", "maximum":
		return "range", "is too small or too large"
	case "enum":
		return "enum", "is not one of the values that the contract lists"
	default:
		return "pattern", "does not have the form that the contract asks for"
	}
}
