package config

import "time"

// Migrate configures cmd/migrate.
type Migrate struct {
	Database Database
	Timeout  time.Duration // of the whole run, including the wait for another migrating process
}

// LoadMigrate reads and checks the configuration of cmd/migrate. It connects as the owner of the schema, where that is
// another role than the service's.
func LoadMigrate(lookup Lookup) (Migrate, error) {
	r := &reader{lookup: lookup}
	variable := "MIGRATE_DATABASE_URL"
	if _, ok := r.value(variable); !ok {
		variable = "DATABASE_URL"
		if r.choice("DB_POOLER", "none", "transaction") != "none" {
			r.fail("MIGRATE_DATABASE_URL", "is not set: migrations need a session of their own, which a pooler does not give")
		}
	}
	c := Migrate{
		Database: Database{
			Variable:       variable,
			URL:            r.postgresURL(variable),
			MaxConns:       4, // one holds the lock, River's migrations take another
			ConnectTimeout: r.duration("DB_CONNECT_TIMEOUT", 30*time.Second, time.Second, 10*time.Minute),
			AcquireTimeout: 5 * time.Second,
			// A migration that waits for a table lock makes all later queries on that table wait behind it, so it gives
			// up soon and tries again. The other limits are zero (no limit): a migration that has its locks may run as
			// long as it needs.
			LockTimeout: r.duration("DB_LOCK_TIMEOUT", 5*time.Second, 10*time.Millisecond, time.Minute),
		},
		Timeout: r.duration("MIGRATE_TIMEOUT", 10*time.Minute, time.Second, 24*time.Hour),
	}
	return c, r.err()
}
