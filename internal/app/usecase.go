package app

// RetryMode is how a use case makes a retry safe (the baseline's idempotency.mode).
type RetryMode string

// The retry modes.
const (
	ModeSafe    RetryMode = "safe"    // changes nothing
	ModeKey     RetryMode = "key"     // the caller sends a client key; a retry gets the stored result
	ModeNatural RetryMode = "natural" // sets a state, so a repetition changes nothing; guarded by a version
	ModeVersion RetryMode = "version" // the caller's version lets it happen only once
	ModeEvent   RetryMode = "event"   // the id of the provider's event lets it happen only once
)

// UseCase is an operation's metadata. The table of use cases is generated from the contract; a test compares it with
// docs/usecases.
type UseCase struct {
	Operation string    // the OpenAPI operationId, the record's file name, the scope of client keys
	Scope     string    // what the access token must carry; empty: a signature over the body takes the token's place
	Mode      RetryMode // how a retry is made safe
	Versioned bool      // whether the caller must send a version
	Staff     bool      // whether the scope is enough for any order of the tenant
}
