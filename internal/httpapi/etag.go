package httpapi

import (
	"encoding/base64"
	"encoding/binary"
	"strings"

	"example.com/orders/internal/app"
)

// tag is the strong entity tag of a version (RFC 9110, section 8.8.3). It is the only place where a version leaves the
// service, and it is opaque: eight bytes in base64url, so that callers carry it back and do not compute with it.
func tag(version int64) string {
	return `"` + base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(version))) + `"`
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

// expected reads the versions that an If-Match names. A weak tag never matches in a strong comparison, and a tag that
// this service did not make names no version at all: both simply do not match.
func expected(ifMatch string) (app.Expected, error) {
	list, err := parseTags(ifMatch)
	if err != nil {
		return nil, err
	}
	if list.any || len(list.tags) == 0 {
		return nil, errPreconditionRequired
	}
	versions := app.Expected{}
	for _, t := range list.tags {
		raw, err := base64.RawURLEncoding.Strict().DecodeString(t.opaque)
		if err == nil && len(raw) == 8 && !t.weak {
			versions = append(versions, int64(binary.BigEndian.Uint64(raw)))
		}
	}
	return versions.Canonical(), nil
}

// unchanged tells whether a conditional read is answered 304: If-None-Match compares weakly.
func unchanged(ifNoneMatch *string, version int64) bool {
	if ifNoneMatch == nil {
		return false
	}
	list, err := parseTags(*ifNoneMatch)
	if err != nil {
		return false
	}
	for _, t := range list.tags {
		if `"`+t.opaque+`"` == tag(version) {
			return true
		}
	}
	return list.any
}
