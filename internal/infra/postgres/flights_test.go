package postgres

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
)

// rivals runs two keyed transactions under one key, neither of which has seen the other: they took the turns of two other
// keys, as if they shared no advisory locks. Each is held until both have done their work; then both send it with the key
// and COMMIT.
func (s saving) rivals(scope app.KeyScope, work func(ctx context.Context, tx app.Tx, name string) error) [2]error {
	var bothDone, ended sync.WaitGroup
	bothDone.Add(2)
	var results [2]error
	for i, name := range []string{"one", "two"} {
		ended.Go(func() {
			results[i] = s.inTx(s.t.Context(), func(tx *Tx) {
				tx.lookUp(keyOf(name), func() {})
				tx.key.scope = scope
			}, func(ctx context.Context, tx app.Tx) error {
				record, err := tx.FindKey()
				if err == nil && record == nil {
					err = work(ctx, tx, name)
				}
				tx.CompleteKey(app.Fingerprint{1}, replyOf(name), time.Hour)
				bothDone.Done()
				bothDone.Wait()
				return err
			})
		})
	}
	ended.Wait()
	return results
}

func replyOf(name string) app.Reply {
	return app.Reply{Status: 201, Header: []byte("{}"), Body: []byte(name)}
}

// Ensure the index alone admits one of two requests under a key: the other one commits nothing, looks again and finds the
// record.
//
// Standard: litespec/ext/concurrency#enforce-key-uniqueness
// Standard: litespec/ext/concurrency#reload-concurrent-winners
func TestTheIndexAdmitsOneRequestWithoutTheTurn(t *testing.T) {
	t.Parallel()
	s := newSaving(t)
	s.addNotes()
	scope := keyOf("k")
	results := s.rivals(scope, note)
	winner := "one"
	if results[0] != nil {
		winner, results[0], results[1] = "two", results[1], results[0]
	}
	require.NoError(t, results[0])
	require.ErrorIs(t, results[1], errKeyBusy)
	require.Equal(t, []string{winner}, s.notes(), "the other one left something")

	var found *app.KeyRecord
	require.NoError(t, s.InKeyedTx(t.Context(), scope, func(_ context.Context, tx app.Tx) (err error) {
		found, err = tx.FindKey()
		return err
	}))
	require.Equal(t, &app.KeyRecord{Fingerprint: app.Fingerprint{1}, Reply: replyOf(winner)}, found)
}

// Ensure COMMIT is not sent for a caller that has gone when its work was done.
//
// Standard: litespec/ext/concurrency#store-idempotency-state-atomically
func TestACallerThatHasGoneCommitsNothing(t *testing.T) {
	t.Parallel()
	s := newSaving(t)
	s.addNotes()
	ctx, leave := context.WithCancel(t.Context())
	err := s.InKeyedTx(ctx, keyOf("k"), func(ctx context.Context, tx app.Tx) error {
		err := note(ctx, tx, "gone")
		tx.CompleteKey(app.Fingerprint{1}, replyOf("gone"), time.Hour)
		leave()
		return err
	})
	require.Error(t, err)
	require.NotErrorIs(t, err, app.ErrOutcomeUnknown)
	require.Empty(t, s.notes())
}

// Ensure the same where the record of the key has expired and was not removed: one of the two replaces it.
//
// Standard: litespec/ext/concurrency#enforce-key-uniqueness
func TestTheIndexAdmitsOneReplacementWithoutTheTurn(t *testing.T) {
	t.Parallel()
	s := newSaving(t)
	s.addNotes()
	require.NoError(t, s.InKeyedTx(t.Context(), keyOf("k"), func(_ context.Context, tx app.Tx) error {
		tx.CompleteKey(app.Fingerprint{}, replyOf("old"), time.Hour)
		return nil
	}))
	s.exec(`UPDATE idempotency_keys SET created_at = now() - interval '2 hours', expires_at = now() - interval '1 hour'`)
	results := s.rivals(keyOf("k"), note)
	if results[0] != nil {
		results[0], results[1] = results[1], results[0]
	}
	require.NoError(t, results[0])
	require.ErrorIs(t, results[1], errKeyBusy)
	require.Len(t, s.notes(), 1)
}

// Ensure a key that another transaction has not ended is told from a lock on the whole table, when the insert gives up.
func TestATableLockIsNoBusyKey(t *testing.T) {
	t.Parallel()
	s := newSaving(t)
	complete := func(key string) error {
		return s.inTx(t.Context(), func(tx *Tx) {
			tx.lookUp(keyOf(key), func() {})
			tx.Write("limit", `SET LOCAL lock_timeout = '50ms'`)
		}, func(_ context.Context, tx app.Tx) error {
			tx.CompleteKey(app.Fingerprint{}, replyOf("x"), time.Hour)
			return nil
		})
	}
	for statement, want := range map[string]error{
		`LOCK TABLE idempotency_keys IN SHARE MODE`: app.ErrTryAgain,
		`INSERT INTO idempotency_keys (tenant_id, actor_id, operation, key, fingerprint, state, created_at, expires_at)
			VALUES ('t', 'a', 'o', 'k', sha256('x'), 'claimed', now(), now() + interval '1 hour')`: errKeyBusy,
	} {
		held, err := s.pool.Begin(t.Context())
		require.NoError(t, err)
		require.NoError(t, complete(want.Error()[:3])) // with another key: the connection has then prepared the insert
		_, err = held.Exec(t.Context(), statement)
		require.NoError(t, err)
		require.ErrorIs(t, complete("k"), want)
		require.NoError(t, held.Rollback(t.Context()))
	}
}

