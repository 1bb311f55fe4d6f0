package postgres

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/orders/internal/infra/config"
)

// limits are PostgreSQL's settings that bound what a session waits for and how long it works.
func limits(c config.Database) map[string]string {
	return map[string]string{
		"lock_timeout":                        milliseconds(c.LockTimeout),
		"statement_timeout":                   milliseconds(c.StatementTimeout),
		"idle_in_transaction_session_timeout": milliseconds(c.IdleTxTimeout),
	}
}

// NewSettings are the settings of a store. keyWait bounds how long a duplicate waits for the request that has its key.
func NewSettings(c config.Database, keyWait time.Duration) Settings {
	return Settings{
		KeyWait: keyWait, LockTimeout: c.LockTimeout, AcquireTimeout: c.AcquireTimeout, atBegin: limitsAtBegin(c),
	}
}

// limitsAtBegin is the statements that each transaction runs at its begin where the limits cannot belong to the session,
// because a pooler gives every transaction another one. There are none where they do.
func limitsAtBegin(c config.Database) (statements []string) {
	if !c.Pooled {
		return nil
	}
	set := limits(c)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		statements = append(statements, fmt.Sprintf("set local %s = %s", name, set[name]))
	}
	return statements
}

// shareConnections makes a connection fit for a pooler in transaction mode, where the next transaction may run in
// another session: no named prepared statements, whose sessions would not be found again (PgBouncer can follow them
// from 1.21 on, if it is told to), only descriptions, which are the same everywhere.
func shareConnections(c *pgx.ConnConfig) {
	c.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	c.StatementCacheCapacity = 0
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
