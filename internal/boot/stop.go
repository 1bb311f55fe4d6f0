package boot

import (
	"context"
	"errors"
	"time"
)

// StopAll stops the parts one after another, within limit for all of them.
func StopAll(ctx context.Context, limit time.Duration, stops ...func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	var err error
	for _, stop := range stops {
		err = errors.Join(err, stop(ctx))
	}
	return err
}
