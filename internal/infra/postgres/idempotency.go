package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/orders/internal/app"
)

const (
	// claimPatience is how long a claim waits on the unique index, and so how long a duplicate of a request of another
	// process holds a connection at a time. Most winners end sooner.
	claimPatience = 20 * time.Millisecond
	// A duplicate that ran out of patience looks again after a pause, which grows from probeFirst to probeMost.
	probeFirst = 20 * time.Millisecond
	probeMost  = 200 * time.Millisecond
)

// errKeyBusy says that another transaction has claimed the key and has not ended.
var errKeyBusy = errors.New("key claimed by another transaction")

// InKeyedTx implements app.Store: first the turn within this process, then the claim against other processes. A
// duplicate waits in both without a connection, except for claimPatience at a time on one of the few probes.
func (s *Store) InKeyedTx(ctx context.Context, scope app.KeyScope, fn func(context.Context, app.Tx) error) error {
	start := time.Now()
	deadline := start.Add(s.settings.KeyWait)
	leave, waited, err := s.gate.enter(ctx, scope, deadline)
	if err == nil {
		defer leave()
		err = s.InTx(ctx, fn)
	}
	for wait := probeFirst; errors.Is(err, errKeyBusy); wait = min(2*wait, probeMost) {
		waited = true
		err = app.ErrKeyInProgress
		if time.Until(deadline) >= wait {
			err = s.probe(ctx, jitter(wait), deadline, fn)
		}
	}
	if waited {
		s.observeWait(ctx, err, time.Since(start))
	}
	return err
}

func (s *Store) observeWait(ctx context.Context, err error, took time.Duration) {
	outcome := "turn"
	if errors.Is(err, app.ErrKeyInProgress) {
		outcome = "timeout"
	}
	s.observer.KeyWait(ctx, outcome, took)
}

// probe looks again, after a pause, for a key that was busy. There are fewer probes than connections, so that any
// number of waiting duplicates leaves connections to others. All can be taken, by duplicates that took over from a
// winner and are at work, so the wait for one has the same deadline as the rest.
func (s *Store) probe(
	ctx context.Context, wait time.Duration, deadline time.Time, fn func(context.Context, app.Tx) error,
) error {
	if err := pause(ctx, wait); err != nil {
		return err
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case s.probes <- struct{}{}:
	case <-timer.C:
		return app.ErrKeyInProgress
	case <-ctx.Done():
		return classify(ctx.Err())
	}
	defer func() { <-s.probes }()
	return s.InTx(ctx, fn)
}

// claimKey inserts the claim. A live record of another request blocks it: the statement waits until that transaction
// ends, and then finds either nothing (rolled back: the claim is ours) or a live record (no row comes back). An expired
// record that cleanup has not reached is taken over in the same step. The times are the database's,
// as parameters: Citus refuses now() in ON CONFLICT.
const claimKey = `
INSERT INTO idempotency_keys AS k (tenant_id, actor_id, operation, key, fingerprint, state, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, 'claimed', $6, $7)
ON CONFLICT (tenant_id, actor_id, operation, key) DO UPDATE
SET fingerprint = excluded.fingerprint, state = 'claimed', created_at = excluded.created_at,
    expires_at = excluded.expires_at, response_status = NULL, response_headers = NULL, response_body = NULL
WHERE k.expires_at <= $6
RETURNING true`

// ClaimKey implements app.Tx.
func (t *Tx) ClaimKey(
	ctx context.Context, k app.KeyScope, print app.Fingerprint, now, expires time.Time,
) (*app.KeyRecord, error) {
	// Two rounds, not a loop: between a claim that met a record and the read of it, the record can vanish only if it
	// expired and was purged in that moment.
	for range 2 {
		claimed, err := t.claim(ctx, k, print, now, expires)
		if err != nil || claimed {
			return nil, err
		}
		record, err := t.completedKey(ctx, k)
		if !errors.Is(err, pgx.ErrNoRows) {
			return record, err
		}
	}
	return nil, fmt.Errorf("%w: key record vanished twice", app.ErrTryAgain)
}

// lockKeyTable takes the lock on the table that the claim needs, and nothing else: it waits for a migration, say, as long
// as any other statement does. A claim that then runs into its own, shorter limit has met another claim of the key.
const lockKeyTable = `LOCK TABLE idempotency_keys IN ROW EXCLUSIVE MODE`

// claim tells whether the key is this transaction's now. It returns errKeyBusy where another transaction has it.
func (t *Tx) claim(ctx context.Context, k app.KeyScope, print app.Fingerprint, now, expires time.Time) (bool, error) {
	claimed, locked := false, false
	batch := &pgx.Batch{}
	batch.Queue(lockKeyTable).Exec(func(pgconn.CommandTag) error { locked = true; return nil })
	batch.Queue(setLockTimeout, milliseconds(claimPatience))
	batch.Queue(claimKey, k.Tenant, k.Actor, k.Operation, k.Key, print[:], now, expires).
		Query(func(rows pgx.Rows) error {
			claimed = rows.Next()
			rows.Close()
			return rows.Err()
		})
	batch.Queue(setLockTimeout, milliseconds(t.store.settings.LockTimeout))
	err := t.tx.SendBatch(ctx, batch).Close()
	if locked && sqlState(err) == lockNotAvailable {
		return false, errKeyBusy
	}
	if err != nil {
		return false, fmt.Errorf("claim key: %w", err)
	}
	return claimed, nil
}

func (t *Tx) completedKey(ctx context.Context, k app.KeyScope) (*app.KeyRecord, error) {
	var r app.KeyRecord
	var print []byte
	err := t.tx.QueryRow(ctx, `
		SELECT fingerprint, response_status, response_headers, response_body
		FROM idempotency_keys
		WHERE tenant_id = $1 AND actor_id = $2 AND operation = $3 AND key = $4 AND state = 'completed'`,
		k.Tenant, k.Actor, k.Operation, k.Key,
	).Scan(&print, &r.Reply.Status, &r.Reply.Header, &r.Reply.Body)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	copy(r.Fingerprint[:], print)
	return &r, nil
}

// CompleteKey implements app.Tx.
func (t *Tx) CompleteKey(ctx context.Context, k app.KeyScope, reply app.Reply) error {
	tag, err := t.tx.Exec(ctx, `
		UPDATE idempotency_keys
		SET state = 'completed', response_status = $5, response_headers = $6, response_body = $7
		WHERE tenant_id = $1 AND actor_id = $2 AND operation = $3 AND key = $4 AND state = 'claimed'`,
		k.Tenant, k.Actor, k.Operation, k.Key, reply.Status, reply.Header, reply.Body)
	return saved("key", tag, err)
}

// setLockTimeout bounds the waits for locks until the end of the transaction (it is SET LOCAL with a parameter).
const setLockTimeout = `SELECT set_config('lock_timeout', $1, true)`
