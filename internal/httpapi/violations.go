package httpapi

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"example.com/orders/internal/domain"
)

// collect adds the schema's errors to v, each under the path of its field (RFC 6901, without the leading slash), or
// under field if that is set.
func collect(v *domain.Violations, field string, err error) {
	var many openapi3.MultiError
	var one *openapi3.SchemaError
	switch {
	case err == nil, len(*v) >= maxFieldErrors: // more would not be shown
	case errors.As(err, &many):
		for _, e := range many {
			collect(v, field, e)
		}
	case errors.As(err, &one):
		if field == "" {
			field = pointer(one.JSONPointer())
		}
		if one.SchemaField == "properties" {
			unknown(v, field, one)
			return
		}
		code, message := broken(one.SchemaField)
		v.Add(field, code, message)
	default:
		v.Add(field, "invalid", "is not valid")
	}
}

// unknown lists every member of an object that its schema does not define. The schema reports one error per member; the
// first one lists them all.
func unknown(v *domain.Violations, object string, err *openapi3.SchemaError) {
	members, _ := err.Value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if _, known := err.Schema.Properties[name]; known {
			continue
		}
		if len(*v) >= maxFieldErrors {
			return
		}
		field := strings.TrimPrefix(object+"/"+pointer([]string{name}), "/")
		if slices.ContainsFunc(*v, func(e domain.FieldError) bool { return e.Field == field && e.Code == "unknown" }) {
			return
		}
		v.Add(field, "unknown", "is not a member that the contract names")
	}
}

func pointer(path []string) string {
	escaped := make([]string, len(path))
	for i, name := range path {
		escaped[i] = strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
	}
	return strings.Join(escaped, "/")
}

// broken describes a failed schema rule in the domain's wording. It never quotes the input.
func broken(keyword string) (code, message string) {
	switch keyword {
	case "required":
		return "required", "is missing"
	case "type", "nullable":
		return "type", "is not of the type that the contract names"
	case "minLength", "maxLength", "minItems", "maxItems":
		return "length", "is too short or too long"
	case "minimum", "maximum":
		return "range", "is too small or too large"
	case "enum", "not":
		return "enum", "is not one of the values that the contract allows"
	default:
		return "pattern", "does not have the form that the contract asks for"
	}
}
