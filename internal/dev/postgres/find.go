package postgres

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"example.com/orders/scripts"
)

const findTimeout = 30 * time.Second

// installation is a directory of PostgreSQL's programs.
type installation struct {
	dir     string
	version string // 15.18, 17beta2
	major   string
}

// FindBinDir returns the directory of a PostgreSQL installation's programs, 15 or newer, that is installed: see
// scripts/postgres.sh. The error of finding none is one line that says what to do.
func FindBinDir(ctx context.Context) (string, error) {
	in, err := find(ctx, scripts.PostgreSQL)
	return in.dir, err
}

// ask runs the script that is its first argument.
const ask = `dir=$(bash -c "$1" postgres.sh installed) && echo "$dir" && "$dir/postgres" --version`

var askedOutput = regexp.MustCompile(`(.+)\n.*\(PostgreSQL\) (([0-9]+)[0-9a-z.]*)`)

// find runs the script as the user who will run the programs: so it finds none that this user cannot reach.
func find(ctx context.Context, script string) (installation, error) {
	user, err := runAs("")
	if err != nil {
		return installation{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	var complaint strings.Builder
	cmd := exec.CommandContext(ctx, "bash", "-c", ask, "find", script)
	cmd.Dir, cmd.WaitDelay = "/", time.Second // the current directory may be out of the user's reach
	cmd.Stderr, cmd.SysProcAttr = &complaint, asUser(user)
	out, err := cmd.Output()
	if err != nil {
		return installation{}, fmt.Errorf("find PostgreSQL: %w: %s", cmp.Or(ctx.Err(), err), strings.TrimSpace(complaint.String()))
	}
	m := askedOutput.FindStringSubmatch(string(out))
	if m == nil {
		return installation{}, fmt.Errorf("find PostgreSQL: cannot read a version from %q", out)
	}
	return installation{dir: m[1], version: m[2], major: m[3]}, nil
}
