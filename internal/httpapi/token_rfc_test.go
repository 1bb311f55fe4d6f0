package httpapi_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"math/big"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/stretchr/testify/require"
)

// Ensure docs/tokens.md has a row for each header parameter and claim that RFC 7515, section 4.1, and RFC 7519, sections 4.1
// and 5, register, and that each row of it has cases in the tables of token_test.go.
func TestTokenPageAndCasesAgree(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/tokens.md")
	require.NoError(t, err)
	header, claims, _ := strings.Cut(string(page), "\n## Claims\n")
	claims, _, _ = strings.Cut(claims, "\n## Best current practices\n")
	for _, c := range []struct {
		text       string
		registered []string
		cases      map[string][]tokenCase
	}{
		{header, []string{
			"alg", "jku", "jwk", "kid", "x5u", "x5c", "x5t", "x5t#S256", "typ", "cty", "crit", "iss", "sub", "aud",
		}, headerCases},
		{claims, []string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti"}, claimCases()},
	} {
		var rows []string
		for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(c.text, -1) {
			rows = append(rows, m[1])
			require.NotEmpty(t, c.cases[m[1]], "%s has no cases", m[1])
		}
		require.Subset(t, rows, c.registered)
	}
}

// Ensure a signature counts in the one form of RFC 7518, section 3.4, and RFC 8032, section 5.1.7: of exact length, with numbers
// within their order. A token whose signature can be written in two ways would be two tokens (RFC 8725, section 3.3).
func TestSignaturesHaveOneForm(t *testing.T) {
	t.Parallel()
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	a := newIssuer(t, key(t, curve, "ec", jwa.ES256()), key(t, edwards, "ed", jwa.EdDSA())).authenticator()
	accepted := func(signed string, signature []byte) bool {
		_, err := a.Authenticate(t.Context(), signed+"."+base64.RawURLEncoding.EncodeToString(signature))
		return err == nil
	}
	encode := base64.RawURLEncoding.EncodeToString
	claims := encode([]byte(claimsWith()))

	signed := encode([]byte(`{"alg":"ES256","kid":"ec"}`)) + "." + claims
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, curve, digest[:])
	require.NoError(t, err)
	der, err := ecdsa.SignASN1(rand.Reader, curve, digest[:])
	require.NoError(t, err)
	fixed := func(numbers ...*big.Int) (all []byte) {
		for _, n := range numbers {
			all = append(all, n.FillBytes(make([]byte, 32))...)
		}
		return all
	}
	require.True(t, accepted(signed, fixed(r, s)))
	order, zero := elliptic.P256().Params().N, new(big.Int)
	for name, signature := range map[string][]byte{
		"zeros": fixed(zero, zero), "r is zero": fixed(zero, s), "s is zero": fixed(r, zero), "r is the order": fixed(order, s),
		"DER": der, "a byte more": append(fixed(r, s), 0), "a byte less": fixed(r, s)[:63], "numbers of 33 bytes": append([]byte{0}, append(fixed(r), append([]byte{0}, fixed(s)...)...)...),
	} {
		require.False(t, accepted(signed, signature), "ES256: %s", name)
	}

	signed = encode([]byte(`{"alg":"EdDSA","kid":"ed"}`)) + "." + claims
	good := ed25519.Sign(edwards, []byte(signed))
	require.True(t, accepted(signed, good))
	for name, signature := range map[string][]byte{
		"zeros": make([]byte, 64), "a byte more": append(good, 0), "a byte less": good[:63], "s plus the order": plusOrder(good),
	} {
		require.False(t, accepted(signed, signature), "EdDSA: %s", name)
	}
}

// plusOrder adds the order of Ed25519's group to s, which is the second half, little-endian.
func plusOrder(signature []byte) []byte {
	order, _ := new(big.Int).SetString("1000000000000000000000000000000014def9dea2f79cd65812631a5cf5d3ed", 16)
	s := new(big.Int).Add(order, new(big.Int).SetBytes(reversed(signature[32:])))
	return append(append([]byte{}, signature[:32]...), reversed(s.FillBytes(make([]byte, 32)))...)
}

func reversed(b []byte) []byte {
	turned := make([]byte, len(b))
	for i := range b {
		turned[len(b)-1-i] = b[i]
	}
	return turned
}
