package app

import (
	"context"
	"fmt"

	"example.com/orders/internal/domain"
)

// Command is one execution of a use case that changes data. It holds what each stage of the pipeline needs.
type Command[R any] struct {
	UseCase
	Actor Actor

	// Target is the order that the command acts on: TheOrder(id) or NoOrder(). A command without a target is refused.
	Target Target
	// Validate checks the input alone, before the transaction.
	Validate func() error
	// Handle runs in the transaction and makes the change.
	Handle func(ctx context.Context, tx Tx) (R, error)

	// Keyed and Input are set where the mode is ModeKey. Input is the mapped input that the fingerprint covers, the
	// expected version included.
	Keyed Keyed[R]
	Input any
}

// Keyed holds what the HTTP boundary passes with a command that has a client key.
type Keyed[R any] struct {
	Key   string
	Route string // method, path template and path parameters: the identity of the route
	// Render turns the result into the response that is sent now and replayed later. The HTTP boundary supplies it.
	Render func(R) (Reply, error)
}

// Target is the order that the pipeline authorizes inside the transaction. The zero value is invalid, so a use case
// that forgets to set a target fails instead of changing another customer's order.
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

// NoOrder is the target of a command that does not act on an order. Only the actor's tenant limits what it can access.
func NoOrder() Target { return Target{kind: targetNone} }

// TheOrder is the target of a command on one order: the actor must be its customer, staff or an administrator.
func TheOrder(id domain.OrderID) Target { return Target{kind: targetOrder, order: id} }

// Reply is a response as the HTTP boundary rendered it. It is stored and replayed byte for byte and never parsed here.
type Reply struct {
	Status int
	Header []byte
	Body   []byte
}

// Outcome is the result of a keyed command.
type Outcome struct {
	Reply
	Replayed bool
}

// run runs the stages of a command without a client key.
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

// runKeyed runs the stages of a command with a client key, in this order:
//
//	authorize → validate → transaction { authorize the target → idempotency { handler } }
//
// So a denied or invalid request neither uses up a key nor replays a result. The change, the outbox jobs and the stored
// response commit together or not at all.
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

// admit runs the stages before the transaction: authorize, then validate.
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

// authorizeTarget checks that the actor may touch the order that the command names. A missing order, another customer's
// order and another tenant's order all give ErrOrderNotFound.
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

// idempotent is the stage around the handler: it replays a stored response, or runs the handler and stores one.
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
