package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres"
	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/dev/testkit"
)

// operator follows the pages of docs/runbooks: the commands that stand there, in their order, in one shell.
type operator struct {
	shop
	server *postgres.Server
	dir    string            // where the shell is
	moved  *pgxpool.Pool     // of a database that the pages make; it outlives the service, whose books are checked at its end
	env    map[string]string // what the pages let the operator fill in
}

// openForOperators is openShop on a server of its own with the roles of production: a page must work with the
// privileges that it says. The worker is for the test to start. programs of the server's own version are needed too.
func openForOperators(t *testing.T, programs ...string) *operator {
	t.Helper()
	server := pgtest.Server(t)
	needed := []string{"curl", "jq", "psql"}
	for _, program := range programs {
		needed = append(needed, filepath.Join(server.BinDir(), program))
	}
	for _, program := range needed {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the runbooks need %s", program)
		}
	}
	owner, service := separate(t, server)
	moved := pgtest.Pool(t, restoredOf(t, owner))
	s := testkit.StartOn(t, owner, patient("DATABASE_URL", service)...)
	s.Product(t, shopSKU, shopTotal/2, 100)
	o := &operator{shop: shop{Service: s, t: t, alice: s.As(t, "alice")}, server: server, dir: t.TempDir(), moved: moved}
	o.env = map[string]string{
		"PATH":         strings.Join([]string{server.BinDir(), filepath.Dir(testkit.Binary(t, "migrate")), os.Getenv("PATH")}, ":"),
		"DATABASE_URL": service, "MIGRATE_DATABASE_URL": owner, "ADMIN_URL": server.URL("orders"),
		"API": s.URL, "SANDBOX": s.Env["STRIPE_BASE_URL"], "STRIPE_API_KEY": s.Env["STRIPE_API_KEY"],
		"AUTH_JWKS_URL": s.Env["AUTH_JWKS_URL"], "TOKEN": o.alice.Token,
	}
	return o
}

// work starts a worker as a process, whose operators' listener becomes OPS.
func (o *operator) work() *testkit.Running {
	o.t.Helper()
	p := testkit.Process(o.t, "worker", o.Env)
	o.env["OPS"] = p.Ops
	return p
}

// follow runs the commands of a page, or of those of its sections that begin so, and returns what they print. replaced is
// pairs: examples of the page and what this operator has in their place.
func (o *operator) follow(page string, sections []string, replaced ...string) string {
	o.t.Helper()
	raw, err := os.ReadFile(filepath.Join("../../docs/runbooks", page))
	require.NoError(o.t, err)
	script := strings.NewReplacer(replaced...).Replace(o.commands(string(raw), sections))
	require.NotEmpty(o.t, script)
	require.NotContains(o.t, script, "…", "the page leaves open what this test does not fill in")
	return o.sh(script)
}

func (o *operator) sh(script string) string {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 2*testkit.Wait)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail")
	cmd.WaitDelay = time.Second // what it started in the background may hold its output open
	cmd.Dir, cmd.Stdin = o.dir, strings.NewReader(script)
	for name, value := range o.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(o.t, cmd.Run(), "%s\n--- printed:\n%s%s", script, &out, &errs)
	require.NotRegexp(o.t, `(?m)ERROR|^curl:|^jq:`, errs.String(), script)
	return out.String()
}

var (
	assignment = regexp.MustCompile(`^(?:export )?([A-Z_]+)=`)
	inProse    = regexp.MustCompile("`(curl [^`]+)`")
)

// commands is what a page tells to run: its indented blocks and the calls of curl within its text. Lines that fill in
// what this operator has filled in are left out.
func (o *operator) commands(page string, sections []string) string {
	var script []string
	wanted, before := len(sections) == 0, ""
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			wanted = len(sections) == 0
			for _, s := range sections {
				wanted = wanted || strings.HasPrefix(heading, s)
			}
		}
		indent := len(line) - len(strings.TrimLeft(line, " "))
		block := indent >= 4 && (before == "" || strings.HasPrefix(before, "    "))
		before = line
		switch {
		case !wanted:
		case block:
			line = line[4:]
			if indent == 7 { // in a list
				line = line[3:]
			}
			if set := assignment.FindStringSubmatch(line); set == nil || o.env[set[1]] == "" {
				script = append(script, line)
			}
		default:
			for _, call := range inProse.FindAllStringSubmatch(line, -1) {
				script = append(script, call[1])
			}
		}
	}
	return strings.Join(script, "\n")
}
