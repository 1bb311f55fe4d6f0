package client

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"

	"example.com/orders/client/openapi"
)

// maxUpdates bounds how often Update applies a change before it lets the conflict through.
const maxUpdates = 10

// Update reads a resource, makes a change out of what it says, and writes that under the tag that was read. When
// another client was faster (version_conflict) it reads again and makes the change again, a bounded number of times, so
// that no writer's change is lost. change is called once for each reading and must decide anew from what it is given;
// its error ends the update.
func Update[T, B, R any](
	ctx context.Context,
	read func(context.Context) (Answer[T], error),
	change func(T) (B, error),
	write func(context.Context, ETag, B) (Answer[R], error),
) (Answer[R], error) {
	return backoff.Retry(ctx, func() (Answer[R], error) {
		answer, err := updateOnce(ctx, read, change, write)
		if err != nil && !HasCode(err, openapi.ProblemCodeVersionConflict) {
			err = backoff.Permanent(err)
		}
		return answer, err
	}, backoff.WithBackOff(newPace(20*time.Millisecond, time.Second)), backoff.WithMaxTries(maxUpdates))
}

func updateOnce[T, B, R any](
	ctx context.Context,
	read func(context.Context) (Answer[T], error),
	change func(T) (B, error),
	write func(context.Context, ETag, B) (Answer[R], error),
) (Answer[R], error) {
	seen, err := read(ctx)
	if err != nil {
		return Answer[R]{}, err
	}
	body, err := change(seen.Value)
	if err != nil {
		return Answer[R]{}, err
	}
	return write(ctx, seen.ETag, body)
}
