package postgres

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// oldest is the oldest major version that this project supports.
const oldest = 15

const inspectTimeout = 10 * time.Second

// installation is a directory of PostgreSQL's programs.
type installation struct {
	dir     string
	version string // 15.18, 17beta2
	major   int
}

func (i installation) majorString() string { return strconv.Itoa(i.major) }

var versionOutput = regexp.MustCompile(`\(PostgreSQL\) (([0-9]+)[0-9a-z.]*)`)

// inspect runs the programs as the user who will have to, which also tells whether that user can reach them.
func inspect(ctx context.Context, dir string) (installation, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return installation{}, err
	}
	user, err := runAs("")
	if err != nil {
		return installation{}, err
	}
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return installation{}, fmt.Errorf("%s is no PostgreSQL bin directory: %w", dir, err)
	}
	out, err := output(ctx, user, filepath.Join(dir, "postgres"), "--version")
	if err != nil {
		return installation{}, fmt.Errorf("%s is no usable PostgreSQL bin directory: %w", dir, err)
	}
	m := versionOutput.FindStringSubmatch(out)
	if m == nil {
		return installation{}, fmt.Errorf("%s: cannot read a version from %q", dir, out)
	}
	major, err := strconv.Atoi(m[2])
	if err != nil || major < oldest {
		return installation{}, fmt.Errorf("%s holds PostgreSQL %s, but at least %d is needed", dir, m[1], oldest)
	}
	return installation{dir: dir, version: m[1], major: major}, nil
}

// output runs a program briefly and returns what it prints.
func output(ctx context.Context, as *syscall.Credential, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	if as != nil {
		cmd.Dir = "/" // the current directory may be out of the user's reach
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	}
	cmd.Env = childEnv()
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}
