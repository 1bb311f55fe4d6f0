package testkit

import "context"

// TB is what the helpers ask of a test. A run of a scenario is one too, so that the tour and the lab share them.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	FailNow()
	Cleanup(f func())
	Context() context.Context
}
