package hostile

import (
	"net/http"
	"slices"
	"strings"
)

// fault is one thing done to a good request, and what the contract says must come of it.
type fault struct {
	name  string
	apply func(q *request)
	want  want
}

// want is what must come of a request. The zero value is: anything that the contract documents.
type want struct {
	verdict verdict
	status  int      // where it must be refused; 0: any refusal
	codes   []string // of the refusal; nil: any
	field   string   // that a validation_failed names; "-": any
}

type verdict int

const (
	open    verdict = iota // the contract does not tell
	refused                // against the contract
	good                   // within it: what is refused is refused for another reason than its form
)

func invalid(field string) want {
	return want{refused, http.StatusBadRequest, []string{"malformed_request", "validation_failed"}, field}
}

func refusal(status int, codes ...string) want { return want{refused, status, codes, "-"} }

// formal are the statuses that say that a request is not in form.
var formal = []int{
	http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
	http.StatusUnprocessableEntity, http.StatusPreconditionRequired,
}

// faultsOf lists all single faults of an operation, each once.
func faultsOf(op *operation) []fault {
	faults := tokenFaults(op)
	faults = append(faults, pathFaults(op)...)
	faults = append(faults, queryFaults(op)...)
	faults = append(faults, noiseFaults()...)
	faults = append(faults, keyFaults(op)...)
	faults = append(faults, preconditionFaults(op)...)
	if op.body != nil {
		faults = append(faults, mediaFaults(op)...)
		faults = append(faults, textFaults(op)...)
		faults = append(faults, memberFaults(op)...)
	}
	if op.signed {
		faults = append(faults, signatureFaults()...)
	}
	return faults
}

// headerFault sends other lines of a header; none: without it.
func headerFault(name string, w want, header string, values ...string) fault {
	return fault{header + ": " + name, func(q *request) { q.set(header, values...) }, w}
}

// memberFaults puts every candidate into every place of the body. Of places with one pattern the first gets all texts.
func memberFaults(op *operation) (faults []fault) {
	tried := map[string]bool{}
	with := func(name string, body any, w want) {
		text := []byte(encode(body))
		if len(text) > op.mostBody {
			w = refusal(http.StatusRequestEntityTooLarge, "body_too_large")
		}
		faults = append(faults, fault{"body: " + name, func(q *request) { q.body = text }, w})
	}
	for _, s := range sites(op.body, op.example) {
		if s.remove != nil {
			w := want{verdict: good}
			if s.required {
				w = invalid(s.path)
			}
			with(s.path+" is missing", s.remove(), w)
		}
		all := candidates(s.schema, s.value, tried[s.schema.Pattern])
		tried[s.schema.Pattern] = s.schema.Pattern != ""
		for _, c := range all {
			w := invalid(s.path)
			switch {
			case c.verdict != refused:
				w = want{verdict: c.verdict}
			case c.within:
				w = invalid("-")
			}
			with(s.path+" is "+shorten(c.text), s.replace(token(c.text)), w)
		}
		if o, ok := s.value.(object); ok {
			objectFaults(s, o, with)
		}
	}
	return faults
}

// objectFaults adds, doubles and misspells members.
func objectFaults(s site, o object, with func(name string, body any, w want)) {
	extra := func(name string) any { return s.replace(append(slices.Clip(o), member{name, 1})) }
	if s.schema.AdditionalProperties.Has != nil && !*s.schema.AdditionalProperties.Has {
		with(s.path+" has an unknown member", extra("zzz"), invalid(join(s.path, "zzz")))
		with(s.path+" has an unknown empty member", extra(""), invalid("-"))
		with(s.path+" has an unknown member with a slash", extra("a/b~c"), invalid(join(s.path, "a~1b~0c")))
		with(s.path+" has __proto__", extra("__proto__"), invalid(join(s.path, "__proto__")))
		with(s.path+" has an unknown long member", extra(strings.Repeat("é", 1000)), invalid("-"))
		with(s.path+" has an unknown deep member", s.replace(append(slices.Clip(o), member{"zzz", token(nested(5000))})), invalid("-"))
	}
	if len(o) == 0 || s.schema.AdditionalProperties.Has == nil || *s.schema.AdditionalProperties.Has {
		return
	}
	first := o[0]
	with(s.path+" repeats a member", s.replace(append(object{first}, o...)), refusal(http.StatusBadRequest, "malformed_request"))
	text := encode(o)
	escaped := `{"\u00` + hex(first.name[0]) + first.name[1:] + `":` + encode(first.value) + "," + text[1:]
	with(s.path+" repeats an escaped member", s.replace(token(escaped)), refusal(http.StatusBadRequest, "malformed_request"))
	other := append(object{{strings.ToUpper(first.name), first.value}}, o[1:]...)
	with(s.path+" has a member in capitals", s.replace(other), invalid("-"))
}

func hex(c byte) string { return string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15]) }

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// textFaults replaces the body by text that is no JSON, or not one value.
func textFaults(op *operation) (faults []fault) {
	text := encode(op.example)
	put := func(name, text string, w want) {
		faults = append(faults, fault{"body: " + name, func(q *request) { q.body = []byte(text) }, w})
	}
	broken := refusal(http.StatusBadRequest, "malformed_request")
	empty := broken
	if !op.required {
		empty = want{verdict: good}
	}
	put("is empty", "", empty)
	for _, t := range brokenTexts(text) {
		put(t[0], t[1], broken)
	}
	strict := broken
	if op.signed { // the provider's own; no rule of ours
		strict = want{}
	}
	for _, t := range strictTexts(op) {
		put(t[0], t[1], strict)
	}
	put("is as large as it may be", text+strings.Repeat(" ", op.mostBody-len(text)), want{verdict: good})
	put("is one byte too large", text+strings.Repeat(" ", op.mostBody-len(text)+1), refusal(http.StatusRequestEntityTooLarge, "body_too_large"))
	put("has space around", " \t\r\n"+text+"\n\n", want{verdict: good})
	return faults
}

