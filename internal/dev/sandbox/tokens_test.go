package sandbox_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jwt"
)

// parse checks a token as the API does: against the served JWKS, with issuer, audience and expiry.
func (b *bench) parse(token string) (jwt.Token, error) {
	b.t.Helper()
	served := b.do(http.MethodGet, "/.well-known/jwks.json", nil, "").body
	set, err := jwk.ParseString(served)
	if err != nil {
		b.t.Fatalf("JWKS %s: %v", served, err)
	}
	for i := range set.Len() {
		key, _ := set.Key(i)
		if private, err := jwk.IsPrivateKey(key); err != nil || private {
			b.t.Fatalf("the JWKS holds a private key (%v)", err)
		}
	}
	return jwt.ParseString(token, jwt.WithKeySet(set), jwt.WithIssuer("http://issuer.test"),
		jwt.WithAudience("orders-api"), jwt.WithClock(jwt.ClockFunc(b.clock.Now)))
}

func (b *bench) mint(body string) (token string, expiresIn int64) {
	b.t.Helper()
	r := b.do(http.MethodPost, "/token", nil, body)
	var minted struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := json.Unmarshal([]byte(r.body), &minted); err != nil || r.status != http.StatusOK {
		b.t.Fatalf("token: %d %s", r.status, r.body)
	}
	equal(b.t, "token type", minted.TokenType, "Bearer")
	return minted.AccessToken, minted.ExpiresIn
}

// Ensure a token carries what was asked for and verifies against the JWKS.
func TestToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	raw, expiresIn := b.mint(`{"sub":"ann","tenant":"acme","scope":"orders:read orders:write"}`)
	equal(t, "expires_in", expiresIn, 86400)
	token, err := b.parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	sub, _ := token.Subject()
	id, _ := token.JwtID()
	issued, _ := token.IssuedAt()
	expires, _ := token.Expiration()
	var tenant, scope string
	if err := token.Get("tenant", &tenant); err != nil {
		t.Fatal(err)
	}
	if err := token.Get("scope", &scope); err != nil {
		t.Fatal(err)
	}
	equal(t, "sub", sub, "ann")
	equal(t, "tenant", tenant, "acme")
	equal(t, "scope", scope, "orders:read orders:write")
	equal(t, "life", expires.Sub(issued), 24*time.Hour)
	equal(t, "has an id", id != "", true)
}

// Ensure the tenant defaults, and that the Go API mints the same kind of token.
func TestTokenDefaults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	raw, err := b.Token("ann", "", "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	token, err := b.parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	var tenant string
	_ = token.Get("tenant", &tenant)
	equal(t, "tenant", tenant, "default")
}

// Ensure a test can have a token that has expired, or soon will.
func TestExpiredToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	raw, expiresIn := b.mint(`{"sub":"ann","expires_in":-60}`)
	equal(t, "expires_in", expiresIn, -60)
	if _, err := b.parse(raw); err == nil {
		t.Error("an expired token was accepted")
	}
	raw, _ = b.mint(`{"sub":"ann","expires_in":5}`)
	if _, err := b.parse(raw); err != nil {
		t.Error(err)
	}
	b.clock.advance(6 * time.Second)
	if _, err := b.parse(raw); err == nil {
		t.Error("the token outlived its 5 seconds")
	}
}

// Ensure a token of another sandbox is not good here.
func TestForeignToken(t *testing.T) {
	t.Parallel()
	raw, err := setup(t).Token("ann", "", "", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := setup(t).parse(raw); err == nil {
		t.Error("a foreign token was accepted")
	}
}

// Ensure bad requests for a token are refused in JSON.
func TestBadTokenRequests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, body := range []string{
		``, `{}`, `{"sub":""}`, `{"sub":1}`, `{"sub":"ann","admin":true}`, `{"sub":"ann"}{}`, `sub=ann`,
		`{"sub":"ann","expires_in":"1h"}`, `{"sub":"ann","expires_in":99999999999}`,
		`{"sub":"ann","expires_in":-9223372036854775808}`,
	} {
		r := b.do(http.MethodPost, "/token", nil, body)
		equal(t, body, r.status, http.StatusBadRequest)
		equal(t, body, json.Valid([]byte(r.body)), true)
	}
}
