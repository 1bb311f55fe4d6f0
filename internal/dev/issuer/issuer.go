// Package issuer is the stand-in for an identity provider: it mints access tokens (RFC 7519, signed with ES256) for local
// work and tests, and publishes the key that verifies them. It asks for no credentials.
package issuer

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jwt"
)

const (
	// DefaultTenant is the tenant of a token that is asked for without one.
	DefaultTenant = "default"
	// DefaultLife and MaxLife bound a token's life; MaxLife keeps an absurd expires_in from overflowing a duration.
	DefaultLife = 24 * time.Hour
	MaxLife     = 10 * 365 * 24 * time.Hour
)

// Issuer mints tokens.
type Issuer struct {
	name, audience string
	now            func() time.Time
	key            jwk.Key
	public         jwk.Set
}

// New makes an issuer whose tokens carry name as `iss` and audience as `aud`. key is a private JWK in JSON, or nil for a new one.
func New(name, audience string, key []byte, now func() time.Time) (*Issuer, error) {
	private, err := signingKey(key)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	set := jwk.NewSet()
	if err := set.AddKey(private); err != nil {
		return nil, fmt.Errorf("key set: %w", err)
	}
	public, err := jwk.PublicSetOf(set)
	if err != nil {
		return nil, fmt.Errorf("public keys: %w", err)
	}
	return &Issuer{name: name, audience: audience, now: now, key: private, public: public}, nil
}

func signingKey(encoded []byte) (jwk.Key, error) {
	if encoded != nil {
		return jwk.ParseKey(encoded)
	}
	raw, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	key, err := jwk.Import(raw)
	if err != nil {
		return nil, err
	}
	return key, errors.Join(
		jwk.AssignKeyID(key), key.Set(jwk.AlgorithmKey, jwa.ES256()), key.Set(jwk.KeyUsageKey, jwk.ForSignature),
	)
}

// Key is the private key in JSON (RFC 7517), for New after a restart.
func (i *Issuer) Key() ([]byte, error) { return json.Marshal(i.key) }

// Token mints a signed JWT. An empty tenant becomes DefaultTenant; a life of zero or less makes a token that has expired.
func (i *Issuer) Token(sub, tenant, scope string, life time.Duration) (string, error) {
	if sub == "" {
		return "", errors.New("sub is required")
	}
	now := i.now()
	token, err := jwt.NewBuilder().
		Issuer(i.name).Audience([]string{i.audience}).Subject(sub).JwtID("tok_"+rand.Text()).
		IssuedAt(now).Expiration(now.Add(life)).
		Claim("tenant", cmp.Or(tenant, DefaultTenant)).Claim("scope", scope).
		Build()
	if err != nil {
		return "", fmt.Errorf("build token: %w", err)
	}
	signed, err := jwt.Sign(token, jwt.WithKey(jwa.ES256(), i.key))
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return string(signed), nil
}

// PublicKeys is the set that verifies the tokens (RFC 7517 section 5).
func (i *Issuer) PublicKeys() jwk.Set { return i.public }
