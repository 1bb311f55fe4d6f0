package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"time"

	"example.com/orders/api"
)

// contractPath is the path of the contract. It needs no token.
const contractPath = "/openapi.yaml"

// serveContract serves the api/openapi.yaml that is embedded in this binary (RFC 9512). It supports GET, HEAD and
// conditional requests.
func serveContract(w http.ResponseWriter, r *http.Request) {
	recordOf(r.Context()).operation = "get-contract"
	sum := sha256.Sum256(api.OpenAPI)
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", `"`+base64.RawURLEncoding.EncodeToString(sum[:16])+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(api.OpenAPI))
}
