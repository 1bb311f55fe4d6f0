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

	// Target is what the command names: TheOrder(id) or NoOrder(). A command without one is refused.
	Target Target
	// Validate checks the input by itself, before any transaction.
	Validate func() error
	// Handle does the work.
	Handle func(ctx context.Context, tx Tx) (R, error)

	// Keyed and Input are set where the mode is ModeKey. Input is the mapped input that the fingerprint covers, the
	// expected version included.
	Keyed Keyed[R]
	Input any
}

// Keyed is what the boundary hands over with a command that has a client key.
type Keyed[R any] struct {
	Key   string
	Route string // method, path template and path parameters: the identity of the route
	// Render turns the result into the answer that is sent now and replayed later. It belongs to the boundary.
	Render func(R) (Reply, error)
}

// Target is what a command names and the pipeline authorizes inside the transaction. Its zero value is no target, so
// that a use case which forgets to state one fails instead of working on another customer's order.
type Target struct {
	kind  targetKind
	order domain.OrderID
}

type targetKind int

const (
	targetUnstated targetKind = iota
	targetNone
	targetOrder
)

// NoOrder is the target of a command that names no order. The actor's tenant alone bounds what it can reach.
func NoOrder() Target { return Target{kind: targetNone} }

// TheOrder is the target of a command on one order: the actor must be its customer, staff or an administrator.
func TheOrder(id domain.OrderID) Target { return Target{kind: targetOrder, order: id} }

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
		if err := authorizeTarget(ctx, tx, c); err != nil {
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
// So a denied or invalid attempt neither spends a key nor replays a result, and the change, the outbox jobs
// and the answer under its key commit together or not at all.
func runKeyed[R any](ctx context.Context, s *Service, c Command[R]) (outcome Outcome, err error) {
	if err := admit(c); err != nil {
		return Outcome{}, err
	}
	digest, err := fingerprint(c.Actor, c.Keyed.Route, c.Input)
	if err != nil {
		return Outcome{}, err
	}
	scope := KeyScope{Tenant: c.Actor.Tenant, Actor: c.Actor.ID, Operation: c.Operation, Key: c.Keyed.Key}
	err = s.store.InKeyedTx(ctx, scope, func(ctx context.Context, tx Tx) error {
		if err := authorizeTarget(ctx, tx, c); err != nil {
			return err
		}
		outcome, err = idempotent(ctx, tx, s, digest, c)
		return err
	})
	return outcome, err
}

// admit is the stages before the transaction: authorize, then validate.
func admit[R any](c Command[R]) error {
	if c.Target.kind == targetUnstated {
		return fmt.Errorf("use case %s states no target", c.Operation)
	}
	if c.Actor.ID == "" || c.Actor.Tenant == "" || !c.Actor.Has(c.Scope) {
		return ErrForbidden
	}
	if c.Validate == nil {
		return nil
	}
	return c.Validate()
}

// authorizeTarget checks that the actor may touch the order that the command names. Another customer's order, another
// tenant's order and no order at all are the same to the caller: ErrOrderNotFound.
func authorizeTarget[R any](ctx context.Context, tx Tx, c Command[R]) error {
	if c.Target.kind == targetNone {
		return nil
	}
	customer, err := tx.Orders().Customer(ctx, c.Actor.Tenant, c.Target.order)
	if err != nil {
		return notFoundAs(err, ErrOrderNotFound)
	}
	if !c.Actor.mayTouch(customer, c.UseCase) {
		return ErrOrderNotFound
	}
	return nil
}

// idempotent is the stage around the handler: replay what the winner of the key stored, or handle and store the answer.
func idempotent[R any](ctx context.Context, tx Tx, s *Service, digest Fingerprint, c Command[R]) (Outcome, error) {
	winner, err := tx.FindKey()
	if err != nil {
		return Outcome{}, err
	}
	if winner != nil {
		if winner.Fingerprint != digest {
			return Outcome{}, ErrKeyReused
		}
		return Outcome{Reply: winner.Reply, Replayed: true}, nil
	}
	result, err := c.Handle(ctx, tx)
	if err != nil {
		return Outcome{}, err
	}
	reply, err := c.Keyed.Render(result)
	if err != nil {
		return Outcome{}, fmt.Errorf("render %s: %w", c.Operation, err)
	}
	tx.CompleteKey(digest, reply, s.settings.KeyRetention)
	return Outcome{Reply: reply}, nil
}
