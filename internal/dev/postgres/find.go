package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// oldest is the oldest major version that this project supports.
const oldest = 15

const inspectTimeout = 10 * time.Second

// usualPlaces of installations that are not on the PATH: Debian, Red Hat, built from source, Homebrew on either
// processor, Postgres.app.
var usualPlaces = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/local/pgsql/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// installation is a directory of PostgreSQL's programs.
type installation struct {
	dir     string
	version string // 15.18, 17beta2
	major   int
}

// FindBinDir returns the directory of a PostgreSQL installation's programs, 15 or newer: the one that PG_BINDIR names,
// else one on the PATH, else the newest in the usual places. The error of finding none is one line that says what to do.
func FindBinDir(ctx context.Context) (string, error) {
	in, err := find(ctx)
	return in.dir, err
}

func find(ctx context.Context) (installation, error) {
	return findIn(ctx, os.Getenv("PG_BINDIR"), usualPlaces)
}

func findIn(ctx context.Context, bindir string, places []string) (installation, error) {
	if bindir != "" {
		in, err := inspect(ctx, bindir)
		if err != nil {
			return in, fmt.Errorf("PG_BINDIR: %w", err)
		}
		return in, nil
	}
	for _, program := range []string{"postgres", "initdb", "pg_ctl"} {
		path, err := exec.LookPath(program)
		if err == nil { // a lone link, such as in /usr/local/bin, has its siblings elsewhere
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			continue
		}
		if in, err := inspect(ctx, filepath.Dir(path)); err == nil {
			return in, nil
		}
	}
	var found []installation
	for _, pattern := range places {
		dirs, _ := filepath.Glob(pattern) // fails only for a malformed pattern
		for _, dir := range dirs {
			if in, err := inspect(ctx, dir); err == nil {
				found = append(found, in)
			}
		}
	}
	if len(found) > 0 {
		return slices.MaxFunc(found, func(a, b installation) int { return cmp.Compare(a.major, b.major) }), nil
	}
	if ctx.Err() != nil {
		return installation{}, fmt.Errorf("find PostgreSQL: %w", ctx.Err())
	}
	return installation{}, fmt.Errorf("found no PostgreSQL %d or newer: install it (scripts/postgres.sh does, Debian: "+
		"apt-get install postgresql, macOS: brew install postgresql@17) or set PG_BINDIR to its bin directory", oldest)
}

var versionOutput = regexp.MustCompile(`\(PostgreSQL\) (([0-9]+)[0-9a-z.]*)`)

// inspect runs a program as the user who will have to, which also tells whether that user can reach it.
func inspect(ctx context.Context, dir string) (in installation, err error) {
	if in.dir, err = filepath.Abs(dir); err != nil {
		return in, err
	}
	user, err := runAs("")
	if err != nil {
		return in, err
	}
	if _, err := os.Stat(filepath.Join(in.dir, "initdb")); err != nil {
		return in, fmt.Errorf("%s is no PostgreSQL bin directory: %w", in.dir, err)
	}
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(in.dir, "postgres"), "--version")
	cmd.Dir, cmd.WaitDelay = "/", time.Second // the current directory may be out of the user's reach
	cmd.SysProcAttr = asUser(user)
	out, err := cmd.Output()
	if err != nil {
		return in, fmt.Errorf("%s is no usable PostgreSQL bin directory: %w", in.dir, errors.Join(err, ctx.Err()))
	}
	m := versionOutput.FindStringSubmatch(string(out))
	if m == nil {
		return in, fmt.Errorf("%s: cannot read a version from %q", in.dir, out)
	}
	in.version = m[1]
	if in.major, err = strconv.Atoi(m[2]); err != nil || in.major < oldest {
		return in, fmt.Errorf("%s holds PostgreSQL %s, but at least %d is needed", in.dir, in.version, oldest)
	}
	return in, nil
}
