package testkit

import (
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Held is a transaction of the test's own. It holds locks for as long as the test wants requests to wait.
type Held struct {
	t       TB
	tx      pgx.Tx
	granted chan error // of a statement that waits; nil where none does
}

// Begin starts a transaction on a connection of its own, so that no pool runs dry.
func (s *Service) Begin(t TB) *Held {
	t.Helper()
	conn, err := pgx.Connect(bounded(t), s.DatabaseURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(bounded(t)) })
	tx, err := conn.Begin(bounded(t))
	require.NoError(t, err)
	return &Held{t: t, tx: tx}
}

// HoldStock locks the stock of a sku of tenant default: an order of it waits in the middle of its transaction.
func (s *Service) HoldStock(t TB, sku string) *Held {
	t.Helper()
	return s.Begin(t).Exec(`SELECT FROM stock WHERE tenant_id = 'default' AND sku = $1 FOR UPDATE`, sku)
}

// QueueForStock asks for the whole stock table and returns once it is granted or in the queue for it. PostgreSQL grants
// a table's locks first come, first served, so a later transaction waits behind it.
func (s *Service) QueueForStock(t TB) *Held {
	t.Helper()
	h := s.Begin(t)
	pid := h.tx.Conn().PgConn().PID()
	h.granted = make(chan error, 1)
	go func() {
		_, err := h.tx.Exec(bounded(t), `LOCK TABLE stock IN EXCLUSIVE MODE`)
		h.granted <- err
	}()
	Eventually(t, "place in the queue", func() bool {
		return s.Count(t, `pg_locks WHERE pid = $1 AND locktype = 'relation' AND relation = 'stock'::regclass`, pid) > 0
	})
	return h
}

// Exec runs a statement that is not expected to wait.
func (h *Held) Exec(sql string, args ...any) *Held {
	h.t.Helper()
	_, err := h.tx.Exec(bounded(h.t), sql, args...)
	require.NoError(h.t, err)
	return h
}

// Granted waits for the lock that was queued for.
func (h *Held) Granted() *Held {
	h.t.Helper()
	require.NoError(h.t, Take(h.t, h.granted))
	return h
}

// Commit ends the transaction and lets go of its locks.
func (h *Held) Commit() {
	h.t.Helper()
	require.NoError(h.t, h.tx.Commit(bounded(h.t)))
}

// Rollback undoes the transaction and lets go of its locks.
func (h *Held) Rollback() {
	h.t.Helper()
	require.NoError(h.t, h.tx.Rollback(bounded(h.t)))
}

// waiting selects the sessions of an application that wait for a lock.
const waiting = `pg_stat_activity
	WHERE datname = current_database() AND application_name = $1 AND wait_event_type = 'Lock'`

// Blocked is how many sessions of an application, such as orders-api, wait for locks.
func (s *Service) Blocked(t TB, application string) int {
	t.Helper()
	return s.Count(t, waiting, application)
}

// AwaitBlocked waits until n sessions of the API wait for locks.
func (s *Service) AwaitBlocked(t TB, n int) {
	t.Helper()
	Eventually(t, "requests that wait for a lock", func() bool { return s.Blocked(t, "orders-api") == n })
}

// AwaitBlockedOn waits until a session of the API waits for a lock in a statement that names the table.
func (s *Service) AwaitBlockedOn(t TB, table string) {
	t.Helper()
	Eventually(t, "a request that waits on "+table, func() bool {
		return s.Count(t, waiting+` AND query LIKE '%' || $2 || '%'`, "orders-api", table) > 0
	})
}
