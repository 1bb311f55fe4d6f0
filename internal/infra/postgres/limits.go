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

// limits are the PostgreSQL settings that bound a session's waits and statements.
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

// shareConnections configures a connection for a pooler in transaction mode, where each transaction may run in another
// session. It uses no named prepared statements, which belong to one session (PgBouncer supports them from 1.21 on, if
// configured), only statement descriptions, which are the same in every session.
func shareConnections(c *pgx.ConnConfig) {
	c.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	c.StatementCacheCapacity = 0
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
