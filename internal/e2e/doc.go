// Package e2e tests the whole service: the API and worker of production on a real PostgreSQL, with the stand-in for the
// payment provider. A test names its subject first, so that go test -run '^TestConflict' runs all of one:
//
//	TestBoundary      boundary_*      what the HTTP boundary accepts, refuses and shows, as the contract says
//	TestConflict      conflicts_*     overlapping writes of different callers: who wins, and what the other is told
//	TestCrash         crash_*         processes killed between any two steps
//	TestCurrencies    currencies_*    the currencies and amounts that the provider takes
//	TestEditor        editor_*        the requests for editors in docs/api.http
//	TestEvents        events_*        signed events of the provider: lost, late, twice, out of order, forged
//	TestIdempotency   idempotency_*   client keys: replay, reuse, scope, waiting, takeover, expiry
//	TestLeak          leak_*          private values in logs, spans, metrics, problems and jobs
//	TestLifecycle     lifecycle_*     start, readiness, stop, limits
//	TestMigration     additive_*      a schema that changes while a release runs
//	TestOutage        outage_*        without the database or the provider, and after their return
//	TestPayment       payments_*      the charge: keys, states, crashes, cancellation, two releases at once
//	TestPlace         place_*         one order, all the way
//	TestPlans         plans_*         the plans of the hot queries on realistic data
//	TestPooler        pooler_*        behind PgBouncer
//	TestPrivileges    privileges_*    the database role of the service
//	TestPurge         purge_*         expired keys and events
//	TestReconcile     reconcile_*     what the provider holds, compared with what is stored here
//	TestRecords       records_*       what the use-case records say of stored answers
//	TestRefund        refunds_*       refunds, one by one and at once
//	TestRunbook       runbooks_*      the commands of docs/runbooks
//	TestTelemetry     telemetry_*     metrics, traces and logs
//	TestTour          tour_*          the tour of make demo
//
// Files named *_helpers_test.go, main_test.go and operations_test.go hold what several subjects share and no tests.
package e2e
