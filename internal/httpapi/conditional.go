package httpapi

import "net/http"

// evaluatePreconditions evaluates a read's preconditions in the order of RFC 9110, section 13.2.2: 412 if If-Match does
// not match the representation, 304 if If-None-Match does. They apply only to 200 responses. Writes that take a version
// compare it in their transaction instead.
func (p problems) evaluatePreconditions(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if operationOf(r.Context()).safe && (r.Header.Get(headerIfMatch) != "" || r.Header.Get(headerIfNoneMatch) != "") {
			w = &conditionalWriter{ResponseWriter: w, problems: p, request: r}
		}
		next.ServeHTTP(w, r)
	})
}

// conditionalWriter replaces a representation with 412 or 304 when a precondition fails.
type conditionalWriter struct {
	http.ResponseWriter
	problems problems
	request  *http.Request
	excluded bool // the representation is not sent
}

// WriteHeader implements http.ResponseWriter.
func (w *conditionalWriter) WriteHeader(status int) {
	header := w.Header()
	switch {
	case status != http.StatusOK:
	case !w.holds(headerIfMatch, false, true):
		w.excluded = true
		header.Del("ETag")
		w.problems.write(w.ResponseWriter, w.request, errPreconditionFailed)
		return
	case w.holds(headerIfNoneMatch, true, false):
		w.excluded = true
		header.Del("Content-Type")
		status = http.StatusNotModified
	}
	w.ResponseWriter.WriteHeader(status)
}

// holds reports whether the header, which checkHeaders has validated, matches the representation.
func (w *conditionalWriter) holds(header string, weakly, absent bool) bool {
	list, err := parseTags(w.request.Header.Get(header))
	if err != nil || !list.any && len(list.tags) == 0 {
		return absent
	}
	return list.matches(w.Header().Get("ETag"), weakly)
}

// Write implements http.ResponseWriter.
func (w *conditionalWriter) Write(body []byte) (int, error) {
	if w.excluded {
		return len(body), nil
	}
	return w.ResponseWriter.Write(body)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *conditionalWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
