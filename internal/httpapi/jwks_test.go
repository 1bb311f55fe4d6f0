package httpapi_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/dev/testkit"
	"example.com/orders/internal/httpapi"
)

const (
	tokenIssuer   = "https://issuer.test"
	tokenAudience = "orders-api"
)

// issuer publishes keys over HTTP.
type issuer struct {
	t   testing.TB
	url string

	mu      sync.Mutex
	answer  []byte // what it publishes; nil: it answers 500
	held    chan struct{}
	fetches int
}

func newIssuer(t testing.TB, keys ...jwk.Key) *issuer {
	t.Helper()
	i := &issuer{t: t}
	i.publish(keys...)
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	i.url = server.URL
	return i
}

// publish replaces the published keys.
func (i *issuer) publish(keys ...jwk.Key) {
	i.t.Helper()
	var members []string
	for _, k := range keys {
		members = append(members, publicJSON(i.t, k))
	}
	i.publishRaw(`{"keys":[` + strings.Join(members, ",") + `]}`)
}

// publishRaw replaces the answer, whatever it is.
func (i *issuer) publishRaw(answer string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = []byte(answer)
}

// publicJSON is the public key as a JWK.
func publicJSON(t testing.TB, k jwk.Key) string {
	t.Helper()
	public, err := k.PublicKey()
	require.NoError(t, err)
	raw, err := json.Marshal(public)
	require.NoError(t, err)
	return string(raw)
}

// fail makes it answer 500 until it publishes again.
func (i *issuer) fail() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = nil
}

// hold keeps answers back until release is called.
func (i *issuer) hold() (release func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.held = make(chan struct{})
	held := i.held
	return sync.OnceFunc(func() { close(held) })
}

// answerAtOnce keeps no further answer back; those that are held stay so until they are released.
func (i *issuer) answerAtOnce() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.held = nil
}

