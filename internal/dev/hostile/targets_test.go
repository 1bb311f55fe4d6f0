package hostile

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// pathFaults puts other values into the parameters of the path, and other spellings around them.
func pathFaults(op *operation) (faults []fault) {
	segments := strings.Split(op.path, "/")
	for i, segment := range segments {
		if !strings.HasPrefix(segment, "{") {
			continue
		}
		p := op.parameters.GetByInAndName(openapi3.ParameterInPath, strings.Trim(segment, "{}"))
		put := func(name, text string, w want) {
			faults = append(faults, fault{"path: " + p.Name + " is " + shorten(name), func(q *request) { q.segment(i, func(string) string { return text }) }, w})
		}
		for _, text := range texts(p.Schema.Value) {
			if text != "" && text != "../../etc/passwd" && !takes(p.Schema.Value, text) {
				put(plain(text), url.PathEscape(text), invalid(p.Name))
			}
		}
		for _, raw := range []string{
			"%00", "%ff", "%c0%af", "%ed%a0%80", "a%2Fb", "..%2F..", "%2e%2e", "%252e", "a;x=1", "a%20", "%20", "a+b", "*", "%E2%82", strings.Repeat("A", 3000),
			strings.Repeat("%41", 3000), strings.Repeat("%C3%A9", 700), "~", "a?", "a#b", "a%3Fb", "{" + p.Name + "}",
		} {
			put(raw, raw, want{})
		}
		faults = append(faults, fault{"path: " + p.Name + " is escaped", func(q *request) {
			q.segment(i, func(text string) string { return fmt.Sprintf("%%%02X%s", text[0], text[1:]) })
		}, want{verdict: good}})
	}
	return append(faults, routeFaults()...)
}

// segment changes one segment of the target's path, where it still has it.
func (q *request) segment(i int, change func(text string) string) {
	if parts := strings.Split(q.target, "/"); i < len(parts) && parts[i] != "" {
		parts[i] = change(parts[i])
		q.target = strings.Join(parts, "/")
	}
}

// routeFaults change the path around the parameters. The service decides which of them it routes; net/http refuses what
// is no path.
func routeFaults() (faults []fault) {
	for _, change := range []func(target string) string{
		func(t string) string { return t + "/" }, func(t string) string { return t + "//" }, func(t string) string { return "/" + t },
		func(t string) string { return "//evil.test" + t }, func(t string) string { return strings.Replace(t, "/v1/", "/v1//", 1) },
		func(t string) string { return strings.Replace(t, "/v1/", "/v1/./", 1) }, func(t string) string { return strings.Replace(t, "/v1/", "/x/../v1/", 1) },
		func(t string) string { return strings.Replace(t, "/v1/", "/V1/", 1) }, func(t string) string { return strings.Replace(t, "/v1", "/%76%31", 1) },
		func(t string) string { return t + "%" }, func(t string) string { return t + "%zz" }, func(t string) string { return t + "%00" },
		func(t string) string { return t + ".json" }, func(t string) string { return t + ";a=b" }, func(t string) string { return t + "#frag" },
		func(t string) string { return "http://evil.test" + t }, func(string) string { return "*" }, func(string) string { return "/" },
		func(t string) string { return strings.ReplaceAll(t, "/", "%2F") }, func(t string) string { return strings.ReplaceAll(t, "/", `\`) },
		func(t string) string { return t + "/" + strings.Repeat("a/", 2000) }, func(t string) string { return t + "/é" },
		func(t string) string { return t + strings.Repeat("%C3", 2000) },
	} {
		faults = append(faults, fault{"path: " + shorten(change("/v1/…")), func(q *request) { q.target = change(q.target) }, want{}})
	}
	return faults
}

// queryFaults send parameters that the operation does not have, and other values for those that it has.
func queryFaults(op *operation) (faults []fault) {
	put := func(query string, w want) {
		faults = append(faults, fault{"query: " + shorten(query), func(q *request) { q.target += "?" + query }, w})
	}
	unknown := func(name string) want {
		if op.signed { // its parameters are not looked at
			return want{}
		}
		return want{refused, http.StatusBadRequest, []string{"validation_failed"}, name}
	}
	put("", want{verdict: good})
	put("&&", want{verdict: good})
	for _, raw := range []string{"zzz", "zzz=1", "zzz=1&zzz=2", "zz%7A=1"} {
		put(raw, unknown("zzz"))
	}
	for _, raw := range []string{
		"access_token=x", "%ff=1", "=1", "a;b=1", "%zz=1", "%", "zzz=%", "a[]=1", "a[b]=1", "__proto__=1", "%00=1", strings.Repeat("a", 10000) + "=1",
		strings.Repeat("a=1&", 2000), "é=1", strings.Repeat("%C3%A9", 300) + "=1",
	} {
		put(raw, unknown("-"))
	}
	for _, ref := range op.parameters {
		if p := ref.Value; p.In == openapi3.ParameterInQuery {
			parameterFaults(p, put)
		}
	}
	return faults
}

func parameterFaults(p *openapi3.Parameter, put func(query string, w want)) {
	bad := func(field string) want { return want{refused, http.StatusBadRequest, nil, field} }
	fine := want{verdict: good}
	if strings.Contains(p.Description, "invalid_") {
		fine = want{}
	}
	for _, c := range parameterValues(p.Schema.Value) {
		w := want{verdict: c.verdict}
		switch c.verdict {
		case refused:
			w = bad(p.Name)
		case good:
			w = fine
		case open:
		}
		put(p.Name+"="+url.QueryEscape(c.text), w)
	}
	twice := url.QueryEscape(parameterValues(p.Schema.Value)[0].text)
	put(p.Name+"="+twice+"&"+p.Name+"="+twice, bad(p.Name))
	put(p.Name, bad(p.Name))
	for _, raw := range []string{strings.ToUpper(p.Name) + "=1", p.Name + "[]=1", p.Name + "=%", p.Name + "=1;" + p.Name + "=2"} {
		put(raw, bad("-"))
	}
}

// parameterValues are texts to try for a parameter, those that its schema takes first.
func parameterValues(s *openapi3.Schema) (values []candidate) {
	if s.Type.Is(openapi3.TypeInteger) {
		for _, c := range integers(s) {
			if c.text == "-0" || c.text == "01" || c.text == "+1" || c.text == "-01" { // whole numbers all the same
				c.verdict = open
			}
			values = append(values, candidate{text: strings.Trim(c.text, `"`), verdict: c.verdict})
		}
		values = slices.DeleteFunc(values, func(c candidate) bool { return c.text == "1" && c.verdict == refused })
	} else {
		for _, text := range texts(s) {
			values = append(values, candidate{text: text, verdict: judge(s, takes(s, text))})
		}
	}
	slices.SortStableFunc(values, func(a, b candidate) int { return int(b.verdict) - int(a.verdict) })
	return values
}

// methods are tried on every path of the contract.
func methods() []string {
	return []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace,
		http.MethodConnect, "get", "Post", "QUERY", "PROPFIND", "X", strings.Repeat("M", 500),
	}
}
