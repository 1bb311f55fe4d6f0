package httpapi_test

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/httpapi"
)

// unusableKeys is keys that no token can be checked with, by what is wrong with them.
func unusableKeys(t testing.TB) map[string]string {
	t.Helper()
	curve, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	exchange, err := ecdh.X25519().GenerateKey(rand.Reader)
	require.NoError(t, err)
	good := publicJSON(t, ecKey(t, "k1"))
	with := func(members string) string { return strings.TrimSuffix(good, "}") + "," + members + "}" }
	full := func(k jwk.Key) string {
		raw, err := json.Marshal(k)
		require.NoError(t, err)
		return string(raw)
	}
	return map[string]string{
		"a type of the future":   `{"kty":"AKP","alg":"ML-DSA-65","kid":"k1","pub":"AAAA","use":"sig"}`,
		"an unknown curve":       `{"kty":"EC","crv":"P-999","kid":"k1","x":"AAAA","y":"AAAA"}`,
		"an unknown OKP curve":   `{"kty":"OKP","crv":"Ed999","kid":"k1","x":"AAAA"}`,
		"a point off the curve":  `{"kty":"EC","crv":"P-256","kid":"k1","x":"AAAA","y":"AAAA"}`,
		"no type":                `{"kid":"k1","use":"sig"}`,
		"no members":             `{}`,
		"a type that is a list":  `{"kty":["EC"],"kid":"k1"}`,
		"not an object":          `"k1"`,
		"null":                   `null`,
		"a list":                 `[]`,
		"a number":               `7`,
		"no modulus":             `{"kty":"RSA","e":"AQAB","kid":"k1"}`,
		"a modulus of one byte":  `{"kty":"RSA","n":"AQ","e":"AQAB","kid":"k1"}`,
		"base64 that is not":     `{"kty":"RSA","n":"???","e":"AQAB","kid":"k1"}`,
		"RSA of 1024 bits":       `{"kty":"RSA","n":"` + strings.Repeat("_", 170) + `8","e":"AQAB","kid":"k1"}`,
		"a private EC key":       full(ecKey(t, "k1")),
		"a private RSA key":      full(key(t, rsaKey(t), "k1", jwa.RS256())),
		"a symmetric key":        `{"kty":"oct","k":"c2VjcmV0LXRoYXQtZXZlcnlvbmUtY2FuLXJlYWQtaW4tdGhlLXNldA","kid":"k1","alg":"HS256"}`,
		"a symmetric ES256 key":  `{"kty":"oct","k":"c2VjcmV0","kid":"k1","alg":"ES256"}`,
		"a curve off the list":   publicJSON(t, key(t, curve, "k1", nil)),
		"a key for key exchange": publicJSON(t, key(t, exchange, "k1", nil)),
		"no kid":                 strings.Replace(good, `"kid":"k1"`, `"x-kid":"k1"`, 1),
		"an empty kid":           strings.Replace(good, `"kid":"k1"`, `"kid":""`, 1),
		"a kid of another type":  strings.Replace(good, `"kid":"k1"`, `"kid":1`, 1),
		"for encryption":         with(`"use":"enc"`),
		"of another use":         with(`"use":"x"`),
		"not for verifying":      with(`"key_ops":["sign"]`),
		"for no operation":       with(`"key_ops":[]`),
		"for verifying, but enc": with(`"use":"enc","key_ops":["verify"]`),
		"sig, but not verifying": with(`"use":"sig","key_ops":["encrypt"]`),
		"of another algorithm":   strings.Replace(good, `"ES256"`, `"RS256"`, 1),
		"an algorithm off list":  strings.Replace(good, `"ES256"`, `"ES384"`, 1),
		"for key agreement":      strings.Replace(good, `"ES256"`, `"ECDH-ES"`, 1),
		"a repeated member":      with(`"kid":"k1"`),
		"invalid UTF-8":          with("\"x\":\"\xff\""),
		"a lone surrogate":       with(`"x":"\ud800"`),
	}
}

