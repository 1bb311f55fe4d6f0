package pgtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/peterldowns/pgtestdb"

	"example.com/orders/internal/dev/postgres"
)

func TestMain(m *testing.M) { Main(m) }

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func value[T any](t testing.TB, conn *pgx.Conn, sql string) T {
	t.Helper()
	var v T
	if err := conn.QueryRow(context.Background(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// items makes a table with one row and counts how often it was called. Its key is new, for pgtestdb remembers keys when
// the tests run more than once in a process.
func items() (pgtestdb.Migrator, *atomic.Int32) {
	calls := new(atomic.Int32)
	return Migrator(rand.Text(), func(ctx context.Context, db *sql.DB) error {
		calls.Add(1)
		_, err := db.ExecContext(ctx, "create table items (n int); insert into items values (1)")
		return err
	}), calls
}

func TestEachTestHasADatabaseOfItsOwnFromOneTemplate(t *testing.T) {
	m, calls := items()
	t.Run("parallel", func(t *testing.T) {
		for range 8 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				conn := connect(t, Database(t, m))
				t.Logf("database after %v", time.Since(began))
				if n := value[int](t, conn, "insert into items values (2) returning (select count(*) from items)"); n != 1 {
					t.Errorf("%d rows before the insert, want the template's one", n)
				}
				if value[bool](t, conn, "select rolsuper from pg_roles where rolname = current_user") {
					t.Error("the user is a superuser")
				}
			})
		}
	})
	if n := calls.Load(); n != 1 {
		t.Errorf("migrated %d times, want once", n)
	}
}

func TestPassedTestsLeaveNoDatabase(t *testing.T) {
	m, _ := items()
	var name string
	t.Run("passes", func(t *testing.T) {
		url := Database(t, m)
		name = value[string](t, connect(t, url), "select current_database()")
		leaked, err := pgx.Connect(context.Background(), url)
		if err != nil {
			t.Fatal(err)
		}
		_ = leaked // still open when the database is dropped, as after a crash
	})
	admin, err := address()
	if err != nil {
		t.Fatal(err)
	}
	if value[bool](t, connect(t, admin), "select exists (select from pg_database where datname = '"+name+"')") {
		t.Errorf("database %s is still there", name)
	}
}

func TestServersOfTheirOwnSurviveAnOutage(t *testing.T) {
	m, calls := items()
	servers := []*postgres.Server{Server(t), Server(t)}
	for _, s := range servers {
		url := DatabaseOn(t, s, m)
		value[int](t, connect(t, url), "insert into items values (2) returning n")
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := pgx.Connect(t.Context(), url); err == nil {
			t.Error("connected to a killed server")
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := value[int](t, connect(t, url), "select count(*) from items"); n != 2 {
			t.Errorf("%d rows after the outage, want 2", n)
		}
	}
	if n := calls.Load(); n != 2 {
		t.Errorf("migrated %d times, want once a server", n)
	}
	if err := servers[1].Kill(); err != nil { // a test may end in the middle of an outage
		t.Fatal(err)
	}
}

func TestUsesTheServerThatTheEnvironmentNames(t *testing.T) {
	s := Server(t)
	t.Setenv("TEST_DATABASE_URL", s.URL("postgres"))
	if url, started, err := start(); url != s.URL("postgres") || started != nil || err != nil { // it is not ours to stop
		t.Errorf("address %q, server %v, error %v", url, started, err)
	}
}

func TestConfigKeepsQuoting(t *testing.T) {
	conf, err := config("postgres://us%3Aer:p%40ss@db.example/main?sslmode=require")
	if err != nil {
		t.Fatal(err)
	}
	if want := "postgres://us%3Aer:p%40ss@db.example:5432/main?sslmode=require"; conf.URL() != want {
		t.Errorf("address %s, want %s", conf.URL(), want)
	}
}

func BenchmarkDatabase(b *testing.B) {
	m, _ := items()
	Database(b, m) // the template
	for b.Loop() {
		Database(b, m)
	}
}

func BenchmarkConnect(b *testing.B) {
	m, _ := items()
	url := Database(b, m)
	for b.Loop() {
		conn, err := pgx.Connect(b.Context(), url)
		if err != nil {
			b.Fatal(err)
		}
		conn.Close(b.Context())
	}
}
