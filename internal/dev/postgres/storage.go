package postgres

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// sharedTemp is where the data are as root: the server runs as another user, who seldom can reach a directory of root's.
const sharedTemp = "/var/tmp"

// storage is a directory with the cluster and the superuser's password.
type storage struct {
	base      string
	throwAway bool
	user      *syscall.Credential // who owns the cluster; nil: ourselves
}

func openStorage(dir string, log io.Writer) (st *storage, err error) {
	if dir == "" {
		st, err = openThrowAway()
	} else {
		st, err = openKept(dir, log)
	}
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return st, nil
}

// openThrowAway gives the directory to the server's user, for the watcher of package child has to remove it.
func openThrowAway() (*storage, error) {
	user, err := runAs("")
	if err != nil {
		return nil, err
	}
	parent := os.TempDir()
	if user != nil {
		parent = sharedTemp
	}
	st := &storage{throwAway: true, user: user}
	if st.base, err = os.MkdirTemp(parent, "embedded-postgres-"); err != nil {
		return nil, err
	}
	return st, st.own(st.base)
}

// openKept opens a directory that outlives the server.
func openKept(dir string, log io.Writer) (*storage, error) {
	base, err := keptIn(dir)
	if err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		fmt.Fprintf(log, "embedded postgres: as root, the data of %s are in %s\n", dir, base)
		err = makeShared(base)
	} else {
		err = os.MkdirAll(base, 0o755)
	}
	if err != nil {
		return nil, err
	}
	st := &storage{base: base}
	st.user, err = runAs(st.data())
	return st, err
}

// keptIn is the directory itself, or as root the one in /var/tmp that always stands for it.
func keptIn(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil || os.Geteuid() != 0 {
		return abs, err
	}
	sum := sha256.Sum256([]byte(abs))
	return filepath.Join(sharedTemp, fmt.Sprintf("embedded-postgres-%x", sum[:6])), nil
}

// makeShared refuses a directory in a shared place that another user has put there to read or redirect what we write.
func makeShared(base string) error {
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
