package httpapi

import (
	"math"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

var anyOrder = orderResource("default", uuid.MustParse("019ae6a0-58c0-7b1e-9d3c-3f3a5b1f6c42")) //nolint:gochecknoglobals // a constant

// Ensure lists of entity tags are read as RFC 9110 writes them (sections 5.6.1, 8.8.3 and 13.1), and nothing else is.
func TestParseTags(t *testing.T) {
	t.Parallel()
	strong := func(opaque ...string) tagList {
		var l tagList
		for _, o := range opaque {
			l.tags = append(l.tags, entityTag{opaque: o})
		}
		return l
	}
	for _, c := range []struct {
		name, value string
		want        tagList
		malformed   bool
	}{
		{name: "absent", value: "", want: tagList{}},
		{name: "blank", value: " \t ", want: tagList{}},
		{name: "any", value: "*", want: tagList{any: true}},
		{name: "any in white space", value: " *\t", want: tagList{any: true}},
		{name: "one", value: `"a"`, want: strong("a")},
		{name: "an empty tag", value: `""`, want: strong("")},
		{name: "weak", value: `W/"a"`, want: tagList{tags: []entityTag{{weak: true, opaque: "a"}}}},
		{name: "a list", value: `"a", "b","c"`, want: strong("a", "b", "c")},
		{name: "white space around", value: "\t\"a\" \t,\t \"b\" ", want: strong("a", "b")},
		{name: "empty elements", value: `, ,"a",,"b", ,`, want: strong("a", "b")},
		{name: "only empty elements", value: `,,`, want: tagList{}},
		{name: "a comma inside", value: `"a,b"`, want: strong("a,b")},
		{name: "a backslash is no escape", value: `"a\", "b"`, want: strong(`a\`, "b")},
		{name: "every character there may be", value: `"!#~` + "\x80\xff" + `"`, want: strong("!#~\x80\xff")},
		{name: "mixed", value: `W/"a", "a"`, want: tagList{tags: []entityTag{{weak: true, opaque: "a"}, {opaque: "a"}}}},

		{name: "unquoted", value: `a`, malformed: true},
		{name: "unquoted in a list", value: `"a", b`, malformed: true},
		{name: "unbalanced", value: `"a`, malformed: true},
		{name: "unbalanced at the end", value: `"a", "`, malformed: true},
		{name: "unbalanced at the start", value: `a"`, malformed: true},
		{name: "no comma", value: `"a" "b"`, malformed: true},
		{name: "no comma at all", value: `"a""b"`, malformed: true},
		{name: "something after", value: `"a"x`, malformed: true},
		{name: "a space inside", value: `"a b"`, malformed: true},
		{name: "a tab inside", value: "\"a\tb\"", malformed: true},
		{name: "a delete inside", value: "\"a\x7fb\"", malformed: true},
		{name: "a null inside", value: "\"a\x00b\"", malformed: true},
		{name: "any in a list", value: `*, "a"`, malformed: true},
		{name: "any after a tag", value: `"a", *`, malformed: true},
		{name: "any twice", value: `*, *`, malformed: true},
		{name: "any in quotes with a weak mark", value: `W/*`, malformed: true},
		{name: "a small weak mark", value: `w/"a"`, malformed: true},
		{name: "a weak mark alone", value: `W/`, malformed: true},
		{name: "a weak mark apart", value: `W/ "a"`, malformed: true},
		{name: "other quotes", value: `'a'`, malformed: true},
		{name: "semicolons", value: `"a"; "b"`, malformed: true},
	} {
		got, err := parseTags(c.value)
		if c.malformed {
			require.ErrorIs(t, err, errInvalidPrecondition, c.name)
			continue
		}
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, got, c.name)
	}
}

// Ensure a tag is strong, opaque, within the contract's bounds and different for every version, and reads back.
//
// Standard: litespec/ext/concurrency#apply-http-version-preconditions
// Standard: litespec/ext/concurrency#hide-provider-version-values
func TestTagIsStrongAndOpaque(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, version := range []int64{1, 2, 9, 10, 12345, math.MaxInt64} {
		made := anyOrder.tag(version)
		require.Regexp(t, `^"[A-Za-z0-9_-]{1,64}"$`, made)
		require.False(t, seen[made], "two versions share the tag %s", made)
		seen[made] = true
		versions, err := anyOrder.expected(made)
		require.NoError(t, err)
		require.Equal(t, app.Expected{version}, versions)
	}
	require.NotContains(t, anyOrder.tag(12345), "12345", "a tag to compute with")
}

// Ensure If-Match compares strongly, counts a list as matching if one member does, and does not take an absent value or
// * for a version.
//
// Standard: litespec/ext/concurrency#return-precondition-outcomes
func TestExpectedVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, value string
		want        app.Expected
		err         *domain.Error
	}{
		{name: "one", value: anyOrder.tag(7), want: app.Expected{7}},
		{name: "a list", value: anyOrder.tag(9) + ", " + anyOrder.tag(7), want: app.Expected{7, 9}},
		{name: "the same twice", value: anyOrder.tag(7) + "," + anyOrder.tag(7), want: app.Expected{7}},
		{name: "weak", value: "W/" + anyOrder.tag(7), want: app.Expected{}},
		{name: "weak beside strong", value: "W/" + anyOrder.tag(7) + ", " + anyOrder.tag(8), want: app.Expected{8}},
		{name: "not ours", value: `"7"`, want: app.Expected{}},
		{name: "an empty tag", value: `""`, want: app.Expected{}},
		{name: "ours with more behind", value: `"` + strings.Trim(anyOrder.tag(7), `"`) + `AA"`, want: app.Expected{}},
		{name: "not ours beside ours", value: `"x", ` + anyOrder.tag(7), want: app.Expected{7}},
		{name: "absent", value: "", err: errPreconditionRequired},
		{name: "blank", value: " ", err: errPreconditionRequired},
		{name: "only commas", value: " , ,", err: errPreconditionRequired},
		{name: "any", value: "*", err: errPreconditionRequired},
		{name: "unquoted", value: strings.Trim(anyOrder.tag(7), `"`), err: errInvalidPrecondition},
	} {
		got, err := anyOrder.expected(c.value)
		if c.err != nil {
			require.ErrorIs(t, err, c.err, c.name)
			continue
		}
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, got, c.name)
	}
}

