package boot

import (
	"context"
	"errors"
	"time"
)

// StopAll stops parts one after another, all within limit.
func StopAll(ctx context.Context, limit time.Duration, stops ...func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	var err error
	for _, stop := range stops {
		err = errors.Join(err, stop(ctx))
	}
	return err
}
