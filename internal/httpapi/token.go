package httpapi

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxToken bounds a token, in bytes.
	maxToken = 16 << 10
	// maxName bounds the claims that are stored, in bytes.
	maxName = 255
	// latestDate is the last second of the year 9999. A later date is invalid and may overflow a timestamp.
	latestDate = 253402300799
)

// member is a JSON member that may be absent. A null is a value of the wrong type, not an absent member.
type member[T any] struct {
	value   T
	present bool
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (m *member[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() == 'n' {
		return errors.New("member is null")
	}
	m.present = true
	return json.UnmarshalDecode(d, &m.value)
}

// joseHeader is the header parameters that this service uses. Others are ignored (RFC 7515, section 4), including every
// key or certificate in the token itself (jwk, jku, x5u, x5c).
type joseHeader struct {
	Algorithm   member[string] `json:"alg"`
	KeyID       member[string] `json:"kid"`
	Type        member[string] `json:"typ"`
	ContentType member[string] `json:"cty"`
	Critical    jsontext.Value `json:"crit"`
	Base64      jsontext.Value `json:"b64"`
	Encryption  jsontext.Value `json:"enc"`
}

// parsedToken is a token that is parsed but not verified.
type parsedToken struct {
	header    joseHeader
	claims    []byte // as JSON, parsed only after the signature is verified
	signed    string // what the signature covers
	signature []byte
}

// parseToken reads a token in the JWS compact serialization (RFC 7515, section 7.1). Every part must be base64url
// without padding, line breaks or stray bits, so that each token has only one encoding.
func parseToken(token string) (parsedToken, error) {
	var t parsedToken
	parts := strings.SplitN(token, ".", 4)
	if len(token) > maxToken || len(parts) != 3 || strings.ContainsAny(token, "\r\n") {
		return t, errors.New("not a JWS in compact form")
	}
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		if decoded[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return t, fmt.Errorf("part %d: %w", i+1, err)
		}
	}
	if err := json.Unmarshal(decoded[0], &t.header); err != nil {
		return t, fmt.Errorf("header: %w", err)
	}
	t.claims, t.signature = decoded[1], decoded[2]
	t.signed = token[:len(parts[0])+1+len(parts[1])]
	return t, t.header.check()
}

// check refuses header parameters that this service does not support, before any key is looked up (RFC 8725, section
// 3.1).
func (h joseHeader) check() error {
	switch {
	case !slices.Contains(allowedAlgorithms, h.Algorithm.value):
		return errors.New("header: alg is not allowed")
	case h.KeyID.value == "":
		return errors.New("header: no kid")
	case h.Critical != nil: // well-formed or not: no extension is understood (RFC 7515, section 4.1.11)
		return errors.New("header: crit")
	case h.Base64 != nil && string(h.Base64) != "true":
		return errors.New("header: b64 is not true")
	case h.Encryption != nil:
		return errors.New("header: enc belongs to an encrypted token")
	case mediaType(h.ContentType.value) == "jwt":
		return errors.New("header: a nested token")
	}
	// Explicit typing (RFC 8725, section 3.11): an ID token or a logout token is no access token.
	if h.Type.present && !slices.Contains([]string{"jwt", "at+jwt"}, mediaType(h.Type.value)) {
		return errors.New("header: typ is not that of an access token")
	}
	return nil
}

// mediaType is a typ or cty without its optional prefix and in lower case (RFC 7515, section 4.1.9).
func mediaType(value string) string {
	return strings.TrimPrefix(strings.ToLower(value), "application/")
}

// claimSet is the claims that this service uses (RFC 7519, section 4.1; RFC 8693, section 4.2 for scope).
type claimSet struct {
	Issuer    member[string]      `json:"iss"`
	Subject   member[string]      `json:"sub"`
	Audience  audience            `json:"aud"`
	Expires   member[numericDate] `json:"exp"`
	NotBefore member[numericDate] `json:"nbf"`
	IssuedAt  member[numericDate] `json:"iat"`
	TokenID   member[string]      `json:"jti"`
	Tenant    member[string]      `json:"tenant"`
	Scope     member[string]      `json:"scope"`
}

// parseClaims parses the claims strictly: one JSON object in valid UTF-8 without duplicate members, and each claim of
// its exact type.
func parseClaims(payload []byte) (claimSet, error) {
	var c claimSet
	if err := json.Unmarshal(payload, &c); err != nil {
		return c, fmt.Errorf("claims: %w", err)
	}
	if !isName(c.Subject.value) || c.Tenant.present && !isName(c.Tenant.value) {
		return c, errors.New("claims: sub or tenant is not a name")
	}
	return c, nil
}

// earliest is the time before which the token is not valid: nbf, or iat where that is later.
func (c claimSet) earliest() time.Time {
	if c.IssuedAt.value.After(c.NotBefore.value.Time) {
		return c.IssuedAt.value.Time
	}
	return c.NotBefore.value.Time
}

// scopes splits the scope claim at spaces alone (RFC 6749, section 3.3): no other character separates.
func (c claimSet) scopes() []string {
	return slices.DeleteFunc(strings.Split(c.Scope.value, " "), func(s string) bool { return s == "" })
}

// isName reports whether a subject or tenant can be stored and shown: not empty, at most maxName bytes and without
// control characters. Nothing is normalized: names that differ in one byte are different names.
func isName(name string) bool {
	return name != "" && len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// audience is the aud claim: a string or an array of strings.
type audience []string

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (a *audience) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != '[' {
		var one member[string]
		err := json.UnmarshalDecode(d, &one)
		*a = audience{one.value}
		return err
	}
	var many []member[string]
	err := json.UnmarshalDecode(d, &many)
	for _, one := range many {
		*a = append(*a, one.value)
	}
	return err
}

// numericDate is a NumericDate: seconds since 1970, with or without a fraction (RFC 7519, section 2).
type numericDate struct{ time.Time }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (n *numericDate) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var seconds float64
	if err := json.UnmarshalDecode(d, &seconds); err != nil {
		return err
	}
	if math.Abs(seconds) > latestDate {
		return errors.New("date out of range")
	}
	whole, fraction := math.Modf(seconds)
	n.Time = time.Unix(int64(whole), int64(fraction*float64(time.Second)))
	return nil
}
