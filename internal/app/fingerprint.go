package app

import (
	"crypto/sha256"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Fingerprint is a hash that detects a client key that is reused for a different request.
type Fingerprint [sha256.Size]byte

// fingerprint hashes the mapped command input, the identity of the route and the actor, in the canonical JSON of RFC
// 8785 (members sorted, no white space; integers keep all their digits). Credentials and the key itself are not hashed.
//
// It must stay the same across releases for as long as keys live. So a new member of a command must be omitted when it
// is absent (omitzero), and no member may be renamed. The golden hashes in fingerprint_test.go check this.
func fingerprint(actor Actor, route string, input any) (Fingerprint, error) {
	raw, err := json.Marshal(struct {
		Actor  string `json:"actor"`
		Tenant string `json:"tenant"`
		Route  string `json:"route"`
		Input  any    `json:"input"`
	}{actor.ID, actor.Tenant, route, input})
	if err != nil {
		return Fingerprint{}, fmt.Errorf("fingerprint: %w", err)
	}
	canonical := jsontext.Value(raw)
	if err := canonical.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		return Fingerprint{}, fmt.Errorf("fingerprint: %w", err)
	}
	return sha256.Sum256(canonical), nil
}
