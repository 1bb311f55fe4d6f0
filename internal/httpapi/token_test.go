package httpapi_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/httpapi"
)

// rawSigner signs any bytes as a header and any bytes as claims, which no library for tokens does.
type rawSigner struct {
	private ed25519.PrivateKey
	auth    *httpapi.JWTAuthenticator
}

func newRawSigner(t testing.TB) rawSigner {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	return rawSigner{private, newIssuer(t, key(t, private, "k1", jwa.EdDSA())).authenticator()}
}

func (s rawSigner) token(header, claims string) string {
	return s.encoded(base64.RawURLEncoding.EncodeToString([]byte(header)), base64.RawURLEncoding.EncodeToString([]byte(claims)))
}

// encoded signs two parts as they are.
func (s rawSigner) encoded(header, claims string) string {
	signature := ed25519.Sign(s.private, []byte(header+"."+claims))
	return header + "." + claims + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// actor is the actor of a token, or nil where it is refused.
func (s rawSigner) actor(t testing.TB, token string) *app.Actor {
	t.Helper()
	actor, err := s.auth.Authenticate(t.Context(), token)
	if err != nil {
		require.ErrorIs(t, err, httpapi.ErrUnauthenticated)
		require.Empty(t, actor)
		return nil
	}
	return &actor
}

const goodHeader = `{"alg":"EdDSA","kid":"k1"}`

// headerWith is a good header with more members.
func headerWith(members string) string {
	return strings.TrimSuffix(goodHeader, "}") + "," + members + "}"
}

// claimsWith is good claims as text, with members instead of those of the same name; an empty value leaves one out.
func claimsWith(members ...string) string {
	names := []string{"iss", "aud", "exp", "sub"}
	all := map[string]string{"iss": `"` + tokenIssuer + `"`, "aud": `"` + tokenAudience + `"`, "exp": unix(time.Hour), "sub": `"u"`}
	for i := 0; i+1 < len(members); i += 2 {
		if _, known := all[members[i]]; !known {
			names = append(names, members[i])
		}
		all[members[i]] = members[i+1]
	}
	var parts []string
	for _, name := range names {
		if all[name] != "" {
			parts = append(parts, `"`+name+`":`+all[name])
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func unix(fromNow time.Duration) string { return strconv.FormatInt(time.Now().Add(fromNow).Unix(), 10) }

// tokenCase is the JSON of one header parameter or claim, and whether a token with it is accepted.
type tokenCase struct {
	json     string
	accepted bool
}

// headerCases is every header parameter of RFC 7515, section 4.1, and those of RFC 7516, 7519 and 7797 that a header may
// carry. alg and kid replace the good ones, the others are added.
var headerCases = map[string][]tokenCase{
	"alg": {
		{`"EdDSA"`, true},
		{``, false}, {`null`, false}, {`7`, false}, {`["EdDSA"]`, false}, {`""`, false}, {`"none"`, false}, {`"NONE"`, false}, {`"nOnE"`, false},
		{`"eddsa"`, false}, {`"EdDSA "`, false}, {`"ES256"`, false}, {`"RS256"`, false}, {`"HS256"`, false}, {`"Ed448"`, false}, {`"dir"`, false},
		{`"RSA-OAEP"`, false},
	},
	"kid": {
		{`"k1"`, true}, {`"\u006b1"`, true},
		{``, false}, {`null`, false}, {`1`, false}, {`""`, false}, {`"K1"`, false}, {`"k1 "`, false}, {`"k1\u0000"`, false}, {`"../k1"`, false},
		{`["k1"]`, false}, {`"k\ud8001"`, false},
	},
	"typ": {
		{``, true}, {`"JWT"`, true}, {`"jwt"`, true}, {`"at+jwt"`, true}, {`"application/at+jwt"`, true}, {`"AT+JWT"`, true}, {`"application/jwt"`, true},
		{`null`, false}, {`7`, false}, {`""`, false}, {`"id_token"`, false}, {`"logout+jwt"`, false}, {`"dpop+jwt"`, false}, {`"secevent+jwt"`, false},
		{`"JOSE"`, false}, {`"at+jwt "`, false}, {`"text/jwt"`, false}, {`"application/application/jwt"`, false}, {`["JWT"]`, false},
	},
	"cty": {
		{`"json"`, true}, {`""`, true},
		{`"JWT"`, false}, {`"jwt"`, false}, {`"application/jwt"`, false}, {`null`, false}, {`1`, false},
	},
	"crit": {
		{``, true},
		{`["urn:x"],"urn:x":1`, false}, {`["urn:x"]`, false}, {`[]`, false}, {`null`, false}, {`"urn:x"`, false}, {`{}`, false}, {`[1]`, false}, {`[""]`, false},
		{`["urn:x","urn:x"],"urn:x":1`, false}, {`["alg"]`, false}, {`["kid"]`, false}, {`["exp"],"exp":1`, false}, {`["b64"],"b64":true`, false}, {`["crit"]`, false},
		{`true`, false},
	},
	"b64": {{`true`, true}, {`false`, false}, {`null`, false}, {`0`, false}, {`"true"`, false}},
	"enc": {{`"A128GCM"`, false}, {`null`, false}},
	// A key or certificate that the token brings along changes nothing, whatever it is.
	"jwk":      {{`{"kty":"AKP","alg":"ML-DSA-65"}`, true}, {`7`, true}},
	"jku":      {{`"http://127.0.0.1:1/jwks.json"`, true}},
	"x5u":      {{`"http://127.0.0.1:1/x.pem"`, true}},
	"x5c":      {{`["AAAA"]`, true}},
	"x5t":      {{`"AAAA"`, true}},
	"x5t#S256": {{`"AAAA"`, true}},
	"zip":      {{`"DEF"`, true}},
	// Claims that are replicated as header parameters decide nothing.
	"iss":  {{`"https://other.test"`, true}, {`7`, true}},
	"sub":  {{`"root"`, true}},
	"aud":  {{`"another"`, true}},
	"Crit": {{`["urn:x"]`, true}}, // names are case-sensitive: this is another parameter, and not critical
	"ALG":  {{`"none"`, true}},
	"x":    {{`1`, true}, {`"\ud800"`, false}, {"\"\xff\"", false}, {`1,"x":1`, false}, {`1,"alg":"EdDSA"`, false}, {`{"y":1,"y":1}`, false}, {`tru`, false}},
}

// Ensure every header parameter decides what its standard says, next to its valid values: RFC 7515, section 4, RFC 7519,
// section 5, and RFC 8725, section 3.
func TestTokenHeaderParameters(t *testing.T) {
	t.Parallel()
	s := newRawSigner(t)
	for name, cases := range headerCases {
		for _, c := range cases {
			header := goodHeader
			switch {
			case name == "alg":
				header = `{"kid":"k1","typ":"JWT"` + optional("alg", c.json) + `}`
			case name == "kid":
				header = `{"alg":"EdDSA"` + optional("kid", c.json) + `}`
			case c.json != "":
				header = headerWith(`"` + name + `":` + c.json)
			}
			require.Equal(t, c.accepted, s.actor(t, s.token(header, claimsWith())) != nil, "%q", header)
		}
	}
	for _, header := range []string{
		``, ` `, `null`, `[]`, `"x"`, `7`, `{}`, `{`, goodHeader + goodHeader, goodHeader + "x", goodHeader + "\x00", "\xef\xbb\xbf" + goodHeader,
		`[` + goodHeader + `]`, `{"alg":"EdDSA","kid":"k1",}`, `{'alg':'EdDSA','kid':'k1'}`, `{"alg":"none","alg":"EdDSA","kid":"k1"}`,
	} {
		require.Nil(t, s.actor(t, s.token(header, claimsWith())), "%q", header)
	}
	require.NotNil(t, s.actor(t, s.token(" \t\r\n"+goodHeader+"\n", claimsWith())), "white space around JSON is JSON")
}

func optional(name, value string) string {
	if value == "" {
		return ""
	}
	return `,"` + name + `":` + value
}

// claimCases is every claim of RFC 7519, section 4.1, and ours. A claim replaces the good one, or is added.
func claimCases() map[string][]tokenCase {
	dates := []tokenCase{
		{`null`, false}, {`true`, false}, {`"` + unix(0) + `"`, false}, {`"2030-01-01T00:00:00Z"`, false}, {`{}`, false}, {`[]`, false}, {`[1]`, false},
		{`1e400`, false}, {`-1e400`, false}, {`1e30`, false}, {`9223372036854775808`, false}, {`NaN`, false}, {`0x1`, false}, {`01`, false}, {`1.`, false},
		{`""`, false}, {`253402300800`, false},
	}
	names := []tokenCase{
		{`"u"`, true}, {`"auth0|zoë müller"`, true}, {`"\u00fc"`, true}, {`"u\ufffd"`, true}, {"\"u\ufffd\"", true}, {`"\ud83c\udf75"`, true}, {`" "`, true},
		{`"` + strings.Repeat("u", 255) + `"`, true}, {`"` + strings.Repeat("u", 256) + `"`, false}, {`"` + strings.Repeat("ü", 128) + `"`, false},
		{`null`, false}, {`7`, false}, {`true`, false}, {`["u"]`, false}, {`{"u":1}`, false}, {`""`, false},
		{`"u\u0000"`, false}, {`"\u0000"`, false}, {`"u\n"`, false}, {`"u\u007f"`, false}, {`"u\u0085"`, false}, {`"u\u001b"`, false}, {"\"u\x00\"", false},
		{`"u\ud800"`, false}, {`"u\udc00"`, false}, {`"\udc00\ud800"`, false}, {`"\ud800u"`, false}, {`"\ud800\ud800"`, false},
		{"\"u\xff\"", false}, {"\"u\xc3\"", false}, {"\"u\xed\xa0\x80\"", false}, {"\"u\xc0\x80\"", false}, {"\"\xf4\x90\x80\x80\"", false}, {`"\x41"`, false},
	}
	without := []tokenCase{{``, false}}
	optional := []tokenCase{{``, true}}
	mine := func(cases ...[]tokenCase) []tokenCase {
		var all []tokenCase
		for _, c := range cases {
			all = append(all, c...)
		}
		return all
	}
	issuer, audience := `"`+tokenIssuer+`"`, `"`+tokenAudience+`"`
	return map[string][]tokenCase{
		"sub":    mine(names, without),
		"tenant": mine(names, optional),
		"iss": mine(without, []tokenCase{
			{issuer, true}, {`"` + tokenIssuer + `/"`, false}, {`"` + strings.ToUpper(tokenIssuer) + `"`, false}, {`""`, false}, {`null`, false}, {`7`, false},
			{`[` + issuer + `]`, false}, {`"` + tokenIssuer + `\u0000"`, false},
		}),
		"aud": mine(without, []tokenCase{
			{audience, true}, {`[` + audience + `]`, true}, {`["x",` + audience + `]`, true}, {`"ORDERS-API"`, false}, {`"orders-api x"`, false}, {`""`, false}, {`[]`, false},
			{`null`, false}, {`7`, false}, {`{"orders-api":1}`, false}, {`[` + audience + `,7]`, false}, {`[` + audience + `,null]`, false}, {`[[` + audience + `]]`, false},
		}),
		"exp": mine(dates, without, []tokenCase{
			{unix(time.Hour), true}, {unix(time.Hour) + ".5", true}, {unix(-10 * time.Second), true}, {"253402300799", true}, {"2.5e11", true},
			{unix(-31 * time.Second), false}, {`0`, false}, {`-1`, false}, {`-0`, false},
		}),
		"nbf": mine(dates, optional, []tokenCase{
			{unix(-time.Hour), true}, {`0`, true}, {`-1`, true}, {unix(10 * time.Second), true}, {unix(0) + ".25", true}, {unix(time.Minute), false}, {"253402300799", false},
		}),
		"iat": mine(dates, optional, []tokenCase{
			{unix(-time.Hour), true}, {`0`, true}, {`-1.5`, true}, {unix(10 * time.Second), true}, {unix(time.Minute), false},
		}),
		"jti":   mine(optional, []tokenCase{{`"id"`, true}, {`""`, true}, {`7`, false}, {`null`, false}, {`["id"]`, false}, {`"\ud800"`, false}}),
		"scope": mine(optional, []tokenCase{{`"a b"`, true}, {`""`, true}, {`null`, false}, {`7`, false}, {`["a"]`, false}, {`{"a":1}`, false}, {"\"a\xff\"", false}}),
		"x": mine(optional, []tokenCase{
			{`null`, true}, {`{"y":[1,{"z":1e400}]}`, true}, {`{"y":1,"y":2}`, false}, {`"\ud800"`, false}, {"\"\xff\"", false}, {`1,"x":2`, false},
			{`1,"sub":"v"`, false}, {`1,"\u0073ub":"v"`, false}, {`1,"Sub":"v"`, true}, {`1,"tenant":"a","tenant":"b"`, false}, {`01`, false},
		}),
	}
}

// Ensure every claim is of its exact type and within its bounds, next to its valid values (RFC 7519, section 4).
func TestTokenClaims(t *testing.T) {
	t.Parallel()
	s := newRawSigner(t)
	for name, cases := range claimCases() {
		for _, c := range cases {
			claims := claimsWith(name, c.json)
			require.Equal(t, c.accepted, s.actor(t, s.token(goodHeader, claims)) != nil, "%q", claims)
		}
	}
	good := claimsWith()
	for _, claims := range []string{
		``, ` `, `null`, `[]`, `{}`, `"x"`, `7`, `[` + good + `]`, good + good, good + ` x`, good + "\x00", good[1:], good[:len(good)-1], "\xef\xbb\xbf" + good,
		strings.Replace(good, `{`, `{"sub":"v",`, 1), strings.Repeat("[", 5000),
	} {
		require.Nil(t, s.actor(t, s.token(goodHeader, claims)), "%q", claims)
	}
}

// Ensure a token has one spelling: three parts of base64url without padding, line breaks or stray bits, within its bound.
func TestTokenEncoding(t *testing.T) {
	t.Parallel()
	s := newRawSigner(t)
	// One byte over a multiple of three leaves four bits that must be zero; two bytes leave two.
	header, claims := padded(goodHeader, 1), padded(claimsWith(), 2)
	good := s.encoded(header, claims)
	require.NotNil(t, s.actor(t, good))
	parts := strings.Split(good, ".")
	stray := func(part string) string { return part[:len(part)-1] + string(part[len(part)-1]+1) }
	for name, token := range map[string]string{
		"stray bits in the header":    s.encoded(stray(header), claims),
		"stray bits in the claims":    s.encoded(header, stray(claims)),
		"stray bits in the signature": header + "." + claims + "." + stray(parts[2]),
		"a padded header":             s.encoded(header+"==", claims),
		"padded claims":               s.encoded(header, claims+"="),
		"a padded signature":          good + "==",
		"a line break":                s.encoded(header[:4]+"\n"+header[4:], claims),
		"a carriage return":           s.encoded(header, claims[:4]+"\r"+claims[4:]),
		"a line break at the end":     good + "\n",
		"a space":                     " " + good,
		"base64 of the other kind":    s.encoded(base64.RawStdEncoding.EncodeToString([]byte(headerWith(`"x":"???>>>"`))), claims),
		"two parts":                   header + "." + claims,
		"four parts":                  good + ".",
		"five parts, as encrypted":    good + "." + parts[2] + "." + parts[2],
		"a leading dot":               "." + good,
		"no signature":                header + "." + claims + ".",
		"half a signature":            header + "." + claims + "." + parts[2][:43],
		"a detached payload":          header + ".." + parts[2],
		"flattened JSON":              `{"payload":"` + claims + `","protected":"` + header + `","signature":"` + parts[2] + `"}`,
		"JSON with signatures":        `{"payload":"` + claims + `","signatures":[{"protected":"` + header + `","signature":"` + parts[2] + `"}]}`,
		"a null":                      good + "\x00",
	} {
		require.Nil(t, s.actor(t, token), name)
	}
	fits := "" // the largest token within the bound, and the next one
	for n := httpapi.MaxToken*3/4 - 600; ; n++ {
		token := s.token(goodHeader, claimsWith("x", `"`+strings.Repeat("x", n)+`"`))
		if len(token) > httpapi.MaxToken {
			require.Nil(t, s.actor(t, token))
			break
		}
		fits = token
	}
	require.NotNil(t, s.actor(t, fits))
}

// padded encodes JSON after white space that makes its length a multiple of three and a rest.
func padded(text string, rest int) string {
	for len(text)%3 != rest {
		text = " " + text
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// Ensure scopes are separated by spaces alone (RFC 6749, section 3.3): nothing else makes two of one.
func TestScopesAreSeparatedBySpaces(t *testing.T) {
	t.Parallel()
	s := newRawSigner(t)
	for scope, want := range map[string][]string{
		`a b`: {"a", "b"}, ` a  b `: {"a", "b"}, `a`: {"a"}, ``: {}, ` `: {},
		`a\tb`: {"a\tb"}, `a\nb`: {"a\nb"}, `a\u00a0b`: {"a\u00a0b"}, `a\u2003b`: {"a\u2003b"}, `a,b`: {"a,b"}, `a\rb c`: {"a\rb", "c"},
	} {
		actor := s.actor(t, s.token(goodHeader, claimsWith("scope", `"`+scope+`"`)))
		require.NotNil(t, actor, scope)
		require.Equal(t, want, actor.Scopes, scope)
	}
}

// Ensure two subjects that differ in one byte are two actors, and that none of them is normalized.
func TestNamesAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	s := newRawSigner(t)
	seen := map[string]string{}
	for _, name := range []string{"u", "U", "u ", " u", "ü", "u\u0308", "u\u200b", "u\ufffd", "\u212a", "k", "K", "ﬁ", "fi", "u/v", "u|v"} {
		raw, err := json.Marshal(name)
		require.NoError(t, err)
		actor := s.actor(t, s.token(goodHeader, claimsWith("sub", string(raw), "tenant", string(raw))))
		require.NotNil(t, actor, name)
		require.Equal(t, app.Actor{Tenant: name, ID: name, Scopes: []string{}}, *actor)
		require.NotContains(t, seen, actor.ID)
		seen[actor.ID] = name
	}
}

// Ensure a token without tenant is the default tenant's, unless the deployment requires the claim.
func TestTenantCanBeRequired(t *testing.T) {
	t.Parallel()
	k := ecKey(t, "k1")
	c := newIssuer(t, k).config()
	without := sign(t, claims(map[string]any{"tenant": nil}), jwa.ES256(), k)
	actor, err := newAuthenticator(t, c, &keyWatch{}).Authenticate(t.Context(), without)
	require.NoError(t, err)
	require.Equal(t, "default", actor.Tenant)

	c.TenantRequired = true
	required := newAuthenticator(t, c, &keyWatch{})
	_, err = required.Authenticate(t.Context(), without)
	require.ErrorIs(t, err, httpapi.ErrUnauthenticated)
	actor, err = required.Authenticate(t.Context(), sign(t, claims(nil), jwa.ES256(), k))
	require.NoError(t, err)
	require.Equal(t, "acme", actor.Tenant)
}

// Ensure nothing that a token names is fetched.
func TestTokensCauseNoRequests(t *testing.T) {
	t.Parallel()
	s := newRawSigner(t)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was fetched", r.URL) }))
	t.Cleanup(server.Close)
	header := headerWith(`"jku":"` + server.URL + `/jwks","x5u":"` + server.URL + `/x5u"`)
	require.NotNil(t, s.actor(t, s.token(header, claimsWith())))
	require.Nil(t, s.actor(t, s.token(strings.Replace(header, "k1", "k2", 1), claimsWith())))
}

// Ensure a token whose header is refused causes no fetch of keys, though its key is unknown.
func TestRefusedHeadersCauseNoFetch(t *testing.T) {
	t.Parallel()
	k := ecKey(t, "k1")
	i := newIssuer(t, k)
	a := i.authenticator()
	_, err := a.Authenticate(t.Context(), sign(t, claims(nil), jwa.ES256(), k))
	require.NoError(t, err)
	a.AMomentLater()
	before := i.fetched()
	for _, header := range []map[string]any{
		{"alg": "none", "kid": "k2"}, {"alg": "HS256", "kid": "k2"}, {"alg": "ES256"}, {"alg": "ES256", "kid": "k2", "crit": []string{"x"}, "x": 1},
	} {
		_, err := a.Authenticate(t.Context(), handmade(t, header, claims(nil), "AAAA"))
		require.ErrorIs(t, err, httpapi.ErrUnauthenticated, "%v", header)
	}
	require.LessOrEqual(t, i.fetched(), before+1, "one fetch may be that of the start")
}

// FuzzToken signs any header and any claims. What is accepted is what encoding/json, which is laxer, reads as well, in
// valid UTF-8, under the same name.
func FuzzToken(f *testing.F) {
	for _, name := range slices.Sorted(maps.Keys(headerCases)) {
		for _, c := range headerCases[name] {
			f.Add([]byte(headerWith(`"`+name+`":`+c.json)), []byte(claimsWith()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(claimCases())) {
		for _, c := range claimCases()[name] {
			f.Add([]byte(goodHeader), []byte(claimsWith(name, c.json)))
		}
	}
	s := newRawSigner(f)
	f.Fuzz(func(t *testing.T, header, claims []byte) {
		actor := s.actor(t, s.token(string(header), string(claims)))
		if actor == nil {
			return
		}
		var h map[string]any
		require.NoError(t, json.Unmarshal(header, &h))
		require.Equal(t, []any{"EdDSA", "k1"}, []any{h["alg"], h["kid"]})
		require.NotContains(t, h, "crit")
		var c map[string]any
		lax := json.NewDecoder(bytes.NewReader(claims))
		lax.UseNumber()
		require.NoError(t, lax.Decode(&c))
		require.True(t, utf8.Valid(header) && utf8.Valid(claims))
		require.Equal(t, c["sub"], actor.ID)
		require.Equal(t, tokenIssuer, c["iss"])
		require.NotContains(t, actor.ID+actor.Tenant, "\x00")
		expires, err := c["exp"].(json.Number).Float64()
		require.NoError(t, err)
		require.Greater(t, expires, float64(time.Now().Add(-time.Minute).Unix()))
	})
}
