package sandbox

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jwt"
)

const (
	defaultTenant = "default"
	defaultLife   = 24 * time.Hour
	maxLife       = 10 * 365 * 24 * time.Hour // keeps an absurd expires_in from overflowing a duration
)

// signer holds the key that signs tokens (ES256) and the set that verifies them.
type signer struct {
	key    jwk.Key
	public jwk.Set
}

// newSigner takes the signing key from the state, or makes one and puts it there.
func newSigner(st *state) (signer, error) {
	key, err := signingKey(st)
	if err != nil {
		return signer{}, fmt.Errorf("sandbox: signing key: %w", err)
	}
	private := jwk.NewSet()
	if err := private.AddKey(key); err != nil {
		return signer{}, fmt.Errorf("sandbox: key set: %w", err)
	}
	public, err := jwk.PublicSetOf(private)
	if err != nil {
		return signer{}, fmt.Errorf("sandbox: public keys: %w", err)
	}
	return signer{key: key, public: public}, nil
}

func signingKey(st *state) (jwk.Key, error) {
	if st.signingKey != nil {
		return jwk.ParseKey(st.signingKey)
	}
	raw, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	key, err := jwk.Import(raw)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		jwk.AssignKeyID(key), key.Set(jwk.AlgorithmKey, jwa.ES256()), key.Set(jwk.KeyUsageKey, jwk.ForSignature),
	)
	if err != nil {
		return nil, err
	}
	st.signingKey, err = json.Marshal(key)
	return key, err
}

// Token mints a signed JWT. An empty tenant becomes "default"; a ttl of zero or less makes a token that has expired.
func (s *Sandbox) Token(sub, tenant, scope string, ttl time.Duration) (string, error) {
	if sub == "" {
		return "", errors.New("sub is required")
	}
	if tenant == "" {
		tenant = defaultTenant
	}
	now := s.cfg.Now()
	token, err := jwt.NewBuilder().
		Issuer(s.cfg.Issuer).Audience([]string{s.cfg.Audience}).Subject(sub).JwtID(newID("tok")).
		IssuedAt(now).Expiration(now.Add(ttl)).
		Claim("tenant", tenant).Claim("scope", scope).
		Build()
	if err != nil {
		return "", fmt.Errorf("sandbox: build token: %w", err)
	}
	signed, err := jwt.Sign(token, jwt.WithKey(jwa.ES256(), s.signer.key))
	if err != nil {
		return "", fmt.Errorf("sandbox: sign token: %w", err)
	}
	return string(signed), nil
}

func (s *Sandbox) postToken(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Sub       string `json:"sub"`
		Tenant    string `json:"tenant"`
		Scope     string `json:"scope"`
		ExpiresIn *int64 `json:"expires_in"`
	}
	if err := readJSON(w, r, &asked); err != nil {
		writeProblem(w, err)
		return
	}
	life, err := tokenLife(asked.ExpiresIn)
	if err != nil {
		writeProblem(w, err)
		return
	}
	token, err := s.Token(asked.Sub, asked.Tenant, asked.Scope, life)
	if err != nil {
		writeProblem(w, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": token, "token_type": "Bearer", "expires_in": int64(life / time.Second),
	})
}

func tokenLife(seconds *int64) (time.Duration, error) {
	if seconds == nil {
		return defaultLife, nil
	}
	limit := int64(maxLife / time.Second)
	if *seconds > limit || *seconds < -limit {
		return 0, fmt.Errorf("expires_in must be within ±%d seconds", limit)
	}
	return time.Duration(*seconds) * time.Second, nil
}
