package app

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/domain"
)

var (
	someone = Actor{Tenant: "default", ID: "alice", Scopes: []string{ScopeOrdersWrite}}
	someID  = uuid.MustParse("01890000-0000-7000-8000-000000000000")
)

func somePlacing() PlaceOrderInput {
	return PlaceOrderInput{
		Currency: "EUR",
		Lines:    []domain.Item{{SKU: "TEA-001", Quantity: 2}, {SKU: "MUG-001", Quantity: 1}},
		Address: domain.Address{
			Name: "Zoë <&> \u2028 \"Q\"", Line1: "1 High Street", City: "Berlin", PostalCode: "10115", Country: "DE",
		},
		PaymentMethod: "pm_card_visa",
	}
}

// Ensure the fingerprint of a request is the same in every release: a hash that changes here would turn a retry that is
// under way during an upgrade into idempotency_key_reused. Do not adapt the hashes; adapt the code. A case may be added.
//
// Standard: litespec/ext/concurrency#canonicalize-request-fingerprints
// Standard: litespec/ext/concurrency#protect-fingerprint-source-data
func TestFingerprintsAreStable(t *testing.T) {
	t.Parallel()
	withLine2 := somePlacing()
	withLine2.Address.Line2 = "c/o Bob"
	for name, c := range map[string]struct {
		route     string
		input     any
		canonical string // what is hashed, by RFC 8785
		hash      string
	}{
		"place-order": {
			"POST /v1/orders", somePlacing(),
			`{"actor":"alice","input":{"currency":"EUR","lines":[{"quantity":2,"sku":"TEA-001"},{"quantity":1,"sku":"MUG-001"}],` +
				`"payment_method":"pm_card_visa","shipping_address":{"city":"Berlin","country":"DE","line1":"1 High Street",` +
				`"name":"Zoë <&> ` + "\u2028" + ` \"Q\"","postal_code":"10115"}},"route":"POST /v1/orders","tenant":"default"}`,
			"f5d1cb99c030a12ff944fa5396a63e6b4a136d8a73aa25396fb8f916c75bf017",
		},
		"place-order with its optional member": {
			"POST /v1/orders", withLine2,
			`{"actor":"alice","input":{"currency":"EUR","lines":[{"quantity":2,"sku":"TEA-001"},{"quantity":1,"sku":"MUG-001"}],` +
				`"payment_method":"pm_card_visa","shipping_address":{"city":"Berlin","country":"DE","line1":"1 High Street",` +
				`"line2":"c/o Bob","name":"Zoë <&> ` + "\u2028" + ` \"Q\"","postal_code":"10115"}},"route":"POST /v1/orders",` +
				`"tenant":"default"}`,
			"7c3058593301979f342f29c5bdc0d37692ec272429c680796dd3185e632595a4",
		},
		"cancel-order": {
			"POST /v1/orders/{order_id}/cancellation " + someID.String(),
			CancelOrderInput{OrderID: someID, Expected: Expected{1, 3}},
			`{"actor":"alice","input":{"expected":[1,3]},"route":"POST /v1/orders/{order_id}/cancellation ` + someID.String() +
				`","tenant":"default"}`,
			"8f2a4349a77a3699772254c3e32ffcfe8d92b69d3eea3b222c824c1805216a8d",
		},
		"cancel-order with its optional member": {
			"POST /v1/orders/{order_id}/cancellation " + someID.String(),
			CancelOrderInput{OrderID: someID, Expected: Expected{1}, Reason: "mistake"},
			`{"actor":"alice","input":{"expected":[1],"reason":"mistake"},"route":"POST /v1/orders/{order_id}/cancellation ` +
				someID.String() + `","tenant":"default"}`,
			"a26bc6017c075a89a110df25f91c0fae0b24311d9c1ce68255a32dd57c57032e",
		},
		"refund-order": {
			"POST /v1/orders/{order_id}/refunds " + someID.String(),
			RefundOrderInput{OrderID: someID, Amount: math.MaxInt64, Currency: "EUR"},
			`{"actor":"alice","input":{"amount":9223372036854775807,"currency":"EUR"},"route":"POST /v1/orders/{order_id}/refunds ` +
				someID.String() + `","tenant":"default"}`,
			"e84fe378a25ce172a17bb7db06df8f59fb809226e5ec6ec06c5ca34ac17ceb1f",
		},
		"adjust-stock": {
			"POST /v1/products/{sku}/stock-adjustments TEA-001", AdjustStockInput{SKU: "TEA-001", Delta: -3},
			`{"actor":"alice","input":{"delta":-3},"route":"POST /v1/products/{sku}/stock-adjustments TEA-001","tenant":"default"}`,
			"f95c9060fc2ae19d76610c265e65c5e664ac2cfc42d34b45d3a0a441369368f2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			print := fingerprintOf(t, someone, c.route, c.input)
			require.Equal(t, c.hash, hex.EncodeToString(print[:]))
			sum := sha256.Sum256([]byte(c.canonical))
			require.Equal(t, c.hash, hex.EncodeToString(sum[:]), "the canonical form")
		})
	}
}

