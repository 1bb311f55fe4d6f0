package hostile

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
)

// candidate is JSON text for one place, and whether its schema takes it.
type candidate struct {
	text    string
	verdict verdict
	within  bool // what is wrong is further down
}

// candidates are the values to try where a schema stands: of other types, at its bounds and beside them, and those that
// parsers have been caught with, unless few is set. What a schema takes is worked out here, and not by the library that the
// service asks.
func candidates(s *openapi3.Schema, value any, few bool) []candidate {
	var all []candidate
	if !s.Nullable {
		all = append(all, candidate{text: "null", verdict: refused})
	}
	for _, other := range []struct{ kind, text string }{
		{openapi3.TypeString, `"x"`}, {openapi3.TypeInteger, "7"}, {openapi3.TypeBoolean, "true"}, {openapi3.TypeObject, "{}"}, {openapi3.TypeArray, "[]"},
	} {
		if !s.Type.Is(other.kind) {
			all = append(all, candidate{text: other.text, verdict: refused})
		}
	}
	switch {
	case s.Type.Is(openapi3.TypeString):
		list := texts(s)
		if few {
			list = bounds(s, "A", "😀")
		}
		for _, text := range list {
			all = append(all, candidate{text: plain(text), verdict: judge(s, takes(s, text))})
		}
	case s.Type.Is(openapi3.TypeInteger):
		all = append(all, integers(s)...)
	case s.Type.Is(openapi3.TypeArray):
		all = append(all, arrays(s, value.([]any))...)
	case s.Type.Is(openapi3.TypeBoolean):
		all = append(all, candidate{text: "false", verdict: good}, candidate{text: "0", verdict: refused}, candidate{text: `"true"`, verdict: refused})
	}
	return all
}

// judge turns the schema's word into a verdict. Where the contract says in words that other values are refused too, what
// the schema takes is open.
func judge(s *openapi3.Schema, taken bool) verdict {
	switch {
	case !taken:
		return refused
	case strings.Contains(s.Description, "validation_failed"):
		return open
	default:
		return good
	}
}

// texts are the strings to try for a schema.
func texts(s *openapi3.Schema) []string {
	all := []string{
		"", " ", "x", "A", "A1", "a-b", "-", "_", "0", "7", "null", "true", "EUR\n", "EUR ", " EUR", "eur", "ＥＵＲ", "ÉUR", "AAA", "a\tb", "a\x7fb", "a\u0085b",
		"a\u2028b", "\u00a0", "\u3000", "\u200b", "\ufeff", "\u202e", "\ufffd", "\U000e0001", "Zoë", "é", "王", "👩‍🚀", `"quoted"`, `back\slash`, "'; DROP TABLE orders; --",
		"<script>", "${jndi:ldap://x}", "../../etc/passwd", "%00", "%s%n", "{{7*7}}", "pm_card_visa", "00000000-0000-0000-0000-000000000000",
		"019AE6A0-58C0-7B1E-9D3C-3F3A5B1F6C42", "{019ae6a0-58c0-7b1e-9d3c-3f3a5b1f6c42}", "urn:uuid:019ae6a0-58c0-7b1e-9d3c-3f3a5b1f6c42",
	}
	for _, value := range s.Enum {
		word := fmt.Sprint(value)
		all = append(all, word, strings.ToUpper(word), word+" ", word+"\n")
	}
	all = append(all, bounds(s, "A", "1", "z", "é", "王", "😀", " ")...)
	slices.Sort(all)
	return slices.Compact(all)
}

// bounds are strings of each unit as long as the schema allows, and one character shorter and longer.
func bounds(s *openapi3.Schema, units ...string) (all []string) {
	for _, unit := range units {
		for _, length := range []uint64{s.MinLength - min(1, s.MinLength), s.MinLength, most(s), most(s) + 1} {
			all = append(all, strings.Repeat(unit, int(length)))
		}
	}
	return all
}

// most is a schema's maxLength, which each of the contract's has.
func most(s *openapi3.Schema) uint64 {
	if s.MaxLength == nil {
		return 0
	}
	return *s.MaxLength
}

var unicodeEscape = regexp.MustCompile(`\\u([0-9A-Fa-f]{4})`)

// takes tells whether a string schema takes a text: its length in characters, its pattern, its enumeration.
func takes(s *openapi3.Schema, text string) bool {
	length := uint64(utf8.RuneCountInString(text))
	if length < s.MinLength || s.MaxLength != nil && length > *s.MaxLength {
		return false
	}
	if s.Pattern != "" && !regexp.MustCompile(unicodeEscape.ReplaceAllString(s.Pattern, `\x{$1}`)).MatchString(text) {
		return false
	}
	return len(s.Enum) == 0 || slices.Contains(s.Enum, any(text))
}

// integers are the numbers around each bound, and other spellings of numbers, none of which the contract takes.
func integers(s *openapi3.Schema) []candidate {
	var all []candidate
	for _, bound := range []float64{*s.Min, *s.Max, 0} {
		n := int64(math.MaxInt64)
		if bound < math.MaxInt64 {
			n = int64(bound)
		}
		for _, near := range []int64{n - 1, n, n + 1} { // beyond the largest is the smallest
			all = append(all, candidate{text: fmt.Sprint(near), verdict: judge(s, within(s, near))})
		}
	}
	for _, text := range []string{
		"1.0", "1.5", "1e0", "1E2", "10e-1", "1e400", "-1e400", "1e-400", "9223372036854775808", "-9223372036854775809", "18446744073709551616",
		strings.Repeat("9", 400), "1." + strings.Repeat("0", 400) + "1", "0.0", "-0.0", `"1"`, `"0x1"`, "[1]", "+1", "01", "-01", ".5", "1.", "1e", "0x1", "Infinity",
		"-Infinity", "NaN", "1_000", "１",
	} {
		all = append(all, candidate{text: text, verdict: refused})
	}
	return append(all, candidate{text: "-0", verdict: judge(s, within(s, 0))})
}

func within(s *openapi3.Schema, n int64) bool {
	notZero := s.Not != nil && slices.ContainsFunc(s.Not.Value.Enum, func(v any) bool { return fmt.Sprint(v) == fmt.Sprint(n) })
	return float64(n) >= *s.Min && float64(n) <= *s.Max && !notZero
}

// arrays are arrays at the bounds of their schema, of the example's first item.
func arrays(s *openapi3.Schema, value []any) []candidate {
	var all []candidate
	for _, length := range []uint64{s.MinItems - min(1, s.MinItems), s.MinItems, *s.MaxItems, *s.MaxItems + 1} {
		if length > 0 && len(value) == 0 {
			continue
		}
		text := "[" + strings.TrimSuffix(strings.Repeat(encode(slices.Concat(value, []any{nil})[0])+",", int(length)), ",") + "]"
		all = append(all, candidate{text: text, verdict: judge(s, length >= s.MinItems && length <= *s.MaxItems)})
	}
	return append(all, candidate{"[null]", refused, true}, candidate{"[[]]", refused, true})
}