// Ensure a key that cannot be used does no harm to the others: neither in the first set of a fresh process nor in one that
// rotates a new key in, and is logged and counted once for as long as it is published.
func TestUnusableKeysAreSkipped(t *testing.T) {
	t.Parallel()
	bad := unusableKeys(t)
	good, rotated := ecKey(t, "k1"), ecKey(t, "k2")
	before, after := sign(t, claims(nil), jwa.ES256(), good), sign(t, claims(nil), jwa.ES256(), rotated)
	for name, unusable := range bad {
		for _, order := range [][2]string{{unusable, ""}, {"", unusable}} {
			watch := &keyWatch{}
			set := func(keys ...string) string {
				all := slices.DeleteFunc(append(append([]string{order[0]}, keys...), order[1]), func(k string) bool { return k == "" })
				return `{"keys":[` + strings.Join(all, ",") + `]}`
			}
			i := newIssuer(t)
			i.publishRaw(set(publicJSON(t, good)))
			a := newAuthenticator(t, i.config(), watch)
			_, err := a.Authenticate(t.Context(), before)
			require.NoError(t, err, "%s, from the start", name)

			i.publishRaw(set(publicJSON(t, good), publicJSON(t, rotated)))
			a.AMomentLater()
			_, err = a.Authenticate(t.Context(), after)
			require.NoError(t, err, "%s, beside a rotated key", name)
			log, skipped := watch.seen()
			require.Equal(t, 1, skipped, "%s: %s", name, log)
			require.Equal(t, 1, strings.Count(log, "signing key was skipped"), name)
			require.NotContains(t, log, `"d"`)
			require.NotContains(t, log, "c2VjcmV0")
		}
	}
	all := strings.Join(slices.Collect(maps.Values(bad)), ",")
	watch := &keyWatch{}
	i := newIssuer(t)
	i.publishRaw(`{"keys":[` + all + `]}`)
	_, err := newAuthenticator(t, i.config(), watch).Authenticate(t.Context(), before)
	require.ErrorIs(t, err, httpapi.ErrUnauthenticated, "a set without one usable key is a set")
	require.NotErrorIs(t, err, app.ErrTryAgain)
	_, skipped := watch.seen()
	require.Equal(t, len(bad), skipped)
}

// Ensure a key that comes back after it was withdrawn is reported again.
func TestASkippedKeyIsReportedEachTimeItAppears(t *testing.T) {
	t.Parallel()
	watch := &keyWatch{}
	k, i := ecKey(t, "k1"), newIssuer(t)
	a := newAuthenticator(t, i.config(), watch)
	unknown := sign(t, claims(nil), jwa.ES256(), ecKey(t, "k9"))
	for round, members := range []string{`{"kty":"AKP"},`, `{"kty":"AKP"},{"kty":"AKP"},`, ``, `{"kty":"AKP"},`} {
		i.publishRaw(`{"keys":[` + members + publicJSON(t, k) + `]}`)
		a.AMomentLater()
		_, err := a.Authenticate(t.Context(), unknown)
		require.ErrorIs(t, err, httpapi.ErrUnauthenticated)
		_, skipped := watch.seen()
		require.Equal(t, []int{1, 1, 1, 2}[round], skipped, "round %d", round)
	}
}

// Ensure two keys of one id are both tried: an issuer may rotate a key without renaming it, and may have one id for keys
// of two types.
func TestKeysThatShareAnID(t *testing.T) {
	t.Parallel()
	first, second := ecKey(t, "k1"), ecKey(t, "k1")
	third := key(t, rsaKey(t), "k1", nil)
	a := newIssuer(t, first, second, third, first).authenticator()
	for algorithm, k := range map[jwa.SignatureAlgorithm][]jwk.Key{jwa.ES256(): {first, second}, jwa.RS256(): {third}, jwa.PS256(): {third}} {
		for _, private := range k {
			_, err := a.Authenticate(t.Context(), sign(t, claims(nil), algorithm, private))
			require.NoError(t, err, algorithm)
		}
	}
	_, err := a.Authenticate(t.Context(), sign(t, claims(nil), jwa.ES256(), ecKey(t, "k1")))
	require.ErrorIs(t, err, httpapi.ErrUnauthenticated)
}

// Ensure a key's own members allow what they name: use, key_ops and members that are not known.
func TestUsableKeysWithMoreMembers(t *testing.T) {
	t.Parallel()
	k := ecKey(t, "k1")
	public, token := publicJSON(t, k), sign(t, claims(nil), jwa.ES256(), k)
	for _, members := range []string{`"use":"sig"`, `"key_ops":["verify"]`, `"key_ops":["encrypt","verify"]`, `"use":"sig","key_ops":["verify"]`, `"note":{"y":null}`} {
		i := newIssuer(t)
		i.publishRaw(`{"keys":[` + strings.TrimSuffix(public, "}") + "," + members + `}],"x":1}`)
		_, err := i.authenticator().Authenticate(t.Context(), token)
		require.NoError(t, err, members)
	}
}

