package pgtest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"net/url"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver that pgtestdb opens by its name
	"github.com/peterldowns/pgtestdb"
)

// Migrator makes a migrator for Database from a function. The key identifies the schema that the function makes: two
// functions with the same key share a template, which a server that outlives the tests keeps. So a key for migrations that
// change must change with them.
func Migrator(key string, up func(context.Context, *sql.DB) error) pgtestdb.Migrator {
	return migrator{key: key, up: up}
}

type migrator struct {
	key string
	up  func(context.Context, *sql.DB) error
}

func (m migrator) Hash() (string, error) { return m.key, nil }

func (m migrator) Migrate(ctx context.Context, db *sql.DB, _ pgtestdb.Config) error {
	return m.up(ctx, db)
}

func create(t pgtestdb.TB, admin string, m pgtestdb.Migrator) string {
	t.Helper()
	conf, err := config(admin)
	if err != nil {
		t.Fatalf("address of the test server: %v", err)
	}
	return pgtestdb.Custom(t, conf, m).URL()
}

// config takes an address apart into what pgtestdb puts together again, without quoting anything itself.
func config(admin string) (pgtestdb.Config, error) {
	u, err := url.Parse(admin)
	if err != nil {
		return pgtestdb.Config{}, fmt.Errorf("parse: %w", err)
	}
	user, password, _ := strings.Cut(u.User.String(), ":")
	return pgtestdb.Config{
		DriverName: "pgx",
		Host:       u.Hostname(),
		Port:       cmp.Or(u.Port(), "5432"),
		User:       user,
		Password:   password,
		Database:   strings.TrimPrefix(u.EscapedPath(), "/"),
		Options:    u.RawQuery,
		TestRole:   role(admin),
		// Tests that play a crash leave connections behind on purpose.
		ForceTerminateConnections: true,
	}, nil
}

// role differs from server to server, because pgtestdb remembers by the role's name, for the life of the process, which
// roles and templates it has made. On one server it is the same for all processes, so that they share their templates.
func role(admin string) *pgtestdb.Role {
	sum := sha256.Sum256([]byte("pgtest " + admin))
	return &pgtestdb.Role{
		Username:     fmt.Sprintf("test_%x", sum[:4]),
		Password:     fmt.Sprintf("%x", sum[4:20]),
		Capabilities: pgtestdb.DefaultRoleCapabilities,
	}
}
