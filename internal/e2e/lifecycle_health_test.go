package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// asks returns the status of a path of a process's ops listener; 0: there is no answer.
func asks(p *testkit.Running, path string) int {
	client := http.Client{Timeout: testkit.Wait}
	response, err := client.Get(p.Ops + path)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

func awaitReady(t *testing.T, p *testkit.Running, status int) {
	t.Helper()
	testkit.Eventually(t, "answer of /readyz", func() bool { return asks(p, "/readyz") == status })
}

// Ensure a row that all connections of the pool wait for does not make the API unready: what does not need it is served in its
// turn, and every replica would be taken out at once.
func TestLifecycleReadyWhileThePoolIsBusy(t *testing.T) {
	t.Parallel()
	s := openShop(t, "DB_MAX_CONNS", "1")
	s.StopAPI(t)
	p := testkit.Process(t, "api", s.Env)
	s.Service = s.At(p.URL)
	held := s.HoldStock(t, shopSKU)
	waiting := placeLater(s.As(t, "alice"), "k", testkit.OrderBody("pm_card_visa", shopSKU, "2"))
	s.AwaitBlockedOn(t, "FROM stock")
	require.Equal(t, http.StatusOK, asks(p, "/readyz"))
	held.Commit()
	requirePlaced(t, testkit.Take(t, waiting))
	p.Stop()
}

// Ensure an API that cannot have a connection for /readyz, because the role has all that it may, is ready as long as it serves.
func TestLifecycleReadyWithoutAConnectionToSpare(t *testing.T) {
	t.Parallel()
	o := openForOperators(t)
	o.StopAPI(t)
	p := testkit.Process(t, "api", changed(o.Env, "DB_MAX_CONNS", "1"))
	require.Equal(t, http.StatusOK, asks(p, "/readyz"))
	o.sh(`psql -q "$ADMIN_URL" -c "ALTER ROLE orders_service CONNECTION LIMIT 2" -c "SELECT pg_terminate_backend(pid)
		FROM pg_stat_activity WHERE application_name = 'orders-api-readyz'"`)
	var taken *pgx.Conn
	testkit.Eventually(t, "place of the connection for /readyz", func() (ok bool) {
		var err error
		taken, err = pgx.Connect(t.Context(), o.env["DATABASE_URL"])
		return err == nil
	})
	t.Cleanup(func() { _ = taken.Close(context.WithoutCancel(t.Context())) })
	awaitReady(t, p, http.StatusOK) // the first answer may be that of the connection that was ended
	require.NoError(t, taken.Close(t.Context()))
	p.Stop()
}

// Ensure a process is ready while its database answers and has the schema that it needs, not ready otherwise, by itself
// ready again, and alive all the time.
func TestLifecycleReadiness(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"api", "worker"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			s := testkit.Start(t)
			database := testkit.StartProxy(t, s.DatabaseURL)
			s.Env["DATABASE_URL"] = database.URL
			p := testkit.Process(t, command, s.Env)
			awaitReady(t, p, http.StatusOK)

			database.Cut()
			awaitReady(t, p, http.StatusServiceUnavailable)
			require.Equal(t, http.StatusOK, asks(p, "/livez"))
			require.NoError(t, database.Mend())
			awaitReady(t, p, http.StatusOK)

			database.Silence()
			awaitReady(t, p, http.StatusServiceUnavailable)
			require.Equal(t, http.StatusOK, asks(p, "/livez"))
			database.Recover()
			awaitReady(t, p, http.StatusOK)

			pending := s.Begin(t).Exec(`DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`)
			require.Equal(t, http.StatusOK, asks(p, "/readyz"))
			pending.Commit()
			require.Equal(t, http.StatusServiceUnavailable, asks(p, "/readyz"))
			require.Equal(t, http.StatusOK, asks(p, "/livez"))
			p.Stop()
		})
	}
}

