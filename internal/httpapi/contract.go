package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"time"

	"example.com/orders/api"
)

// contractPath is where the contract is read, without a token.
const contractPath = "/openapi.yaml"

// serveContract answers api/openapi.yaml as this binary was built with it (RFC 9512), GET and HEAD, conditionally.
func serveContract(w http.ResponseWriter, r *http.Request) {
	recordOf(r.Context()).operation = "get-contract"
	sum := sha256.Sum256(api.OpenAPI)
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", `"`+base64.RawURLEncoding.EncodeToString(sum[:16])+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(api.OpenAPI))
}
