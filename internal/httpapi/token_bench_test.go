package httpapi_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"testing"

	"github.com/lestrrat-go/jwx/v3/jwa"
)

// BenchmarkAuthenticate measures one request's share of the authentication, for a token that the process has seen.
func BenchmarkAuthenticate(b *testing.B) {
	raw, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	rsaPrivate := rsaKey(b)
	for name, c := range map[string]struct {
		private   any
		algorithm jwa.SignatureAlgorithm
	}{"ES256": {raw, jwa.ES256()}, "RS256": {rsaPrivate, jwa.RS256()}} {
		b.Run(name, func(b *testing.B) {
			k := key(b, c.private, "k1", c.algorithm)
			a := newIssuer(b, k).authenticator()
			token := sign(b, claims(nil), c.algorithm, k)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Authenticate(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
