package hostile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// object is a JSON object that keeps its order and can repeat a member; token is JSON text that stands for itself, valid
// or not. Other values are those of encoding/json.
type (
	object []member
	member struct {
		name  string
		value any
	}
	token string
)

// encode writes a value as JSON text.
func encode(v any) string {
	var parts []string
	switch v := v.(type) {
	case token:
		return string(v)
	case object:
		for _, m := range v {
			parts = append(parts, plain(m.name)+":"+encode(m.value))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		for _, item := range v {
			parts = append(parts, encode(item))
		}
		return "[" + strings.Join(parts, ",") + "]"
	default:
		return plain(v)
	}
}

func plain(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // a value of the contract's own examples
	}
	return string(text)
}

// ordered turns the maps of an example into objects, in order of their names.
func ordered(v any) any {
	switch v := v.(type) {
	case map[string]any:
		o := object{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			o = append(o, member{name, ordered(v[name])})
		}
		return o
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = ordered(item)
		}
		return items
	default:
		return v
	}
}

// site is one place in a body: its path as the service names it, its schema and its value, and how another value is put
// there.
type site struct {
	path     string
	schema   *openapi3.Schema
	value    any
	required bool
	replace  func(v any) (body any)
	remove   func() (body any) // nil: the value is no member of an object
}

// sites lists every place of a body: members that the example leaves out with a value of their schema, and of an array
// its first item.
func sites(schema *openapi3.Schema, body any) []site {
	return below(site{schema: schema, value: body, required: true, replace: func(v any) any { return v }})
}

func below(s site) []site {
	all := []site{s}
	switch v := s.value.(type) {
	case object:
		for _, name := range slices.Sorted(maps.Keys(s.schema.Properties)) {
			all = append(all, below(memberOf(s, v, name))...)
		}
	case []any:
		if len(v) > 0 {
			all = append(all, below(site{
				path: join(s.path, "0"), schema: s.schema.Items.Value, value: v[0], required: true,
				replace: func(item any) any { return s.replace(append([]any{item}, v[1:]...)) },
			})...)
		}
	}
	return all
}

func memberOf(s site, o object, name string) site {
	child := site{path: join(s.path, name), schema: s.schema.Properties[name].Value, required: slices.Contains(s.schema.Required, name)}
	rest := slices.DeleteFunc(slices.Clone(o), func(m member) bool {
		if m.name == name {
			child.value = m.value
		}
		return m.name == name
	})
	if child.value == nil {
		child.value = sample(child.schema)
	}
	child.replace = func(v any) any { return s.replace(append(slices.Clone(rest), member{name, v})) }
	child.remove = func() any { return s.replace(rest) }
	return child
}

func join(path, name string) string { return strings.TrimPrefix(path+"/"+name, "/") }

// sample is a value that a schema takes.
func sample(s *openapi3.Schema) any {
	switch {
	case s.Example != nil:
		return ordered(s.Example)
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Type.Is(openapi3.TypeObject):
		o := object{}
		for _, name := range s.Required {
			o = append(o, member{name, sample(s.Properties[name].Value)})
		}
		return o
	case s.Type.Is(openapi3.TypeArray):
		return slices.Repeat([]any{sample(s.Items.Value)}, int(max(s.MinItems, 1)))
	case s.Type.Is(openapi3.TypeInteger):
		return token(fmt.Sprintf("%.0f", max(*s.Min, 1)))
	case s.Type.Is(openapi3.TypeBoolean):
		return true
	default:
		for _, text := range texts(s) {
			if takes(s, text) && text != "" {
				return text
			}
		}
		return ""
	}
}
