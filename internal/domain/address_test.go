package domain_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/language"

	"example.com/orders/internal/domain"
)

func validAddress() domain.Address {
	return domain.Address{Name: "Zoë Müller", Line1: "Rue de l’Été 7", City: "Liège", PostalCode: "4000", Country: "BE"}
}

// invalid lists the fields that a check complains of, each with its code.
func invalid(check func(*domain.Violations)) map[string]string {
	var v domain.Violations
	check(&v)
	fields := map[string]string{}
	for _, f := range v {
		fields[f.Field] = f.Code
	}
	return fields
}

// Ensure an address is refused field by field, and that people's names are not.
func TestAddressNamesEachInvalidField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*domain.Address)
		want   map[string]string
	}{
		{"valid", func(*domain.Address) {}, map[string]string{}},
		{"the shortest", func(a *domain.Address) { a.Name, a.Line1, a.City, a.PostalCode = "a", "b", "c", "1" }, map[string]string{}},
		{"a second line", func(a *domain.Address) { a.Line2 = "Flat 3" }, map[string]string{}},
		{"any script", func(a *domain.Address) { a.Name = "王小明 👩‍🚀" }, map[string]string{}},
		{"the longest name", func(a *domain.Address) { a.Name = strings.Repeat("é", 200) }, map[string]string{}},
		{"a name too long", func(a *domain.Address) { a.Name = strings.Repeat("é", 201) }, map[string]string{"name": "length"}},
		{"a first line too long", func(a *domain.Address) { a.Line1 = strings.Repeat("x", 201) }, map[string]string{"line1": "length"}},
		{"no name", func(a *domain.Address) { a.Name = "" }, map[string]string{"name": "required"}},
		{"a blank name", func(a *domain.Address) { a.Name = " \u2003" }, map[string]string{"name": "required"}},
		{"a null character", func(a *domain.Address) { a.City = "Li\x00ge" }, map[string]string{"city": "pattern"}},
		{"a line feed", func(a *domain.Address) { a.Line1 = "a\nb" }, map[string]string{"line1": "pattern"}},
		{"a C1 control", func(a *domain.Address) { a.Line2 = "a\u0085b" }, map[string]string{"line2": "pattern"}},
		{"not UTF-8", func(a *domain.Address) { a.Name = "Zo\xeb" }, map[string]string{"name": "pattern"}},
		{"a second line too long", func(a *domain.Address) { a.Line2 = strings.Repeat("x", 201) }, map[string]string{"line2": "length"}},
		{"a city too long", func(a *domain.Address) { a.City = strings.Repeat("x", 101) }, map[string]string{"city": "length"}},
		{"a code too long", func(a *domain.Address) { a.PostalCode = strings.Repeat("1", 21) }, map[string]string{"postal_code": "length"}},
		{"all of it", func(a *domain.Address) { *a = domain.Address{} }, map[string]string{
			"name": "required", "line1": "required", "city": "required", "postal_code": "required", "country": "pattern",
		}},
	} {
		a := validAddress()
		c.change(&a)
		require.Equal(t, c.want, invalid(func(v *domain.Violations) { a.Check(v, "") }), c.name)
	}
}

// Ensure a country is two capitals: digits, signs and two bytes of one letter are not.
func TestCountryIsTwoCapitals(t *testing.T) {
	t.Parallel()
	for country, valid := range map[string]bool{
		"DE": true, "BE": true, "de": false, "De": false, "D": false, "DEU": false, "12": false, "--": false, "É": false, "": false,
		"D ": false, "D\x00": false,
	} {
		a := validAddress()
		a.Country = country
		require.Equal(t, valid, len(invalid(func(v *domain.Violations) { a.Check(v, "") })) == 0, "%q", country)
	}
}

// Ensure the path of the address leads the names of its fields.
func TestAddressFieldsArePaths(t *testing.T) {
	t.Parallel()
	a := validAddress()
	a.City = ""
	require.Equal(t, map[string]string{"shipping_address/city": "required"},
		invalid(func(v *domain.Violations) { a.Check(v, "shipping_address/") }))
}

// codeOf is the code of a refusal, or empty.
func codeOf(err error) domain.Code {
	if refusal, ok := errors.AsType[*domain.Error](err); ok {
		return refusal.Code
	}
	return ""
}

// Ensure the countries are the 249 assigned codes of ISO 3166-1, and none that is reserved, withdrawn or for private use.
func TestCountriesAreAssigned(t *testing.T) {
	t.Parallel()
	valid := 0
	for first := 'A'; first <= 'Z'; first++ {
		for second := 'A'; second <= 'Z'; second++ {
			code := string([]rune{first, second})
			if !domain.ValidCountry(code) {
				continue
			}
			valid++
			region, err := language.ParseRegion(code)
			require.NoError(t, err)
			require.True(t, region.IsCountry(), code)
			require.Equal(t, code, region.Canonicalize().String())
		}
	}
	require.Equal(t, 249, valid)
	for code := range strings.FieldsSeq("AA AC AN CP CS DD EU EZ FX IC OO QM QZ SU TA TP UK UN XA XK XZ YU ZR ZZ") {
		require.False(t, domain.ValidCountry(code), code)
	}
	for _, code := range []string{"", "D", "D ", " D", "DEU", "de", "AD AE"} {
		require.False(t, domain.ValidCountry(code), code)
	}
}