// Ensure nothing of a flight stays where a statement before the COMMIT fails, wherever it stands.
//
// Standard: litespec/ext/concurrency#discard-failed-replay-state
func TestAFailureBesideTheCommitLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newSaving(t)
	s.addNotes()
	for position := range 3 {
		err := s.InKeyedTx(t.Context(), keyOf("k"), func(ctx context.Context, tx app.Tx) error {
			for i := range 3 {
				if i == position {
					tx.(*Tx).Write("fail", `INSERT INTO test_notes VALUES (NULL)`)
				}
				require.NoError(t, note(ctx, tx, "x"))
			}
			tx.CompleteKey(app.Fingerprint{}, replyOf("x"), time.Hour)
			return nil
		})
		require.ErrorContains(t, err, "fail: ")
		require.NotErrorIs(t, err, app.ErrOutcomeUnknown)
		require.Empty(t, s.notes())
	}
}

// Ensure a flight that cannot be sent, since an argument cannot be encoded, is an error that left nothing, not an unknown
// outcome.
//
// Standard: litespec/ext/concurrency#discard-failed-replay-state
func TestAFlightThatCannotBeSentLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newSaving(t)
	s.addNotes()
	err := s.InTx(t.Context(), func(ctx context.Context, tx app.Tx) error {
		require.NoError(t, note(ctx, tx, "x"))
		tx.(*Tx).Write("unsendable", `INSERT INTO test_notes VALUES ($1)`, struct{}{})
		return nil
	})
	require.Error(t, err)
	require.NotErrorIs(t, err, app.ErrOutcomeUnknown)
	require.NotErrorIs(t, err, app.ErrTryAgain)
	require.Empty(t, s.notes())
}

// Ensure a transaction in which a statement has failed is not taken for committed where that error was not heeded.
//
// Standard: litespec/ext/concurrency#discard-failed-replay-state
func TestAnErrorThatWasNotHeededIsNoCommit(t *testing.T) {
	t.Parallel()
	s := newSaving(t)
	s.addNotes()
	err := s.InTx(t.Context(), func(ctx context.Context, tx app.Tx) error {
		_, err := SessionOf(tx).Immediate().Exec(ctx, `INSERT INTO test_notes VALUES (NULL)`)
		require.Error(t, err)
		return nil
	})
	require.ErrorIs(t, err, pgx.ErrTxCommitRollback)
	require.NotErrorIs(t, err, app.ErrOutcomeUnknown)
}

// Ensure a duplicate that takes over from a request of another process gives its place among the probes to others once it
// has looked: it may be at work for long.
func TestATakeoverIsNoProbe(t *testing.T) {
	t.Parallel()
	s := newSaving(t)
	s.addNotes()
	other, err := s.pool.Acquire(t.Context())
	require.NoError(t, err)
	defer other.Release()
	turn := turnOf(keyOf("k"))
	_, err = other.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, turn)
	require.NoError(t, err)
	runs := 0
	require.NoError(t, s.InKeyedTx(t.Context(), keyOf("k"), func(ctx context.Context, tx app.Tx) error {
		_, err := tx.FindKey()
		require.NoError(t, err)
		require.Empty(t, s.probes)
		if runs++; runs == 2 {
			_, err = other.Exec(ctx, `SELECT pg_advisory_unlock($1)`, turn)
			require.NoError(t, err)
		}
		return note(ctx, tx, "x")
	}))
	require.Equal(t, 2, runs)
	require.Len(t, s.notes(), 1, "the run without the turn left something")
}

// addNotes makes a table for what the tests' transactions write.
func (s saving) addNotes() { s.exec(`CREATE TABLE test_notes (name text NOT NULL)`) }

func (s saving) exec(sql string) {
	s.t.Helper()
	_, err := s.pool.Exec(s.t.Context(), sql)
	require.NoError(s.t, err)
}

func note(_ context.Context, tx app.Tx, name string) error {
	tx.(*Tx).Write("note", `INSERT INTO test_notes VALUES ($1)`, name)
	return nil
}

func (s saving) notes() []string {
	s.t.Helper()
	rows, _ := s.pool.Query(s.t.Context(), `SELECT name FROM test_notes`)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(s.t, err)
	return list
}
