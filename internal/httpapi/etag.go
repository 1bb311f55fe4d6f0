package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

// resource is the resource that an entity tag belongs to. The tag of one resource never matches another one, not even
// an order's payment.
type resource struct {
	kind   string // order, payment or product
	tenant string
	id     string // the order's id or the sku
}

func orderResource(tenant string, id domain.OrderID) resource {
	return resource{"order", tenant, id.String()}
}

func paymentResource(tenant string, id domain.OrderID) resource {
	return resource{"payment", tenant, id.String()}
}

func productResource(tenant, sku string) resource { return resource{"product", tenant, sku} }

// tag is the strong entity tag of a version of r (RFC 9110, section 8.8.3). Versions leave the service only in this
// form, which is opaque: 16 bytes in base64url. The first eight identify the resource; the others mask the version, so
// that clients do not compute with it.
func (r resource) tag(version int64) string {
	name, mask := r.digest()
	raw := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, name), mask^uint64(version)) //nolint:gosec // G115: bits, not an amount
	return `"` + base64.RawURLEncoding.EncodeToString(raw) + `"`
}

// version parses an unquoted tag of r. It returns false for a tag of another resource.
func (r resource) version(opaque string) (version int64, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(opaque)
	name, mask := r.digest()
	if err != nil || len(raw) != 16 || binary.BigEndian.Uint64(raw) != name {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(raw[8:]) ^ mask), true //nolint:gosec // G115: bits, not an amount
}

// digest is the first two words of the SHA-256 of r's identity. No part of the identity can contain the separator.
func (r resource) digest() (name, mask uint64) {
	sum := sha256.Sum256([]byte(r.kind + "\x00" + r.tenant + "\x00" + r.id))
	return binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])
}

// tagList is the value of If-Match or If-None-Match.
type tagList struct {
	any  bool // the value is *
	tags []entityTag
}

type entityTag struct {
	weak   bool
	opaque string // without the quotes
}

// parseTags reads a list of entity tags (RFC 9110, sections 8.8.3 and 13.1.1). An absent value is an empty list.
func parseTags(value string) (tagList, error) {
	var list tagList
	rest := strings.Trim(value, " \t")
	if rest == "*" {
		return tagList{any: true}, nil
	}
	for rest != "" {
		if rest[0] == ',' { // empty elements are allowed (section 5.6.1)
			rest = strings.TrimLeft(rest[1:], " \t")
			continue
		}
		tag, after, ok := cutTag(rest)
		if !ok {
			return tagList{}, errInvalidPrecondition
		}
		list.tags = append(list.tags, tag)
		rest = strings.TrimLeft(after, " \t")
		if rest != "" && rest[0] != ',' {
			return tagList{}, errInvalidPrecondition
		}
	}
	return list, nil
}

// cutTag cuts one entity tag off the front of s.
func cutTag(s string) (t entityTag, rest string, ok bool) {
	s, t.weak = strings.CutPrefix(s, "W/")
	if !strings.HasPrefix(s, `"`) {
		return t, s, false
	}
	t.opaque, rest, ok = strings.Cut(s[1:], `"`)
	for i := range len(t.opaque) {
		if t.opaque[i] < 0x21 || t.opaque[i] == 0x7f {
			return t, s, false
		}
	}
	return t, rest, ok
}

// expected parses the versions of r in an If-Match header. Weak tags, tags of other resources and tags that this
// service did not make are ignored, because they cannot match (strong comparison).
func (r resource) expected(ifMatch string) (app.Expected, error) {
	list, err := parseTags(ifMatch)
	if err != nil {
		return nil, err
	}
	if list.any || len(list.tags) == 0 {
		return nil, errPreconditionRequired
	}
	versions := app.Expected{}
	for _, t := range list.tags {
		if version, ok := r.version(t.opaque); ok && !t.weak {
			versions = append(versions, version)
		}
	}
	return versions.Canonical(), nil
}

// matches reports whether the list contains etag, which is empty for a representation without a tag. Weak tags count
// only in a weak comparison (RFC 9110, section 8.8.3.2).
func (l tagList) matches(etag string, weakly bool) bool {
	return l.any || slices.ContainsFunc(l.tags, func(t entityTag) bool {
		return (weakly || !t.weak) && `"`+t.opaque+`"` == etag
	})
}
