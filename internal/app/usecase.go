package app

// RetryMode is a use case's way of surviving a retry (the baseline's idempotency.mode).
type RetryMode string

// The retry modes.
const (
	ModeSafe    RetryMode = "safe"    // changes nothing
	ModeKey     RetryMode = "key"     // the caller sends a client key; a retry gets the stored result
	ModeNatural RetryMode = "natural" // sets a state: doing it twice is doing it once, guarded by a version
	ModeVersion RetryMode = "version" // the caller's version admits it once
	ModeEvent   RetryMode = "event"   // the id of the provider's event admits it once
)

// UseCase is what the code knows of an operation beside its handler. docs/usecases and api/openapi.yaml say the same,
// and a test compares the three.
type UseCase struct {
	Operation string    // the OpenAPI operationId, the record's file name, the scope of client keys
	Scope     string    // what the access token must carry; empty: a signature over the body takes the token's place
	Mode      RetryMode // how a retry is survived
	Versioned bool      // whether the caller must send a version
	Staff     bool      // whether the scope is enough for any order of the tenant
}

// The use cases that callers can reach.
var (
	UseCasePlaceOrder    = UseCase{Operation: "place-order", Scope: ScopeOrdersWrite, Mode: ModeKey}
	UseCaseGetOrder      = UseCase{Operation: "get-order", Scope: ScopeOrdersRead, Mode: ModeSafe}
	UseCaseListOrders    = UseCase{Operation: "list-orders", Scope: ScopeOrdersRead, Mode: ModeSafe}
	UseCaseGetPayment    = UseCase{Operation: "get-payment", Scope: ScopeOrdersRead, Mode: ModeSafe}
	UseCaseChangeAddress = UseCase{Operation: "change-shipping-address", Scope: ScopeOrdersWrite, Mode: ModeNatural, Versioned: true}
	UseCaseCancelOrder   = UseCase{Operation: "cancel-order", Scope: ScopeOrdersWrite, Mode: ModeKey, Versioned: true}
	UseCaseShipOrder     = UseCase{Operation: "ship-order", Scope: ScopeOrdersFulfil, Mode: ModeVersion, Versioned: true, Staff: true}
	UseCaseRefundOrder   = UseCase{Operation: "refund-order", Scope: ScopeOrdersRefund, Mode: ModeKey, Staff: true}
	UseCaseListProducts  = UseCase{Operation: "list-products", Scope: ScopeCatalogRead, Mode: ModeSafe}
	UseCaseGetProduct    = UseCase{Operation: "get-product", Scope: ScopeCatalogRead, Mode: ModeSafe}
	UseCasePutProduct    = UseCase{Operation: "put-product", Scope: ScopeCatalogWrite, Mode: ModeNatural, Versioned: true}
	UseCaseGetStock      = UseCase{Operation: "get-stock", Scope: ScopeCatalogRead, Mode: ModeSafe}
	UseCaseAdjustStock   = UseCase{Operation: "adjust-stock", Scope: ScopeCatalogWrite, Mode: ModeKey}

	UseCaseReceiveProviderEvent = UseCase{Operation: "receive-provider-event", Mode: ModeEvent}
)

// UseCases lists every use case that callers can reach.
func UseCases() []UseCase {
	return []UseCase{
		UseCasePlaceOrder, UseCaseGetOrder, UseCaseListOrders, UseCaseGetPayment, UseCaseChangeAddress,
		UseCaseCancelOrder, UseCaseShipOrder, UseCaseRefundOrder, UseCaseListProducts, UseCaseGetProduct,
		UseCasePutProduct, UseCaseGetStock, UseCaseAdjustStock, UseCaseReceiveProviderEvent,
	}
}