func brokenTexts(text string) [][2]string {
	return [][2]string{
		{"is blank", "  "}, {"ends early", text[:len(text)-1]}, {"is half", text[:len(text)/2]}, {"is one brace", "{"},
		{"has a value behind", text + "1"}, {"is two values", text + text}, {"has a comma", strings.TrimSuffix(text, "}") + ",}"},
		{"has a byte order mark", "\xef\xbb\xbf" + text}, {"is UTF-16", utf16(text)}, {"has a comment", "/**/" + text}, {"is NaN", "NaN"},
		{"has single quotes", strings.ReplaceAll(text, `"`, `'`)}, {"is a form", "a=1&b=2"}, {"is XML", "<a/>"}, {"is deep", nested(20000)},
		{"is deep and open", strings.Repeat(`{"a":`, 5000)}, {"is NUL", "\x00"}, {"is a raw control", "\"\x01\""}, {"is a lone minus", "-"},
		{"is a bare word", "nul"}, {"is True", "True"}, {"is hex", "0x10"}, {"is an octal", "010"},
	}
}

// strictTexts are what lax JSON readers take: bytes that are no UTF-8 and halves of surrogate pairs, in a value and in a name.
func strictTexts(op *operation) (texts [][2]string) {
	for _, bad := range [][2]string{
		{"a byte that is no UTF-8", "\xff"}, {"an overlong slash", "\xc0\xaf"}, {"a surrogate in UTF-8", "\xed\xa0\x80"},
		{"half a character", "\xe2\x82"}, {"a rune beyond Unicode", "\xf4\x90\x80\x80"}, {"a lone surrogate", `\ud800`},
		{"a low surrogate first", `\udc00\ud800`}, {"two high surrogates", `\ud800\ud800`}, {"the null character", `\u0000`},
	} {
		texts = append(texts, [2]string{"has " + bad[0] + " in a name", `{"a` + bad[1] + `":1,` + encode(op.example)[1:]})
		for _, s := range sites(op.body, op.example) {
			if _, ok := s.value.(string); ok {
				texts = append(texts, [2]string{"has " + bad[0] + " in " + s.path, encode(s.replace(token(`"` + bad[1] + `"`)))})
				break
			}
		}
	}
	return texts
}

func utf16(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteByte(0)
		b.WriteByte(c)
	}
	return b.String()
}

// mediaFaults says otherwise what the body is.
func mediaFaults(op *operation) []fault {
	bad := refusal(http.StatusUnsupportedMediaType, "unsupported_media_type")
	fine := want{verdict: good}
	const media, coding = "Content-Type", "Content-Encoding"
	faults := []fault{headerFault("missing", bad, media), headerFault("twice", bad, media, op.media, op.media)}
	for _, value := range []string{
		"", " ", ";", "text/plain", "text/json", "application/xml", "application/jsonx", "application/json+x", "application/*", "*/*", "json",
		"application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json, text/plain", "application/json;=",
		"application/json; charset", "application /json", "application/problem+json", "application/json\xff",
	} {
		faults = append(faults, headerFault(value, bad, media, value))
	}
	for _, value := range []string{"APPLICATION/Json", "application/json; charset=utf-8", "application/json;charset=\"UTF-8\"", "application/json ; x=y"} {
		faults = append(faults, headerFault(value, fine, media, value))
	}
	for _, value := range []string{"gzip", "br", "deflate", "identity, gzip", "x", "GZIP", "aws-chunked"} {
		faults = append(faults, headerFault(value, bad, coding, value))
	}
	return append(faults, headerFault("twice", bad, coding, "identity", "gzip"), headerFault("identity", fine, coding, "identity"),
		headerFault("IDENTITY", fine, coding, "Identity"))
}

// noiseFaults adds what the contract gives no meaning to: it changes nothing.
func noiseFaults() (faults []fault) {
	for _, f := range []field{
		{"X-HTTP-Method-Override", "DELETE"}, {"X-Forwarded-For", "127.0.0.1, \xff"}, {"X-Forwarded-Host", "evil.test"}, {"Cookie", "a=b; \x80"},
		{"Range", "bytes=0-1"}, {"Accept", "application/xml"}, {"Accept-Encoding", "gzip, br"}, {"Origin", "https://evil.test"},
		{"If-Modified-Since", "Thu, 01 Jan 2099 00:00:00 GMT"}, {"If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"},
		{"Traceparent", "00-zz-00-01"}, {"Traceparent", "00-00000000000000000000000000000000-0000000000000000-00"},
		{"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}, {"Tracestate", strings.Repeat("a=b,", 100)},
		{"Baggage", strings.Repeat("k=v,", 200)}, {"Expect", "100-continue"}, {"idempotency_key", "x"}, {"Prefer", "return=minimal"},
		{"Upgrade", "websocket"}, {"X-Tenant-Id", "other"}, {"Content-Language", "xx"}, {"Content-Location", "/v1/orders"},
	} {
		faults = append(faults, headerFault(f.value+" is noise", want{verdict: good}, f.name, f.value))
	}
	return faults
}
