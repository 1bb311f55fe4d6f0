package httpapi

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
)

// maxKeySet bounds the issuer's answer, in bytes.
const maxKeySet = 256 << 10

// allowedAlgorithms is every signature algorithm that a token may name.
var allowedAlgorithms = []string{
	jwa.RS256().String(), jwa.PS256().String(), jwa.ES256().String(), jwa.EdDSA().String(),
}

// KeyObserver counts events about the issuer's keys.
type KeyObserver interface {
	// SigningKeySkipped counts an unusable key, once while the issuer publishes it.
	SigningKeySkipped(ctx context.Context)
}

// verificationKey is a public key of the issuer, with its allowed algorithms.
type verificationKey struct {
	public     any
	algorithms []string
}

// keySet is the usable keys of one response of the issuer.
type keySet struct {
	generation uint64 // grows with every answer that differs from the one before; from 1
	keys       map[string][]verificationKey
}

func (s *keySet) has(id string) bool { return len(s.keys[id]) > 0 }

// keySetReader parses the issuer's responses (RFC 7517, section 5) into key sets. It implements httprc.Transformer.
type keySetReader struct {
	observer KeyObserver
	log      *slog.Logger

	mu       sync.Mutex
	answer   [sha256.Size]byte // the hash of the last response
	set      *keySet           // parsed from that response
	reported map[[sha256.Size]byte]bool
}

// Transform parses a response. It skips unusable keys (RFC 7517, section 5). A response that is not a key set is an
// error, and the known keys remain valid.
func (r *keySetReader) Transform(ctx context.Context, response *http.Response) (*keySet, error) {
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxKeySet+1))
	if err != nil {
		return nil, fmt.Errorf("read key set: %w", err)
	}
	if len(raw) > maxKeySet {
		return nil, fmt.Errorf("key set is larger than %d bytes", maxKeySet)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	hash := sha256.Sum256(raw)
	if r.set != nil && r.answer == hash {
		return r.set, nil
	}
	next, err := r.read(ctx, raw)
	if err != nil {
		return nil, err
	}
	r.answer, r.set = hash, next
	return next, nil
}

func (r *keySetReader) read(ctx context.Context, raw []byte) (*keySet, error) {
	var document struct {
		Keys []jsontext.Value `json:"keys"`
	}
	// Errors within one key are detected when that key is parsed.
	err := json.Unmarshal(raw, &document, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("answer is not a key set: %w", err)
	}
	if document.Keys == nil {
		return nil, errors.New("answer has no keys")
	}
	set := &keySet{generation: 1, keys: map[string][]verificationKey{}}
	if r.set != nil {
		set.generation = r.set.generation + 1
	}
	skipped := map[[sha256.Size]byte]bool{}
	for _, one := range document.Keys {
		id, key, err := readKey(one)
		if err != nil {
			skipped[sha256.Sum256(one)] = true
			r.report(ctx, one, err)
			continue
		}
		set.keys[id] = append(set.keys[id], key)
	}
	r.reported = skipped
	return set, nil
}

// report logs and counts an unusable key, once while it is published. It logs only the key's id and type, because the
// key may be a private one.
func (r *keySetReader) report(ctx context.Context, raw []byte, reason error) {
	if r.reported[sha256.Sum256(raw)] {
		return
	}
	var name struct {
		KeyID string `json:"kid"`
		Type  string `json:"kty"`
	}
	_ = json.Unmarshal(raw, &name) // best effort
	r.log.WarnContext(ctx, "signing key was skipped", "kid", clip(name.KeyID, maxName), "kty", clip(name.Type, maxName),
		"reason", reason.Error())
	r.observer.SigningKeySkipped(ctx)
}

// readKey parses one key of a set and checks its type, curve, size, alg, use and key_ops (RFC 7517, section 4; RFC
// 8725, section 3.1).
func readKey(raw jsontext.Value) (id string, key verificationKey, err error) {
	if !raw.IsValid() { // duplicate members or invalid UTF-8
		return "", key, errors.New("not valid JSON")
	}
	parsed, err := jwk.ParseKey(raw)
	if err != nil {
		return "", key, errors.New("unknown type or curve, or a member that is missing or not valid")
	}
	if err := jwk.Export(parsed, &key.public); err != nil {
		return "", key, errors.New("not a key of its type, or too small")
	}
	key.algorithms = algorithmsFor(key.public)
	if algorithm, ok := parsed.Algorithm(); ok {
		key.algorithms = slices.DeleteFunc(key.algorithms, func(a string) bool { return a != algorithm.String() })
	}
	use, hasUse := parsed.KeyUsage()
	operations, hasOperations := parsed.KeyOps()
	id, _ = parsed.KeyID()
	switch {
	case id == "":
		return "", key, errors.New("no kid")
	case len(key.algorithms) == 0:
		return "", key, errors.New("not a public key of an allowed algorithm")
	case hasUse && use != jwk.ForSignature.String():
		return "", key, errors.New("its use is not sig")
	case hasOperations && !slices.Contains(operations, jwk.KeyOpVerify):
		return "", key, errors.New("its key_ops do not include verify")
	}
	return id, key, nil
}

// algorithmsFor returns the allowed algorithms of a public key. Any other key has none: a private or symmetric key in a
// public key set is not secret.
func algorithmsFor(public any) []string {
	switch public := public.(type) {
	case *rsa.PublicKey:
		return []string{jwa.RS256().String(), jwa.PS256().String()}
	case *ecdsa.PublicKey:
		if public.Curve == elliptic.P256() {
			return []string{jwa.ES256().String()}
		}
	case ed25519.PublicKey:
		return []string{jwa.EdDSA().String()}
	}
	return nil
}