// Ensure a tag is one resource's: of another kind, tenant or id it names no version, and no two resources share one.
//
// Standard: litespec/ext/concurrency#apply-http-version-preconditions
func TestTagsNameTheirResource(t *testing.T) {
	t.Parallel()
	one, other := uuid.MustParse("019ae6a0-58c0-7b1e-9d3c-3f3a5b1f6c42"), uuid.MustParse("019ae6a0-58c0-7b1e-9d3c-3f3a5b1f6c43")
	resources := []resource{
		orderResource("default", one), orderResource("default", other), orderResource("acme", one),
		paymentResource("default", one), productResource("default", "TEA-001"), productResource("default", "TEA-002"),
		productResource("acme", "TEA-001"), productResource("", "default"), productResource("default", ""),
	}
	seen := map[string]bool{}
	for _, r := range resources {
		require.False(t, seen[r.tag(1)], "two resources share the tag of %v", r)
		seen[r.tag(1)] = true
		for _, of := range resources {
			versions, err := r.expected(of.tag(1) + ", " + of.tag(2))
			require.NoError(t, err)
			require.Equal(t, r == of, len(versions) == 2, "%v takes the tags of %v", r, of)
		}
	}
	require.Equal(t, `"uhXBLtDfl2YgE7IxbCnfwg"`, resources[0].tag(1), "stored answers hold tags: their form may not change")
}

// Ensure If-None-Match compares weakly and If-Match strongly, and that * names whatever is there.
func TestTagsAreCompared(t *testing.T) {
	t.Parallel()
	tag, other := anyOrder.tag(7), anyOrder.tag(8)
	for _, c := range []struct {
		name, value, etag string
		weak, strong      bool
	}{
		{"the same", tag, tag, true, true},
		{"the same, weak", "W/" + tag, tag, true, false},
		{"another", other, tag, false, false},
		{"one of a list", other + `, W/` + tag, tag, true, false},
		{"none of a list", other + `, "x"`, tag, false, false},
		{"any", "*", tag, true, true},
		{"any, without a tag", "*", "", true, true},
		{"an empty tag, without a tag", `""`, "", false, false},
		{"blank", " ", tag, false, false},
	} {
		list, err := parseTags(c.value)
		require.NoError(t, err)
		require.Equal(t, c.weak, list.matches(c.etag, true), c.name)
		require.Equal(t, c.strong, list.matches(c.etag, false), c.name)
	}
}

// Ensure no value makes the parser panic or invent, and that what it understood reads back the same.
func FuzzParseTags(f *testing.F) {
	for _, seed := range []string{
		"", " ", "*", `"a"`, `W/"a"`, `"a", "b"`, `,, "a" ,`, `"a`, `a"`, `"a""b"`, `*, "a"`, `W/`, `W/"`, `""`, "\"a\tb\"",
		"\"\x80\"", `"a\", "b"`, anyOrder.tag(1), "W/" + anyOrder.tag(math.MaxInt64), strings.Repeat(`"a",`, 100),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		list, err := parseTags(value)
		versions, expectedErr := anyOrder.expected(value)
		if err != nil {
			require.ErrorIs(t, err, errInvalidPrecondition)
			require.ErrorIs(t, expectedErr, errInvalidPrecondition)
			return
		}
		require.False(t, list.any && len(list.tags) > 0)
		require.Equal(t, list.any || len(list.tags) == 0, expectedErr != nil)
		require.LessOrEqual(t, len(versions), len(list.tags))
		again, err := parseTags(format(list))
		require.NoError(t, err, "%q", format(list))
		require.Equal(t, list, again)
		for _, v := range versions {
			require.Contains(t, value, anyOrder.tag(v), "a version that nobody named")
			require.True(t, list.matches(anyOrder.tag(v), true))
		}
	})
}

// format writes a list as section 8.8.3 does.
func format(l tagList) string {
	if l.any {
		return "*"
	}
	var tags []string
	for _, t := range l.tags {
		mark := ""
		if t.weak {
			mark = "W/"
		}
		tags = append(tags, mark+`"`+t.opaque+`"`)
	}
	return strings.Join(tags, ", ")
}
