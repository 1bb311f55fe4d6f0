package e2e

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/dev/testkit"
	"example.com/orders/migrations"
)

// atTheGate is where the duplicates of one process wait, unseen by PostgreSQL.
const atTheGate = "internal/infra/postgres.gate.enter"

// looksAgain is where a duplicate pauses that has found its key in the hands of another process.
const looksAgain = "internal/infra/postgres.pause"

// holdCommits makes every transaction that writes an order wait in its COMMIT, with all that it has written, for as long as
// the test holds what is returned. verdict is what the trigger then does.
func holdCommits(t *testing.T, s *testkit.Service, verdict string) *testkit.Held {
	t.Helper()
	s.Begin(t).
		Exec(`CREATE FUNCTION test_wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			PERFORM pg_advisory_xact_lock(1); ` + verdict + `; END $$`).
		Exec(`CREATE CONSTRAINT TRIGGER test_wait AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION test_wait()`).
		Commit()
	return s.Begin(t).Exec(`SELECT pg_advisory_xact_lock(1)`)
}

// The verdicts of holdCommits.
const (
	goOn   = `RETURN NULL`
	refuse = `RAISE EXCEPTION 'forced' USING ERRCODE = '23514'`
)

// patient makes requests wait for locks and keys for as long as a test may hold them. Later settings win.
func patient(env ...string) []string {
	return append([]string{
		"DB_LOCK_TIMEOUT", "1m", "DB_STATEMENT_TIMEOUT", "2m", "DB_ACQUIRE_TIMEOUT", "1m",
		"IDEMPOTENCY_KEY_WAIT", "1m", "REQUEST_TIMEOUT", "5m",
	}, env...)
}

// startPatient starts a patient service with ten TEA-001 on the shelf.
func startPatient(t *testing.T, env ...string) *testkit.Service {
	t.Helper()
	testkit.MarkGoroutines(t)
	s := testkit.Start(t, patient(env...)...)
	s.Product(t, "TEA-001", 1999, 10)
	return s
}

// startBehindProxy is startPatient with a proxy between the API and PostgreSQL.
func startBehindProxy(t *testing.T) (*testkit.Service, *testkit.Proxy) {
	t.Helper()
	testkit.MarkGoroutines(t)
	database := pgtest.Database(t, pgtest.Migrator(migrations.Digest(), migrations.UpDB))
	proxy := testkit.StartProxy(t, database)
	s := testkit.StartOn(t, database, patient("DATABASE_URL", proxy.URL)...)
	s.Product(t, "TEA-001", 1999, 10)
	return s, proxy
}

// tea is an order of two TEA-001.
func tea() string { return testkit.OrderBody("pm_card_visa", "TEA-001", "2") }

func place(c *testkit.Caller, key, body string) testkit.Answer {
	return post(c, "/v1/orders", key, body)
}

// post may be called by any goroutine: a lost answer has status 0 and the error as its body.
func post(c *testkit.Caller, path, key, body string, headers ...string) testkit.Answer {
	a, err := c.Try(http.MethodPost, path, body, append([]string{"Idempotency-Key", key}, headers...)...)
	if err != nil {
		return testkit.Answer{Body: []byte(err.Error())}
	}
	return a
}

// placeLater places an order in the background.
func placeLater(c *testkit.Caller, key, body string) <-chan testkit.Answer {
	return testkit.Together(1, func(int) testkit.Answer { return place(c, key, body) })
}

// duplicates sends n equal requests at once, in turn through each of the callers.
func duplicates(n int, key, body string, callers ...*testkit.Caller) <-chan testkit.Answer {
	return testkit.Together(n, func(i int) testkit.Answer { return place(callers[i%len(callers)], key, body) })
}

func replayed(a testkit.Answer) bool { return a.Header.Get("Idempotent-Replayed") == "true" }

// promised is what a retry must get again.
type promised struct{ status, body, contentType, location, etag any }

func promise(a testkit.Answer) promised {
	h := a.Header
	return promised{a.Status, string(a.Body), h.Values("Content-Type"), h.Values("Location"), h.Values("ETag")}
}

// requireReplay checks that again is the replay of first.
func requireReplay(t testing.TB, first, again testkit.Answer) {
	t.Helper()
	require.Equal(t, promise(first), promise(again))
	require.True(t, replayed(again), "the retry ran anew")
}

// requirePlaced checks that an order was placed now, not replayed.
func requirePlaced(t testing.TB, a testkit.Answer) {
	t.Helper()
	require.Equal(t, http.StatusCreated, a.Status, string(a.Body))
	require.False(t, replayed(a), "replayed")
}

// requireRefused checks a problem.
func requireRefused(t testing.TB, a testkit.Answer, status int, code string) {
	t.Helper()
	require.Equal(t, status, a.Status, string(a.Body))
	require.Equal(t, code, a.Code())
	require.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
	require.False(t, replayed(a), "a refusal was replayed")
}

// requireOneWinner checks that all answers are the same and that all but one are replays.
func requireOneWinner(t testing.TB, answers []testkit.Answer) {
	t.Helper()
	replays := 0
	for _, a := range answers {
		require.Equal(t, 2, a.Status/100, string(a.Body))
		require.Equal(t, promise(answers[0]), promise(a))
		if replayed(a) {
			replays++
		}
	}
	require.Equal(t, len(answers)-1, replays, "answers that are replays")
}

// requireStored checks how many orders there are: each with its payment, its job and its key.
func requireStored(t testing.TB, s *testkit.Service, orders int) {
	t.Helper()
	for _, table := range []string{"orders", "payments", "idempotency_keys", `river_job WHERE kind = 'charge-order'`} {
		require.Equal(t, orders, s.Count(t, table), table)
	}
}

// leaving returns the caller with a client that goes away when asked to.
func leaving(c *testkit.Caller) (gone *testkit.Caller, leave func()) {
	ctx, leave := context.WithCancel(context.Background())
	left := *c
	left.HTTP = &http.Client{Timeout: testkit.Wait, Transport: until{ctx}}
	return &left, leave
}

// until ends requests with a context.
type until struct{ ctx context.Context }

func (u until) RoundTrip(r *http.Request) (*http.Response, error) {
	return (&http.Transport{DisableKeepAlives: true}).RoundTrip(r.WithContext(u.ctx))
}

// expired returns the caller with a token that has expired.
func expired(t testing.TB, s *testkit.Service, actor string) *testkit.Caller {
	t.Helper()
	c := s.As(t, actor)
	var err error
	c.Token, err = s.Sandbox.Token(actor, "default", testkit.AllScopes, -time.Hour)
	require.NoError(t, err)
	return c
}
