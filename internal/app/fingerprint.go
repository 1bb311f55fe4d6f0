package app

import (
	"crypto/sha256"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Fingerprint tells whether two requests under one client key mean the same.
type Fingerprint [sha256.Size]byte

// fingerprint hashes the mapped command input, the identity of the route and the actor, in the canonical JSON of
// RFC 8785 (members sorted, no white space; integers keep all their digits). Credentials and the key itself stay out.
//
// It must stay the same across releases for as long as keys live. So a member that is added to a command must be
// omitted where it is absent (omitzero), and none may be renamed; the golden hashes in fingerprint_test.go watch this.
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
