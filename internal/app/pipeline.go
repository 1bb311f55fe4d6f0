package app

import (
	"context"
	"fmt"

	"example.com/orders/internal/domain"
)

// Command is one attempt at a use case that changes something: what each stage of the pipeline needs.
type Command[R any] struct {
	UseCase
	Actor Actor

	// Validate checks the input by itself, before any transaction.
	Validate func() error
	// Target checks, inside the transaction, that the actor may touch what the command names. Nil: nothing is named.
	Target func(ctx context.Context, tx Tx) error
	// Handle does the work.
	Handle func(ctx context.Context, tx Tx) (R, error)

	// Retry is set where the mode is ModeKey.
	Retry *Retry[R]
}

// Retry is what the idempotency stage needs of a keyed command.
type Retry[R any] struct {
	Key   string
	Route string // method, path template and path parameters: the identity of the route
	Input any    // the mapped input that the fingerprint covers, the expected version included
	// Render turns the result into the answer that is sent now and replayed later. It belongs to the boundary.
	Render func(R) (Reply, error)
}

// Reply is an answer as the boundary rendered it: kept and given back byte for byte, never looked into here.
type Reply struct {
	Status int
	Header []byte
	Body   []byte
}

// Outcome is what a keyed command answers.
type Outcome struct {
	Reply
	Replayed bool
}

// run carries a command without a client key through its stages.
func run[R any](ctx context.Context, s *Service, c Command[R]) (result R, err error) {
	if err := admit(c); err != nil {
		return result, err
	}
	err = s.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		if err := target(ctx, tx, c); err != nil {
			return err
		}
		result, err = c.Handle(ctx, tx)
		return err
	})
	return result, err
}

// runKeyed carries a command with a client key through its stages, in this order and no other:
//
//	authorize → validate → transaction { authorize the target → idempotency { handler } }
//
// So a denied or invalid attempt neither spends a key nor replays a result, and the claim, the change, the outbox
// jobs and the stored answer commit together or not at all.
func runKeyed[R any](ctx context.Context, s *Service, c Command[R]) (outcome Outcome, err error) {
	if err := admit(c); err != nil {
		return Outcome{}, err
	}
	print, err := fingerprint(c.Actor, c.Retry.Route, c.Retry.Input)
	if err != nil {
		return Outcome{}, err
	}
	scope := KeyScope{Tenant: c.Actor.Tenant, Actor: c.Actor.ID, Operation: c.Operation, Key: c.Retry.Key}
	err = s.store.InKeyedTx(ctx, scope, func(ctx context.Context, tx Tx) error {
		if err := target(ctx, tx, c); err != nil {
			return err
		}
		outcome, err = idempotent(ctx, tx, s, scope, print, c)
		return err
	})
	return outcome, err
}

// admit is the stages before the transaction: authorize, then validate.
func admit[R any](c Command[R]) error {
	if c.Actor.ID == "" || c.Actor.Tenant == "" || !c.Actor.Has(c.Scope) {
		return ErrForbidden
	}
	if c.Validate == nil {
		return nil
	}
	return c.Validate()
}

func target[R any](ctx context.Context, tx Tx, c Command[R]) error {
	if c.Target == nil {
		return nil
	}
	return c.Target(ctx, tx)
}

// idempotent is the stage around the handler: claim the key, or replay what the winner of the key stored.
func idempotent[R any](
	ctx context.Context, tx Tx, s *Service, scope KeyScope, print Fingerprint, c Command[R],
) (Outcome, error) {
	now := tx.Now()
	winner, err := tx.ClaimKey(ctx, scope, print, now, now.Add(s.settings.KeyRetention))
	if err != nil {
		return Outcome{}, err
	}
	if winner != nil {
		if winner.Fingerprint != print {
			return Outcome{}, ErrKeyReused
		}
		return Outcome{Reply: winner.Reply, Replayed: true}, nil
	}
	result, err := c.Handle(ctx, tx)
	if err != nil {
		return Outcome{}, err
	}
	reply, err := c.Retry.Render(result)
	if err != nil {
		return Outcome{}, fmt.Errorf("render %s: %w", c.Operation, err)
	}
	if err := tx.CompleteKey(ctx, scope, reply); err != nil {
		return Outcome{}, err
	}
	return Outcome{Reply: reply}, nil
}

// ownOrder is the Target of the commands on an order: its customer or staff, else it does not exist.
func ownOrder(actor Actor, u UseCase, id domain.OrderID) func(context.Context, Tx) error {
	return func(ctx context.Context, tx Tx) error {
		customer, err := tx.Orders().Customer(ctx, actor.Tenant, id)
		if err != nil {
			return notFoundAs(err, ErrOrderNotFound)
		}
		if !actor.mayTouch(customer, u) {
			return ErrOrderNotFound
		}
		return nil
	}
}