func (i *issuer) fetched() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.fetches++
	answer, held := i.answer, i.held
	i.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-r.Context().Done():
		}
	}
	if answer == nil {
		http.Error(w, "down", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

// config trusts the issuer.
func (i *issuer) config() httpapi.JWTConfig {
	return httpapi.JWTConfig{Issuer: tokenIssuer, Audience: tokenAudience, JWKSURL: i.url}
}

// authenticator trusts the issuer.
func (i *issuer) authenticator() *httpapi.JWTAuthenticator {
	i.t.Helper()
	return newAuthenticator(i.t, i.config(), &keyWatch{})
}

func newAuthenticator(t testing.TB, c httpapi.JWTConfig, w *keyWatch) *httpapi.JWTAuthenticator {
	t.Helper()
	a, err := httpapi.NewJWTAuthenticator(t.Context(), c, w, slog.New(slog.NewJSONHandler(w, nil)))
	require.NoError(t, err)
	return a
}

// keyWatch is the log and the counter of skipped keys.
type keyWatch struct {
	mu      sync.Mutex
	text    strings.Builder
	skipped int
}

func (w *keyWatch) SigningKeySkipped(context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.skipped++
}

func (w *keyWatch) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(line)
}

func (w *keyWatch) seen() (log string, skipped int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String(), w.skipped
}

// key makes a signing key with an id and, unless it is empty, its algorithm.
func key(t testing.TB, raw any, id string, algorithm any) jwk.Key {
	t.Helper()
	k, err := jwk.Import(raw)
	require.NoError(t, err)
	require.NoError(t, k.Set(jwk.KeyIDKey, id))
	if algorithm != nil {
		require.NoError(t, k.Set(jwk.AlgorithmKey, algorithm))
	}
	return k
}

func ecKey(t testing.TB, id string) jwk.Key {
	t.Helper()
	raw, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key(t, raw, id, jwa.ES256())
}

func rsaKey(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	raw, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	return raw
}

// claims is a good token's claims; change alters them. A claim that is set to nil is left out.
func claims(change map[string]any) map[string]any {
	all := map[string]any{
		"iss": tokenIssuer, "aud": tokenAudience, "sub": "alice", "tenant": "acme", "scope": "orders:read orders:write",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	for name, value := range change {
		all[name] = value
		if value == nil {
			delete(all, name)
		}
	}
	return all
}

// sign signs claims, whatever they are.
func sign(t testing.TB, payload map[string]any, algorithm jwa.SignatureAlgorithm, k any) string {
	t.Helper()
	raw, err := json.Marshal(payload)
	require.NoError(t, err)
	signed, err := jws.Sign(raw, jws.WithKey(algorithm, k))
	require.NoError(t, err)
	return string(signed)
}

// handmade is a token with any header and any signature.
func handmade(t testing.TB, header, payload map[string]any, signature string) string {
	t.Helper()
	part := func(v any) string {
		raw, err := json.Marshal(v)
		require.NoError(t, err)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	return part(header) + "." + part(payload) + "." + signature
}

// Ensure a good token names its actor: subject, tenant and scopes, a deployment's one tenant where it names none.
func TestTokensNameTheActor(t *testing.T) {
	t.Parallel()
	k := ecKey(t, "k1")
	a := newIssuer(t, k).authenticator()
	for name, c := range map[string]struct {
		change map[string]any
		want   app.Actor
	}{
		"all of it":           {nil, app.Actor{Tenant: "acme", ID: "alice", Scopes: []string{"orders:read", "orders:write"}}},
		"no tenant":           {map[string]any{"tenant": nil, "scope": "a"}, app.Actor{Tenant: "default", ID: "alice", Scopes: []string{"a"}}},
		"no scope":            {map[string]any{"scope": nil}, app.Actor{Tenant: "acme", ID: "alice", Scopes: []string{}}},
		"one of our audience": {map[string]any{"aud": []string{"x", tokenAudience}, "scope": " a  b "}, app.Actor{Tenant: "acme", ID: "alice", Scopes: []string{"a", "b"}}},
		"a moment too late":   {map[string]any{"exp": time.Now().Unix() - 1, "scope": "a"}, app.Actor{Tenant: "acme", ID: "alice", Scopes: []string{"a"}}},
		"any name":            {map[string]any{"sub": "auth0|zoë müller", "scope": "a"}, app.Actor{Tenant: "acme", ID: "auth0|zoë müller", Scopes: []string{"a"}}},
	} {
		actor, err := a.Authenticate(t.Context(), sign(t, claims(c.change), jwa.ES256(), k))
		require.NoError(t, err, name)
		require.Equal(t, c.want, actor, name)
	}
}

// Ensure a token that proves nobody is refused, whatever is wrong with it.
func TestTokensThatProveNobody(t *testing.T) {
	t.Parallel()
	k, other, raw := ecKey(t, "k1"), ecKey(t, "k1"), rsaKey(t)
	rs := key(t, raw, "rsa", jwa.RS256())
	encrypting := key(t, raw, "enc", jwa.RS256())
	require.NoError(t, encrypting.Set(jwk.KeyUsageKey, jwk.ForEncryption))
	a := newIssuer(t, k, rs, encrypting).authenticator()
	good := sign(t, claims(nil), jwa.ES256(), k)
	parts := strings.Split(good, ".")
	bad := map[string]string{
		"nothing": "", "no token": "x", "three words": "a.b.c", "two dots": "..", "five parts": "a.b.c.d.e", "a null": "\x00",
		"another's signature":         sign(t, claims(nil), jwa.ES256(), other),
		"no signature":                parts[0] + "." + parts[1] + ".",
		"another payload":             parts[0] + "." + strings.Split(sign(t, claims(map[string]any{"sub": "bob"}), jwa.ES256(), k), ".")[1] + "." + parts[2],
		"no algorithm":                handmade(t, map[string]any{"alg": "none", "kid": "k1"}, claims(nil), ""),
		"no algorithm, in capitals":   handmade(t, map[string]any{"alg": "NONE", "kid": "k1"}, claims(nil), ""),
		"no algorithm, but signed":    handmade(t, map[string]any{"alg": "none", "kid": "k1"}, claims(nil), parts[2]),
		"no header":                   handmade(t, map[string]any{}, claims(nil), parts[2]),
		"a critical extension":        handmade(t, map[string]any{"alg": "ES256", "kid": "k1", "crit": []string{"x"}, "x": 1}, claims(nil), parts[2]),
		"an algorithm off the list":   sign(t, claims(nil), jwa.RS512(), rs),
		"another algorithm of a key":  sign(t, claims(nil), jwa.PS256(), rs),
		"a key that encrypts":         sign(t, claims(nil), jwa.RS256(), encrypting),
		"no key's name":               sign(t, claims(nil), jwa.RS256(), raw),
		"a key of its own":            ownKey(t, ecKey(t, "k9")),
		"payload that is no object":   handmadeList(t, k),
		"duplicate serialization":     `{"payload":"` + parts[1] + `","signatures":[{"protected":"` + parts[0] + `","signature":"` + parts[2] + `"},{"protected":"` + parts[0] + `","signature":"` + parts[2] + `"}]}`,
		"HS256 with the public key":   hmacWithPublicKey(t, raw, "rsa"),
		"HS256 with an algorithm mix": handmade(t, map[string]any{"alg": "HS256", "kid": "k1"}, claims(nil), parts[2]),
	}
	for name, change := range map[string]map[string]any{
		"another issuer":        {"iss": tokenIssuer + ".evil"},
		"no issuer":             {"iss": nil},
		"another audience":      {"aud": "payments-api"},
		"no audience":           {"aud": nil},
		"expired":               {"exp": time.Now().Add(-time.Hour).Unix()},
		"no expiry":             {"exp": nil},
		"an expiry of words":    {"exp": "tomorrow"},
		"not yet valid":         {"nbf": time.Now().Add(time.Hour).Unix()},
		"issued in the future":  {"iat": time.Now().Add(time.Hour).Unix()},
		"no subject":            {"sub": nil},
		"an empty subject":      {"sub": ""},
		"a number for subject":  {"sub": 7},
		"a null in the subject": {"sub": "ali\x00ce"},
		"a line feed in it":     {"sub": "ali\nce"},
		"a long subject":        {"sub": strings.Repeat("a", 256)},
		"a number for tenant":   {"tenant": 7},
		"a list for tenant":     {"tenant": []string{"acme"}},
		"an empty tenant":       {"tenant": ""},
		"a null in the tenant":  {"tenant": "ac\x00me"},
		"a long tenant":         {"tenant": strings.Repeat("a", 256)},
		"a list for scope":      {"scope": []string{"orders:read"}},
	} {
		bad[name] = sign(t, claims(change), jwa.ES256(), k)
	}
	for name, token := range bad {
		actor, err := a.Authenticate(t.Context(), token)
		require.ErrorIs(t, err, httpapi.ErrUnauthenticated, name)
		require.NotErrorIs(t, err, app.ErrTryAgain, name)
		require.Empty(t, actor, name)
	}
	_, err := a.Authenticate(t.Context(), good)
	require.NoError(t, err)
}

// hmacWithPublicKey signs with what everybody knows: the public key as PEM, as if it were a secret.
func hmacWithPublicKey(t testing.TB, raw *rsa.PrivateKey, id string) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(raw.Public())
	require.NoError(t, err)
	secret := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return sign(t, claims(nil), jwa.HS256(), key(t, secret, id, jwa.HS256()))
}

// ownKey brings the key along that it is signed with.
func ownKey(t testing.TB, k jwk.Key) string {
	t.Helper()
	public, err := k.PublicKey()
	require.NoError(t, err)
	header := jws.NewHeaders()
	require.NoError(t, header.Set(jws.JWKKey, public))
	require.NoError(t, header.Set(jws.KeyIDKey, "k1"))
	payload, err := json.Marshal(claims(nil))
	require.NoError(t, err)
	signed, err := jws.Sign(payload, jws.WithKey(jwa.ES256(), k, jws.WithProtectedHeaders(header)))
	require.NoError(t, err)
	return string(signed)
}

func handmadeList(t testing.TB, k jwk.Key) string {
	t.Helper()
	signed, err := jws.Sign([]byte(`["alice"]`), jws.WithKey(jwa.ES256(), k))
	require.NoError(t, err)
	return string(signed)
}

// Ensure each allowed algorithm is taken, from keys that are published with their algorithm and from keys that are not.
func TestAllowedAlgorithms(t *testing.T) {
	t.Parallel()
	raw := rsaKey(t)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	for algorithm, private := range map[jwa.SignatureAlgorithm]any{
		jwa.RS256(): raw, jwa.PS256(): raw, jwa.ES256(): curve, jwa.EdDSA(): edwards,
	} {
		for _, published := range []any{algorithm, nil} {
			k := key(t, private, "k1", published)
			a := newIssuer(t, k).authenticator()
			_, err := a.Authenticate(t.Context(), sign(t, claims(nil), algorithm, k))
			require.NoError(t, err, "%s, published with algorithm %v", algorithm, published)
		}
	}
}

// Ensure an algorithm off the list is refused even where the issuer itself publishes a key for it.
func TestAlgorithmsOffTheList(t *testing.T) {
	t.Parallel()
	curve, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	for algorithm, private := range map[jwa.SignatureAlgorithm]any{
		jwa.RS512(): rsaKey(t), jwa.ES384(): curve, jwa.HS256(): []byte("a secret that everybody can read in the key set"),
	} {
		k := key(t, private, "k1", algorithm)
		a := newIssuer(t, k).authenticator()
		_, err := a.Authenticate(t.Context(), sign(t, claims(nil), algorithm, k))
		require.ErrorIs(t, err, httpapi.ErrUnauthenticated, "%s", algorithm)
	}
}

// Ensure a key that the issuer has rotated in is found, that a withdrawn one is rejected, and that unknown keys do not
// make every request a fetch.
func TestRotatedKeysAreFetched(t *testing.T) {
	t.Parallel()
	first, second := ecKey(t, "k1"), ecKey(t, "k2")
	i := newIssuer(t, first)
	a := i.authenticator()
	before, after := sign(t, claims(nil), jwa.ES256(), first), sign(t, claims(nil), jwa.ES256(), second)
	_, err := a.Authenticate(t.Context(), before)
	require.NoError(t, err)
	a.AMomentLater()

	_, err = a.Authenticate(t.Context(), after)
	require.ErrorIs(t, err, httpapi.ErrUnauthenticated, "not published yet")
	fetches := i.fetched()
	for range 20 {
		_, err = a.Authenticate(t.Context(), after)
		require.ErrorIs(t, err, httpapi.ErrUnauthenticated)
	}
	require.LessOrEqual(t, i.fetched(), fetches+1, "unknown keys make requests fetch; one fetch is that of the start")

	i.publish(second)
	a.AMomentLater()
	_, err = a.Authenticate(t.Context(), after)
	require.NoError(t, err)
	_, err = a.Authenticate(t.Context(), before)
	require.ErrorIs(t, err, httpapi.ErrUnauthenticated, "withdrawn")
}

// Ensure no token is rejected as invalid, or accepted, while the issuer cannot be reached; and that known keys stay good.
func TestIssuerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	k := ecKey(t, "k1")
	i := newIssuer(t, k)
	i.fail()
	a := i.authenticator()
	token := sign(t, claims(map[string]any{"scope": "orders:read"}), jwa.ES256(), k)
	for range 2 { // the second one does not even ask
		_, err := a.Authenticate(t.Context(), token)
		require.ErrorIs(t, err, app.ErrTryAgain)
		require.NotErrorIs(t, err, httpapi.ErrUnauthenticated)
	}
	b := startWith(t, a)
	answer := b.send(ask{method: "GET", path: "/v1/orders", header: map[string][]string{"Authorization": {"Bearer " + token}}})
	require.Equal(t, http.StatusServiceUnavailable, answer.Status)
	require.Equal(t, "1", answer.Header.Get("Retry-After"))

	i.publish(k)
	a.AMomentLater()
	_, err := a.Authenticate(t.Context(), token)
	require.NoError(t, err, "the issuer is back")
	i.fail()
	a.AMomentLater()
	_, err = a.Authenticate(t.Context(), token)
	require.NoError(t, err, "a known key, though the issuer is down")
	_, err = a.Authenticate(t.Context(), sign(t, claims(nil), jwa.ES256(), ecKey(t, "k2")))
	require.ErrorIs(t, err, httpapi.ErrUnauthenticated, "an unknown key, and the issuer is down")
}

// Ensure the first requests of a fresh process wait together for the keys, rather than fail because another one fetches
// them; and that the one that began the fetch may leave.
func TestFirstRequestsShareTheFetch(t *testing.T) {
	t.Parallel()
	testkit.MarkGoroutines(t)
	k := ecKey(t, "k1")
	i := newIssuer(t, k)
	release := i.hold()
	defer release()
	a := i.authenticator()
	token := sign(t, claims(nil), jwa.ES256(), k)

	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { _, err := a.Authenticate(ctx, token); left <- err }()
	testkit.AwaitGoroutines(t, waitsForKeys, 1)
	waiting := testkit.Together(8, func(int) error { _, err := a.Authenticate(t.Context(), token); return err })
	testkit.AwaitGoroutines(t, waitsForKeys, 9)
	leave()
	require.ErrorIs(t, <-left, context.Canceled)

	release()
	for _, err := range testkit.Receive(waiting, 8) {
		require.NoError(t, err)
	}
	require.LessOrEqual(t, i.fetched(), 2, "one fetch in the background, one for all who waited")
}

const waitsForKeys = "internal/httpapi.(*JWTAuthenticator).keySet"

// Ensure an answer of the issuer that arrives late does not replace a newer one: the fetch in the background of a fresh
// process gets the keys of before a rotation, and its answer is held until a request has asked for the keys of after it.
func TestALateAnswerReplacesNoNewerKeys(t *testing.T) {
	t.Parallel()
	testkit.MarkGoroutines(t)
	first, second := ecKey(t, "k1"), ecKey(t, "k2")
	i := newIssuer(t, first)
	release := i.hold()
	defer release()
	a := i.authenticator()
	testkit.Eventually(t, "the fetch in the background", func() bool { return i.fetched() == 1 })
	i.publish(first, second)
	i.answerAtOnce()
	rotated := testkit.Together(1, func(int) error {
		_, err := a.Authenticate(t.Context(), sign(t, claims(nil), jwa.ES256(), second))
		return err
	})
	testkit.AwaitGoroutines(t, waitsForKeys, 1)
	release()
	require.NoError(t, testkit.Take(t, rotated))
	for range 20 { // a request that met the older keys would be refused
		_, err := a.Authenticate(t.Context(), sign(t, claims(map[string]any{"sub": "bob"}), jwa.ES256(), second))
		require.NoError(t, err)
	}
}
