package stripegateway

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"example.com/orders/internal/app"
)

// The metadata of intents and refunds. Answers are compared with it, and searches use it.
const (
	metaTenant = "tenant_id"
	metaOrder  = "order_id"
	metaRefund = "refund_id"
)

// intentKey is the idempotency key of a call on an order's intent, such as order:<tenant>:<order>:confirm:2.
func intentKey(r app.IntentRequest, call string) string {
	return key(r.Generation, "order", keyTenant(r.Ref.Tenant), r.Ref.OrderID.String(), call)
}

// refundKey is the idempotency key of a refund's creation, such as refund:<tenant>:<refund>:2. Generation 0 is the key
// of the previous release, which had no tenant.
func refundKey(r app.RefundRequest) string {
	if r.Generation == 0 {
		return key(0, "refund", r.RefundID.String())
	}
	return key(r.Generation, "refund", keyTenant(r.Ref.Tenant), r.RefundID.String())
}

// key joins its parts, none of which holds a colon. The first generation is left out.
func key(generation int, parts ...string) string {
	if generation > 1 {
		parts = append(parts, strconv.Itoa(generation))
	}
	return strings.Join(parts, ":")
}

var plainTenant = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// keyTenant is the tenant within a key. Stripe's keys have at most 255 characters, and a tenant can be 255 bytes of any
// text, so a tenant that is not a plain name is replaced by its hash. The tilde, which is not allowed in plain names,
// makes the two forms distinct.
func keyTenant(tenant string) string {
	if plainTenant.MatchString(tenant) {
		return tenant
	}
	sum := sha256.Sum256([]byte(tenant))
	return "~" + hex.EncodeToString(sum[:])
}

// refOf reads the order from an object's metadata. Its OrderID is zero unless the metadata is what this service writes.
func refOf(metadata map[string]string) app.OrderRef {
	order, ok := canonicalID(metadata[metaOrder])
	tenant := metadata[metaTenant]
	if !ok || !storableTenant(tenant) {
		return app.OrderRef{}
	}
	return app.OrderRef{Tenant: tenant, OrderID: order}
}

// storableTenant applies the same rule as the tenant claim of access tokens.
func storableTenant(tenant string) bool {
	return tenant != "" && len(tenant) <= 255 && !strings.ContainsFunc(tenant, unicode.IsControl)
}

// canonicalID reads a UUID in the one form that this service writes.
func canonicalID(s string) (uuid.UUID, bool) {
	id, err := uuid.Parse(s)
	if err != nil || id == uuid.Nil || id.String() != s {
		return uuid.Nil, false
	}
	return id, true
}
