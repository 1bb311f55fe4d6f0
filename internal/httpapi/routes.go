package httpapi

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"
)

// routePath is the path that chi routes: the raw path if it has escapes that decoding would lose (an escaped slash is
// not a separator), otherwise the decoded path.
func routePath(r *http.Request) string {
	if r.URL.RawPath != "" {
		return r.URL.RawPath
	}
	return r.URL.Path
}

// pathParameter is the value of a path parameter, decoded exactly once.
func pathParameter(r *http.Request, name string) string {
	value := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return value
	}
	if decoded, err := url.PathUnescape(value); err == nil {
		return decoded
	}
	return value
}

// noRoute answers 405 with the allowed methods of the path, or 404 for an unknown path.
func (p problems) noRoute(router chi.Router) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if !router.Match(chi.NewRouteContext(), method, routePath(r)) {
				continue
			}
			allowed = append(allowed, method)
			if method == http.MethodGet {
				allowed = append(allowed, http.MethodHead)
			}
		}
		if len(allowed) == 0 {
			p.write(w, r, errRouteNotFound)
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		p.write(w, r, errMethodNotAllowed)
	}
}
