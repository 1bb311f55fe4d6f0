package sandbox

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// params reads the parameters of one request and keeps the first complaint, so that a parser reads from top to bottom.
type params struct {
	form url.Values
	err  *apiError
}

func (p *params) refuse(code, name, message string) {
	if p.err == nil {
		p.err = invalid(code, name, message)
	}
}

// only refuses parameters that the sandbox would have to ignore: pretending to honour them would not be honest.
func (p *params) only(names ...string) {
	for _, key := range slices.Sorted(maps.Keys(p.form)) {
		base, _, _ := strings.Cut(key, "[")
		if !slices.Contains(names, base) && !slices.Contains(names, key) {
			p.refuse("parameter_unknown", key, "The sandbox does not know this parameter: "+key)
		}
	}
}

func (p *params) required(name string) string {
	value := p.form.Get(name)
	if value == "" {
		p.refuse("parameter_missing", name, "Missing required param: "+name+".")
	}
	return value
}

func (p *params) boolean(name string) bool {
	switch value := p.form.Get(name); value {
	case "true":
		return true
	case "", "false":
		return false
	default:
		p.refuse("", name, fmt.Sprintf("Invalid boolean: %s", value))
		return false
	}
}

// amount reads minor units. An absent amount is 0.
func (p *params) amount(name string) int64 {
	value := p.form.Get(name)
	if value == "" {
		return 0
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 1 {
		p.refuse("parameter_invalid_integer", name, "Invalid positive integer: "+value)
	}
	return n
}

// currency reads a three-letter code, which Stripe keeps in lower case.
func (p *params) currency(name string) string {
	value := strings.ToLower(p.required(name))
	if p.err == nil {
		p.err = checkCurrency(value)
	}
	return value
}

// What metadata may hold: https://docs.stripe.com/metadata.
const (
	maxMetadata      = 50
	maxMetadataName  = 40
	maxMetadataValue = 500
)

// metadata reads metadata[name]=value.
func (p *params) metadata() map[string]string {
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(p.form)) {
		name, ok := strings.CutPrefix(key, "metadata[")
		if !ok {
			continue
		}
		name, value := strings.TrimSuffix(name, "]"), p.form.Get(key)
		if utf8.RuneCountInString(name) > maxMetadataName || utf8.RuneCountInString(value) > maxMetadataValue {
			p.refuse("", "metadata", fmt.Sprintf("Metadata keys can have up to %d characters, values up to %d: %s",
				maxMetadataName, maxMetadataValue, name))
		}
		out[name] = value
	}
	if len(out) > maxMetadata {
		p.refuse("", "metadata", fmt.Sprintf("Metadata can have up to %d keys.", maxMetadata))
	}
	return out
}

// list reads name[]=a&name[]=b and name[0]=a&name[1]=b, in an order that does not depend on the map.
func (p *params) list(name string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(p.form)) {
		if strings.HasPrefix(key, name+"[") {
			out = append(out, p.form[key]...)
		}
	}
	return out
}

// limit reads the page size of a list.
func (p *params) limit() int {
	value := p.form.Get("limit")
	if value == "" {
		return 10
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 100 {
		p.refuse("parameter_invalid_integer", "limit", "Invalid limit: "+value)
	}
	return n
}

// pagingParams are the parameters of every list.
func pagingParams() []string { return []string{"created[gte]", "limit", "starting_after"} }

// paging reads which part of a list is asked for.
func (p *params) paging() paging {
	q := paging{limit: p.limit(), after: p.form.Get("starting_after")}
	if value := p.form.Get("created[gte]"); value != "" {
		var err error
		if q.from, err = strconv.ParseInt(value, 10, 64); err != nil || q.from < 0 {
			p.refuse("parameter_invalid_integer", "created[gte]", "Invalid timestamp: "+value)
		}
	}
	return q
}
