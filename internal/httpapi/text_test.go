package httpapi

import (
	"slices"
	"strconv"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"example.com/orders/api"
	"example.com/orders/internal/domain"
)

// Ensure the contract and the domain agree on which text is blank or unprintable, for every character of the first plane,
// so that no value passes the contract and is refused all the same.
func TestContractAndDomainAgreeOnText(t *testing.T) {
	t.Parallel()
	spec, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	require.NoError(t, err)
	city := spec.Components.Schemas["Address"].Value.Properties["city"].Value
	line2 := spec.Components.Schemas["Address"].Value.Properties["line2"].Value
	for r := range rune(0xffff) {
		if r >= 0xd800 && r < 0xe000 {
			continue // surrogates are no characters
		}
		text := string(r)
		var v domain.Violations
		domain.Address{Name: "a", Line1: "a", Line2: text, City: text, PostalCode: "a", Country: "DE"}.Check(&v, "")
		wrong := map[string]bool{}
		for _, f := range v {
			wrong[f.Field] = true
		}
		require.Equal(t, wrong["city"], city.VisitJSON(text) != nil, "%U as a city", r)
		require.Equal(t, wrong["line2"], line2.VisitJSON(text) != nil, "%U as a second line", r)
	}
}

// Ensure no more mistakes are collected than are shown, however many a body makes: each is work.
func TestViolationsAreBounded(t *testing.T) {
	t.Parallel()
	all, err := loadOperations()
	require.NoError(t, err)
	members := map[string]any{}
	for i := range 6_000 {
		members[strconv.Itoa(i)] = int64(1)
	}
	for _, body := range []map[string]any{members, {"lines": slices.Repeat([]any{map[string]any{}}, 6_000)}} {
		var refused *domain.Error
		require.ErrorAs(t, matchSchema(all["POST /v1/orders"].body, body), &refused)
		require.Len(t, refused.Fields, maxFieldErrors)
	}
}
