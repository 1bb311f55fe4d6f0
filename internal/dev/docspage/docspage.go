// Package docspage serves the contract as an interactive page: Swagger UI, which a module of its own brings, and the requests
// that a reader sends from it. It is for local work. The API itself carries none of it.
package docspage

import (
	"context"
	"embed"
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/swaggest/swgui/v5/static"
	"github.com/vearutop/statigz"
)

//go:embed index.html docs.css docs.js
var files embed.FS

// policy lets the page load nothing from elsewhere. Swagger UI writes styles into its elements and draws icons from data: URLs.
const policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"

// Handler serves the page at /docs/, and /openapi.yaml and /v1/ from the API at the address api, so that the page's requests have one
// origin. token mints the access token that the page sends. The caller keeps other machines and other sites out.
func Handler(api *url.URL, token func(context.Context) (string, error)) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /docs/", withPolicy(http.StripPrefix("/docs/", http.FileServerFS(files))))
	mux.Handle("GET /docs/swagger-ui/", withPolicy(http.StripPrefix("/docs/swagger-ui", statigz.FileServer(static.FS))))
	mux.HandleFunc("GET /docs/token", func(w http.ResponseWriter, r *http.Request) {
		minted, err := token(r.Context())
		if err != nil {
			http.Error(w, "no token could be minted", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(map[string]string{"access_token": minted, "token_type": "Bearer"})
	})
	mux.Handle("/v1/", proxy(api))
	mux.Handle("GET /openapi.yaml", proxy(api))
	return mux
}

// proxy hands requests on, and answers with the headers of the API alone.
func proxy(api *url.URL) http.Handler {
	next := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(api) }}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		clear(w.Header())
		next.ServeHTTP(w, r)
	})
}

func withPolicy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		next.ServeHTTP(w, r)
	})
}