// Ensure a database that takes no writes leaves the API ready, whose reads go on, and the worker not; that each says so in
// its metrics; and that a worker which starts meanwhile waits and then works.
func TestLifecycleReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	name := queryValue[string](s, `SELECT current_database()`)
	order := s.place("pm_card_visa")
	api, worker := testkit.Process(t, "api", s.Env), testkit.Process(t, "worker", s.Env)
	s.exec(`ALTER DATABASE ` + name + ` SET default_transaction_read_only = on`)
	s.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
		AND application_name LIKE 'orders-%'`) // for new sessions, as after a failover
	awaitReady(t, worker, http.StatusServiceUnavailable)
	awaitReady(t, api, http.StatusOK)
	alice := s.At(api.URL).As(t, "alice")
	testkit.Eventually(t, "a read", func() bool { return alice.Get("/v1/orders/"+order).Status == http.StatusOK })
	requireTryAgain(t, place(alice, "k", testkit.OrderBody("pm_card_visa", shopSKU, "1")))
	for _, p := range []*testkit.Running{api, worker} {
		require.Zero(t, testkit.ParseMetrics(t, strings.NewReader(readMetrics(t, p.Ops))).Value("orders_db_writable"))
	}

	worker.Stop()
	testkit.Eventually(t, "no session of a worker", func() bool { return s.Count(t, workerSessions) == 0 })
	late := testkit.Launch(t, "worker", s.Env)
	testkit.Eventually(t, "a worker that waits", func() bool { return s.Count(t, workerSessions) > 0 })
	// In a transaction that may write, of a session that may not.
	s.Begin(t).Exec(`SET TRANSACTION READ WRITE`).Exec(`ALTER DATABASE ` + name + ` RESET default_transaction_read_only`).Commit()
	late.AwaitReady()
	awaitReady(t, late, http.StatusOK)
	testkit.Eventually(t, "a write", func() bool {
		return place(alice, "k", testkit.OrderBody("pm_card_visa", shopSKU, "1")).Status == http.StatusCreated
	})
	late.Stop()
	api.Stop()
}

// Ensure a full disk is an outage of the writes alone, that nothing is lost by it, and that a worker which starts meanwhile
// waits until there is room.
func TestLifecycleFullDisk(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	order := s.place("pm_card_visa")
	s.exec(fullDisk)
	requireTryAgain(t, place(s.alice, "k", testkit.OrderBody("pm_card_visa", shopSKU, "1")))
	requireStatus(t, http.StatusOK, s.order(order))

	worker := testkit.Launch(t, "worker", s.Env)
	testkit.Eventually(t, "second write of River that was refused", func() bool {
		return queryValue[int](s, `SELECT last_value FROM test_refused`) > 1
	})
	s.exec(`DROP FUNCTION test_refuse CASCADE`)
	worker.AwaitReady()
	awaitReady(t, worker, http.StatusOK)
	requirePlaced(t, place(s.alice, "k", testkit.OrderBody("pm_card_visa", shopSKU, "1")))
	testkit.Eventually(t, "both orders paid", func() bool { return s.Count(t, `payments WHERE status = 'succeeded'`) == 2 })
	require.Len(t, s.Sandbox.Ledger().Charges, 2)
	worker.Stop()
}

// fullDisk makes every write fail as PostgreSQL fails it when it cannot extend a file (SQLSTATE 53100). A disk that is
// really full needs a file system of the test's own, which only root can mount. A sequence counts the refused writes of
// River, since it is not rolled back.
const fullDisk = `
CREATE SEQUENCE test_refused;
CREATE FUNCTION test_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	IF TG_TABLE_NAME LIKE 'river%' THEN PERFORM nextval('test_refused'); END IF;
	RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
END $$;
DO $$ DECLARE name text; BEGIN
	FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP
		EXECUTE format('CREATE TRIGGER test_full BEFORE INSERT OR UPDATE ON %I EXECUTE FUNCTION test_refuse()', name);
	END LOOP;
END $$`

const workerSessions = `pg_stat_activity WHERE datname = current_database() AND application_name = 'orders-worker'`