func fingerprintOf(t *testing.T, a Actor, route string, input any) Fingerprint {
	t.Helper()
	print, err := fingerprint(a, route, input)
	require.NoError(t, err)
	return print
}

// Ensure what makes a request another one makes its fingerprint another one.
//
// Standard: litespec/ext/concurrency#canonicalize-request-fingerprints
func TestFingerprintsDiffer(t *testing.T) {
	t.Parallel()
	const route = "POST /v1/orders/{order_id}/refunds "
	input := RefundOrderInput{OrderID: someID, Amount: 1 << 53, Currency: "EUR"}
	next := input
	next.Amount++ // equal to input as a float64
	seen := map[Fingerprint]string{}
	for name, print := range map[string]Fingerprint{
		"the request":      fingerprintOf(t, someone, route+"1", input),
		"another actor":    fingerprintOf(t, Actor{Tenant: "default", ID: "bob"}, route+"1", input),
		"another tenant":   fingerprintOf(t, Actor{Tenant: "acme", ID: "alice"}, route+"1", input),
		"parts moved":      fingerprintOf(t, Actor{Tenant: "alice", ID: "default"}, route+"1", input),
		"another route":    fingerprintOf(t, someone, route+"2", input),
		"another input":    fingerprintOf(t, someone, route+"1", next),
		"another version":  fingerprintOf(t, someone, route+"1", CancelOrderInput{Expected: Expected{1}}),
		"another version'": fingerprintOf(t, someone, route+"1", CancelOrderInput{Expected: Expected{2}}),
	} {
		require.Empty(t, seen[print], "%s has the fingerprint of %s", name, seen[print])
		seen[print] = name
	}
	reordered := somePlacing()
	reordered.Lines[0], reordered.Lines[1] = reordered.Lines[1], reordered.Lines[0]
	require.NotEqual(t, fingerprintOf(t, someone, "r", somePlacing()), fingerprintOf(t, someone, "r", reordered))
}

// Ensure the rights of a token stay out of the fingerprint: a retry may come with another one.
//
// Standard: litespec/ext/concurrency#canonicalize-request-fingerprints
func TestFingerprintsLeaveCredentialsOut(t *testing.T) {
	t.Parallel()
	more := someone
	more.Scopes = []string{ScopeOrdersWrite, ScopeOrdersAdmin}
	require.Equal(t, fingerprintOf(t, someone, "r", somePlacing()), fingerprintOf(t, more, "r", somePlacing()))
}

// Ensure equal preconditions have equal fingerprints, however the caller listed them.
//
// Standard: litespec/ext/concurrency#canonicalize-request-fingerprints
func TestFingerprintsOfEqualPreconditionsAreEqual(t *testing.T) {
	t.Parallel()
	one := CancelOrderInput{Expected: Expected{1, 2}.Canonical()}
	other := CancelOrderInput{Expected: Expected{2, 1, 2}.Canonical()}
	require.Equal(t, fingerprintOf(t, someone, "r", one), fingerprintOf(t, someone, "r", other))
}
