package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// runAs is the user to run the server as: nil, which is ourselves, unless we are root. Existing data are best served by
// their owner.
func runAs(data string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // ourselves
	}
	if owner := ownerOf(data); owner != nil && owner.Uid != 0 {
		return owner, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return credential(u)
		}
	}
	return nil, errors.New("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody to run it")
}

func asUser(as *syscall.Credential) *syscall.SysProcAttr { return &syscall.SysProcAttr{Credential: as} }

func credential(u *user.User) (*syscall.Credential, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Username, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// ownerOf is nil for a path that does not exist. It does not follow a symbolic link.
func ownerOf(path string) *syscall.Credential {
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return &syscall.Credential{Uid: st.Uid, Gid: st.Gid}
}
