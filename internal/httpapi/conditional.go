package httpapi

import "net/http"

// evaluatePreconditions answers a read as its preconditions ask, in the order of RFC 9110, section 13.2.2: once the
// representation is selected, 412 where If-Match does not name it, and 304 where If-None-Match does. They say nothing
// about an answer that is not 200. Writes that take a version compare it in their transaction instead.
func (p problems) evaluatePreconditions(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if operationOf(r.Context()).safe && (r.Header.Get(headerIfMatch) != "" || r.Header.Get(headerIfNoneMatch) != "") {
			w = &conditionalWriter{ResponseWriter: w, problems: p, request: r}
		}
		next.ServeHTTP(w, r)
	})
}

// conditionalWriter holds back a representation that the preconditions of its request exclude.
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

// holds tells whether the header, which checkHeaders has found well-formed, names the representation.
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
