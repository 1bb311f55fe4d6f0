package app

import "slices"

// The scopes that an access token can carry.
const (
	ScopeOrdersRead   = "orders:read"
	ScopeOrdersWrite  = "orders:write"
	ScopeOrdersFulfil = "orders:fulfil"
	ScopeOrdersRefund = "orders:refund"
	ScopeOrdersAdmin  = "orders:admin"
	ScopeCatalogRead  = "catalog:read"
	ScopeCatalogWrite = "catalog:write"
)

// Actor is the authenticated caller. An actor belongs to one tenant.
type Actor struct {
	Tenant string
	ID     string
	Scopes []string
}

// Has reports whether the actor was granted a scope.
func (a Actor) Has(scope string) bool { return slices.Contains(a.Scopes, scope) }

// mayTouch reports whether the actor may work on an order of its own tenant that customer placed. For staff use cases
// (shipping, refunding) the scope alone is enough.
func (a Actor) mayTouch(customer string, u UseCase) bool {
	return u.Staff || a.ID == customer || a.Has(ScopeOrdersAdmin)
}
