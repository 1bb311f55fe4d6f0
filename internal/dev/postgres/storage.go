package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// sharedTemp is reachable by every user, unlike the temporary directory that a root shell may have set.
const sharedTemp = "/var/tmp"

// storage is a directory with the cluster and the superuser's password.
type storage struct {
	base      string
	throwAway bool
	user      *syscall.Credential // who owns the cluster; nil: ourselves
}

func openStorage(ctx context.Context, dir string, log io.Writer) (*storage, error) {
	if dir == "" {
		return openThrowAway(ctx)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	st, err := reachableBase(ctx, abs, log)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", abs, err)
	}
	return st, nil
}

// openThrowAway gives the directory to the server's user, for the watcher of package child has to remove it.
func openThrowAway(ctx context.Context) (*storage, error) {
	user, err := runAs("")
	if err != nil {
		return nil, err
	}
	for _, parent := range []string{os.TempDir(), sharedTemp} {
		st := &storage{throwAway: true, user: user}
		if st.base, err = os.MkdirTemp(parent, "embedded-postgres-"); err != nil {
			return nil, fmt.Errorf("throw-away data directory: %w", err)
		}
		ok, err := st.usable(ctx)
		if ok {
			return st, nil
		}
		_ = os.Remove(st.base) // just made and still empty
		if err != nil {
			return nil, fmt.Errorf("throw-away data directory: %w", err)
		}
	}
	return nil, fmt.Errorf("the server's user can reach neither %s nor %s", os.TempDir(), sharedTemp)
}

// usable gives the directory to the server's user.
func (s *storage) usable(ctx context.Context) (bool, error) {
	if err := s.own(s.base); err != nil {
		return false, err
	}
	return reachable(ctx, s.base, s.user)
}

// reachableBase falls back on a stable place in /var/tmp when the server's user cannot get to the wanted one, such as
// a clone below /root.
func reachableBase(ctx context.Context, dir string, log io.Writer) (*storage, error) {
	for _, base := range []string{dir, fallback(dir)} {
		st := &storage{base: base}
		var err error
		if st.user, err = runAs(st.data()); err != nil {
			return nil, err
		}
		if err := makeBase(base, base != dir); err != nil {
			return nil, err
		}
		if ok, err := reachable(ctx, base, st.user); ok || err != nil {
			return st, err
		}
		_ = os.Remove(base) // leaves a directory that is not empty alone
		if base == dir {
			fmt.Fprintf(log, "embedded postgres: the server's user cannot reach %s: the data are in %s\n", dir, fallback(dir))
		}
	}
	return nil, errors.New("the server's user cannot reach it")
}

func fallback(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(sharedTemp, fmt.Sprintf("embedded-postgres-%x", sum[:6]))
}

// makeBase refuses a directory in a shared place that another user has put there to read or redirect what we write.
func makeBase(base string, shared bool) error {
	if !shared {
		return os.MkdirAll(base, 0o755)
	}
	if err := os.Mkdir(base, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(base)
	if err != nil {
		return err
	}
	if owner := ownerOf(base); !info.IsDir() || owner == nil || int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", base)
	}
	return os.Chmod(base, 0o755)
}

func (s *storage) data() string { return filepath.Join(s.base, "pgdata") }

func (s *storage) passwordFile() string { return filepath.Join(s.base, "password") }

// own hands a path to the server's user.
func (s *storage) own(path string) error {
	if s.user == nil {
		return nil
	}
	return os.Lchown(path, int(s.user.Uid), int(s.user.Gid))
}

func (s *storage) mkdir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return fmt.Errorf("directory of the cluster: %w", err)
	}
	return s.own(path)
}

// writePassword hands the file to the server's user because initdb reads it.
func (s *storage) writePassword(password string) error {
	if err := os.WriteFile(s.passwordFile(), []byte(password+"\n"), 0o600); err != nil {
		return fmt.Errorf("keep the superuser's password: %w", err)
	}
	return s.own(s.passwordFile())
}

func (s *storage) password() (string, error) {
	b, err := os.ReadFile(s.passwordFile())
	if err != nil {
		return "", fmt.Errorf("superuser's password: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// close removes a throw-away directory.
func (s *storage) close() error {
	if !s.throwAway {
		return nil
	}
	return os.RemoveAll(s.base)
}
