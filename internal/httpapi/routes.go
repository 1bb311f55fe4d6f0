package httpapi

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"
)

// routePath is the path as chi routes it: as it was sent, where decoding it would lose something (an escaped slash is no
// separator), else decoded.
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

// noRoute answers 405 with the methods that the path has, or 404 where it has none.
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
