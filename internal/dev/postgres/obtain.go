package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// obtainTimeout bounds each source.
const obtainTimeout = 5 * time.Minute

// source obtains an installation and returns its directory of programs, or an empty string if that is in one of the
// places where a finder looks. It may keep files in the cache directory.
type source func(ctx context.Context, cache string) (string, error)

// obtain tries the sources in order. It lets one process at a time do so, since test binaries start side by side, and
// so begins with another look at what there is.
func (f finder) obtain(ctx context.Context) (installation, error) {
	cache, err := f.cache()
	if err != nil {
		return installation{}, fmt.Errorf("directory for downloads: %w", err)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return installation{}, err
	}
	lock, err := acquire(ctx, filepath.Join(cache, "lock"), 2*obtainTimeout, f.log)
	if err != nil {
		return installation{}, err
	}
	defer lock.Close()
	in, why := firstUsable(ctx, f.local(ctx))
	for _, s := range f.sources {
		if why == nil {
			break
		}
		in, why = f.try(ctx, s, cache, why)
	}
	return in, why
}

func (f finder) try(ctx context.Context, s source, cache string, before error) (installation, error) {
	ctx, cancel := context.WithTimeout(ctx, obtainTimeout)
	defer cancel()
	dir, err := s(ctx, cache)
	if err != nil {
		return installation{}, errors.Join(before, err)
	}
	in, err := firstUsable(ctx, append([]string{dir}, f.local(ctx)...))
	if err != nil {
		return installation{}, errors.Join(before, err)
	}
	return in, nil
}

// cacheDir for root is one that only root can write to, but that the server's user can reach.
func cacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/embedded-postgres", nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "embedded-postgres"), err
}
