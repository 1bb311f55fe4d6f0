package postgres

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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

// TxLimits is SQL that each transaction runs at its begin where the limits cannot belong to the session, because a
// pooler gives every transaction another one. It is empty where they do.
func TxLimits(c config.Database) string {
	if !c.Pooled {
		return ""
	}
	var sql strings.Builder
	set := limits(c)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		fmt.Fprintf(&sql, "; set local %s = %s", name, set[name])
	}
	return sql.String()
}

// shareConnections makes a connection fit for a pooler in transaction mode, where the next transaction may run in
// another session: no named prepared statements, whose sessions would not be found again (PgBouncer can follow them
// from 1.21 on, if it is told to), only descriptions, which are the same everywhere.
func shareConnections(c *pgx.ConnConfig) {
	c.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	c.StatementCacheCapacity = 0
}

// txOptions adds the limits to a transaction of its own.
func (s Settings) txOptions(o pgx.TxOptions) pgx.TxOptions {
	if s.TxLimits != "" {
		o.BeginQuery = strings.TrimSpace("begin isolation level "+string(o.IsoLevel)+" "+string(o.AccessMode)) + s.TxLimits
	}
	return o
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
