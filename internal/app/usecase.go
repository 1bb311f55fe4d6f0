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

// UseCase is what the code knows of an operation beside its handler. The table of all is generated from the contract;
// docs/usecases says the same, and a test compares.
type UseCase struct {
	Operation string    // the OpenAPI operationId, the record's file name, the scope of client keys
	Scope     string    // what the access token must carry; empty: a signature over the body takes the token's place
	Mode      RetryMode // how a retry is survived
	Versioned bool      // whether the caller must send a version
	Staff     bool      // whether the scope is enough for any order of the tenant
}