// Ensure an answer that is no key set leaves the keys as they are: none in a fresh process, the known ones in another.
func TestAnswersThatAreNoKeySet(t *testing.T) {
	t.Parallel()
	k, rotated := ecKey(t, "k1"), ecKey(t, "k2")
	public := publicJSON(t, rotated)
	before, after := sign(t, claims(nil), jwa.ES256(), k), sign(t, claims(nil), jwa.ES256(), rotated)
	for name, answer := range map[string]string{
		"nothing": ``, "HTML": `<html>`, "null": `null`, "no keys": `{}`, "keys that are null": `{"keys":null}`, "keys that are an object": `{"keys":{}}`,
		"a list": `[` + public + `]`, "a cut answer": `{"keys":[` + public, "two answers": `{"keys":[` + public + `]}{}`, "another name": `{"Keys":[` + public + `]}`,
		"one byte too many": `{"keys":[` + public + `]}` + strings.Repeat(" ", httpapi.MaxKeySet+1-len(`{"keys":[`+public+`]}`)),
	} {
		watch := &keyWatch{}
		i := newIssuer(t)
		i.publishRaw(answer)
		a := newAuthenticator(t, i.config(), watch)
		_, err := a.Authenticate(t.Context(), after)
		require.ErrorIs(t, err, app.ErrTryAgain, name)

		i.publish(k)
		a.AMomentLater()
		_, err = a.Authenticate(t.Context(), before)
		require.NoError(t, err, name)
		i.publishRaw(answer)
		a.AMomentLater()
		_, err = a.Authenticate(t.Context(), after)
		require.ErrorIs(t, err, httpapi.ErrUnauthenticated, name)
		_, err = a.Authenticate(t.Context(), before)
		require.NoError(t, err, name)
		log, _ := watch.seen()
		require.Contains(t, log, "signing keys were not fetched", name)
	}
	i := newIssuer(t)
	i.publishRaw(`{"keys":[` + public + `]}` + strings.Repeat(" ", httpapi.MaxKeySet-len(`{"keys":[`+public+`]}`)))
	_, err := i.authenticator().Authenticate(t.Context(), after)
	require.NoError(t, err, "an answer of the largest size")
}

// Ensure keys come from the configured URL alone: a redirect from it, even to the same host, is not followed.
func TestKeyRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	k := ecKey(t, "k1")
	i := newIssuer(t, k)
	server := httptest.NewServer(http.RedirectHandler(i.url, http.StatusFound))
	t.Cleanup(server.Close)
	c := i.config()
	c.JWKSURL = server.URL
	_, err := newAuthenticator(t, c, &keyWatch{}).Authenticate(t.Context(), sign(t, claims(nil), jwa.ES256(), k))
	require.ErrorIs(t, err, app.ErrTryAgain)
	require.Zero(t, i.fetched())
}

// Ensure a key is used with its own algorithm only, whatever a token's header says of it.
func TestAlgorithmsAreBoundToKeys(t *testing.T) {
	t.Parallel()
	raw := rsaKey(t)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	keys := map[string]jwk.Key{
		"RS256": key(t, raw, "RS256", jwa.RS256()), "PS256": key(t, raw, "PS256", jwa.PS256()),
		"ES256": ecKey(t, "ES256"), "EdDSA": key(t, edwards, "EdDSA", jwa.EdDSA()),
	}
	a := newIssuer(t, slices.Collect(maps.Values(keys))...).authenticator()
	for id, k := range keys {
		for _, header := range []string{"RS256", "PS256", "ES256", "EdDSA"} {
			good := sign(t, claims(nil), algorithmOf(t, id), k)
			parts := strings.Split(good, ".")
			token := handmade(t, map[string]any{"alg": header, "kid": id}, claims(nil), parts[2])
			if header == id {
				token = good
			} else if strings.HasSuffix(header, "S256") && strings.HasSuffix(id, "S256") && id != "ES256" && header != "ES256" {
				other := keys[header] // the same RSA key: a good signature of the other algorithm
				require.NoError(t, other.Set(jwk.KeyIDKey, id))
				token = sign(t, claims(nil), algorithmOf(t, header), other)
				require.NoError(t, other.Set(jwk.KeyIDKey, header))
			}
			_, err := a.Authenticate(t.Context(), token)
			if header == id {
				require.NoError(t, err, id)
			} else {
				require.ErrorIs(t, err, httpapi.ErrUnauthenticated, "%s with the key of %s", header, id)
			}
		}
	}
}

func algorithmOf(t testing.TB, name string) jwa.SignatureAlgorithm {
	t.Helper()
	algorithm, ok := jwa.LookupSignatureAlgorithm(name)
	require.True(t, ok)
	return algorithm
}
