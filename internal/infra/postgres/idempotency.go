package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/orders/internal/app"
)

// A duplicate of a request in another process polls for the key's record, with a pause that grows from probeFirst to
// probeMost.
const (
	probeFirst = 10 * time.Millisecond
	probeMost  = 100 * time.Millisecond
)

// errKeyBusy means that another transaction is running under the key, or has just completed it.
var errKeyBusy = errors.New("another transaction is running under the key")

// InKeyedTx implements app.Store: first the turn within this process, then the turn among all processes. A duplicate waits
// for both without a connection.
func (s *Store) InKeyedTx(
	ctx context.Context, scope app.KeyScope, fn func(context.Context, app.Tx) error,
) (err error) {
	start := time.Now()
	deadline := start.Add(s.settings.KeyWait)
	run := func(looked func()) error {
		return s.inTx(ctx, func(t *Tx) { t.lookUp(scope, looked) }, fn)
	}
	place, err := s.gate.enter(ctx, scope, deadline)
	waited, returned := place.waited, false
	defer func() { place.leave(returned && err == nil) }() // a panic in fn must not keep the turn
	switch {
	case err != nil:
	case place.done:
		err = s.bounded(ctx, deadline, run)
	default:
		err = run(func() {})
	}
	for wait := probeFirst; errors.Is(err, errKeyBusy); wait = min(2*wait, probeMost) {
		waited = true
		err = app.ErrKeyInProgress
		if time.Until(deadline) >= wait {
			if err = pause(ctx, Jitter(wait)); err == nil {
				err = s.bounded(ctx, deadline, run)
			}
		}
	}
	if waited {
		s.observeWait(ctx, err, time.Since(start))
	}
	returned = true
	return err
}

func (s *Store) observeWait(ctx context.Context, err error, took time.Duration) {
	outcome := "turn"
	if errors.Is(err, app.ErrKeyInProgress) {
		outcome = "timeout"
	}
	s.observer.KeyWait(ctx, outcome, took)
}

// bounded runs one polling duplicate. The number of concurrent polls is smaller than the pool, so that duplicates
// cannot exhaust it. A duplicate that takes the key over gives its slot to the next one once it has looked the key up:
// from then on it counts as a normal request.
func (s *Store) bounded(ctx context.Context, deadline time.Time, run func(looked func()) error) error {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case s.probes <- struct{}{}:
	case <-timer.C:
		return app.ErrKeyInProgress
	case <-ctx.Done():
		return classify(ctx.Err())
	}
	looked := sync.OnceFunc(func() { <-s.probes })
	defer looked()
	return run(looked)
}

// keyLookup is what the first round trip of a keyed transaction found for its key.
type keyLookup struct {
	scope  app.KeyScope
	looked func() // is called then
	record *app.KeyRecord
}

const liveKey = `FROM idempotency_keys
	WHERE tenant_id = $1 AND actor_id = $2 AND operation = $3 AND key = $4 AND state = 'completed' AND expires_at > now()`

// lookUp collects the look at a key. It goes before BEGIN, so that a replay is one flight and no transaction. Else BEGIN takes
// the turn among all processes and looks again: where another request has the turn, or has completed the key in between, the
// flight ends there with errKeyBusy. The turn is an optimisation: it keeps two requests from doing the same work. What admits
// one of them is the unique index, when the record is inserted.
func (t *Tx) lookUp(scope app.KeyScope, looked func()) {
	t.key = &keyLookup{scope: scope, looked: looked}
	t.look("read key", `SELECT fingerprint, response_status, response_headers, response_body `+liveKey,
		func(rows pgx.Rows) error {
			records, err := pgx.CollectRows(rows, scanKey)
			if err == nil && len(records) > 0 {
				t.key.record = &records[0]
			}
			return err
		}, values(scope)...)
	t.begin = func() {
		t.queueBegin()
		t.must(statement{name: "take the turn of a key", missed: errKeyBusy}, `pg_try_advisory_xact_lock($1)`, turnOf(scope))
		t.must(statement{name: "look at the key again", missed: errKeyBusy}, `NOT EXISTS (SELECT `+liveKey+`)`, values(scope)...)
	}
}

func values(k app.KeyScope) []any { return []any{k.Tenant, k.Actor, k.Operation, k.Key} }

func scanKey(row pgx.CollectableRow) (r app.KeyRecord, err error) {
	var digest []byte
	err = row.Scan(&digest, &r.Reply.Status, &r.Reply.Header, &r.Reply.Body)
	copy(r.Fingerprint[:], digest)
	return r, err
}

// turnOf returns the number of a key's advisory lock. If two keys share a number, their requests only wait for each
// other.
func turnOf(k app.KeyScope) int64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", k.Tenant, k.Actor, k.Operation, k.Key))
	return int64(binary.BigEndian.Uint64(sum[:8])) //nolint:gosec // G115: bits of a hash
}

// FindKey implements app.Tx.
func (t *Tx) FindKey() (*app.KeyRecord, error) {
	err := t.flush(t.ctx)
	t.key.looked()
	return t.key.record, err
}

// completeKey inserts the record of an accepted request. If an unexpired record exists, because a request did not take
// the advisory lock, it changes no row and the transaction fails: the unique index lets only one request through. An
// expired record is replaced in the same statement. The times come from the database's clock, as parameters, because
// Citus refuses now() in ON CONFLICT.
const completeKey = `
INSERT INTO idempotency_keys AS k (tenant_id, actor_id, operation, key, fingerprint, state, response_status,
	response_headers, response_body, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, 'completed', $6, $7, $8, $9, $10)
ON CONFLICT (tenant_id, actor_id, operation, key) DO UPDATE
SET fingerprint = excluded.fingerprint, state = 'completed', response_status = excluded.response_status,
	response_headers = excluded.response_headers, response_body = excluded.response_body,
	created_at = excluded.created_at, expires_at = excluded.expires_at
WHERE k.expires_at <= $9`

// CompleteKey implements app.Tx. Its error comes with the COMMIT.
func (t *Tx) CompleteKey(digest app.Fingerprint, reply app.Reply, retention time.Duration) {
	k := t.key.scope
	t.writeOne(statement{name: "complete key", missed: errKeyBusy, taken: errKeyBusy}, completeKey,
		k.Tenant, k.Actor, k.Operation, k.Key, digest[:], reply.Status, reply.Header, reply.Body, t.Now(), t.Now().Add(retention))
}
