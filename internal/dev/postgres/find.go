package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

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

// finder looks for an installation. Its fields are what the tests replace.
type finder struct {
	bindir  string                 // PG_BINDIR
	places  []string               // patterns, see usualPlaces
	sources []source               // to be tried in order when nothing is there yet
	cache   func() (string, error) // the directory for what the sources get
	log     io.Writer
}

// FindBinDir returns the directory of a PostgreSQL installation's programs, 15 or newer: the one that PG_BINDIR names,
// else one on the PATH, else one in the usual places. If there is none it downloads one or, as root on Debian, installs
// the package, and says so on log.
func FindBinDir(ctx context.Context, log io.Writer) (string, error) {
	in, err := find(ctx, log)
	return in.dir, err
}

func find(ctx context.Context, log io.Writer) (installation, error) {
	f := finder{bindir: os.Getenv("PG_BINDIR"), places: usualPlaces, cache: cacheDir, log: log}
	f.sources = []source{
		downloader{repository: mavenCentral, log: log}.fetch,
		func(ctx context.Context, _ string) (string, error) { return "", aptInstall(ctx, log) },
	}
	return f.find(ctx)
}

func (f finder) find(ctx context.Context) (installation, error) {
	if f.bindir != "" {
		in, err := inspect(ctx, f.bindir)
		if err != nil {
			return installation{}, fmt.Errorf("PG_BINDIR: %w", errors.Join(err, ctx.Err()))
		}
		return in, nil
	}
	if in, err := firstUsable(ctx, f.local(ctx)); err == nil {
		return in, nil
	}
	if ctx.Err() != nil { // not a reason to install anything
		return installation{}, fmt.Errorf("find PostgreSQL: %w", ctx.Err())
	}
	in, err := f.obtain(ctx)
	if err != nil {
		return installation{}, fmt.Errorf("no PostgreSQL %d or newer: install it (Debian: apt-get install postgresql, "+
			"macOS: brew install postgresql@17) or set PG_BINDIR to its bin directory (%s)", oldest, oneLine(err))
	}
	return in, nil
}

// local are the directories that may hold an installation, the likeliest first.
func (f finder) local(ctx context.Context) []string {
	var dirs []string
	if out, err := output(ctx, nil, "pg_config", "--bindir"); err == nil {
		dirs = append(dirs, out)
	}
	for _, program := range []string{"postgres", "initdb"} {
		dirs = append(dirs, onPath(program)...)
	}
	return append(dirs, f.usual()...)
}

// onPath resolves symbolic links: a lone link in /usr/local/bin has its siblings elsewhere.
func onPath(program string) []string {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	return []string{filepath.Dir(resolved)}
}

// usual are the usual places that exist, the newest version first.
func (f finder) usual() []string {
	type place struct {
		dir     string
		version int
	}
	var places []place
	for _, pattern := range f.places {
		found, _ := filepath.Glob(pattern) // fails only for a malformed pattern
		before, _, _ := strings.Cut(pattern, "*")
		for _, dir := range found {
			places = append(places, place{dir, leadingNumber(strings.TrimPrefix(dir, before))})
		}
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(b.version, a.version) })
	var dirs []string
	for _, p := range places {
		dirs = append(dirs, p.dir)
	}
	return dirs
}

// leadingNumber is 0 if there is none.
func leadingNumber(s string) int {
	end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	n, _ := strconv.Atoi(s[:max(end, 0)])
	return n
}

func firstUsable(ctx context.Context, dirs []string) (installation, error) {
	var why error
	seen := map[string]bool{"": true}
	for _, dir := range dirs {
		if seen[dir] {
			continue
		}
		seen[dir] = true
		in, err := inspect(ctx, dir)
		if err == nil {
			return in, nil
		}
		why = errors.Join(why, err)
	}
	if why == nil {
		why = errors.New("found none on this machine")
	}
	return installation{}, why
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
