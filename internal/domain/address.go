package domain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Address is a shipping address. It is a value object.
type Address struct {
	Name       string `json:"name"`
	Line1      string `json:"line1"`
	Line2      string `json:"line2,omitzero"` // may be empty
	City       string `json:"city"`
	PostalCode string `json:"postal_code"`
	Country    string `json:"country"` // ISO 3166-1 alpha-2, in capitals
}

// Check adds what is wrong with the address to v; at is the path of the address in the input, "" or ending in a slash.
func (a Address) Check(v *Violations, at string) {
	checkText(v, at+"name", a.Name, 1, 200)
	checkText(v, at+"line1", a.Line1, 1, 200)
	checkText(v, at+"line2", a.Line2, 0, 200)
	checkText(v, at+"city", a.City, 1, 100)
	checkText(v, at+"postal_code", a.PostalCode, 1, 20)
	if !ValidCountry(a.Country) {
		v.Add(at+"country", "pattern", "must be an assigned ISO 3166-1 alpha-2 code in capitals")
	}
}

// checkText requires least to most printable characters; a required text must not be blank.
func checkText(v *Violations, field, s string, least, most int) {
	switch n := utf8.RuneCountInString(s); {
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl):
		v.Add(field, "pattern", "must not contain control characters")
	case least > 0 && strings.TrimSpace(s) == "":
		v.Add(field, "required", "must not be blank")
	case n < least || n > most:
		v.Add(field, "length", "is too short or too long")
	}
}
