package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"time"
)

//go:embed baseline/place-order.pgbench.tmpl
var baselineTemplate string

// baselineScript returns the pgbench script that places orders with the given number of lines.
func baselineScript(skus, lines int) (string, error) {
	t, err := template.New("place-order").Parse(baselineTemplate)
	if err != nil {
		return "", fmt.Errorf("baseline: %w", err)
	}
	stride := skus / lines
	data := struct {
		Tenant         string
		Actors, Stride int
		Lines          []int // where the skus of each line begin
	}{Tenant: tenant, Actors: actors, Stride: stride}
	for i := range lines {
		data.Lines = append(data.Lines, i*stride)
	}
	var script strings.Builder
	if err := t.Execute(&script, data); err != nil {
		return "", fmt.Errorf("baseline: %w", err)
	}
	return script.String(), nil
}

func scriptPath(dir string, lines int) string {
	return filepath.Join(dir, fmt.Sprintf("place-order-%d.pgbench", lines))
}

// findBaseline finds pgbench, beside the server or on the path, and writes its scripts.
func (b *bench) findBaseline(context.Context) error {
	if b.noBaseline {
		return nil
	}
	b.pgbench = findPgbench(b.server.BinDir())
	if b.pgbench == "" {
		return errors.New("pgbench is missing: install it (Debian: apt-get install postgresql) or measure with -no-baseline")
	}
	for _, lines := range []int{1, maxLines} {
		script, err := baselineScript(b.skus, lines)
		if err != nil {
			return err
		}
		if err := os.WriteFile(scriptPath(b.dir, lines), []byte(script), 0o600); err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
	}
	return nil
}

func findPgbench(bindir string) string {
	path := filepath.Join(bindir, "pgbench")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	path, _ = exec.LookPath("pgbench") // fails where it is not there
	return path
}

// baseline runs pgbench with one connection per client.
func (b *bench) baseline(ctx context.Context, clients, lines int, length time.Duration) (perSecond float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, length+stopWait)
	defer cancel()
	u, err := url.Parse(b.env["DATABASE_URL"])
	if err != nil {
		return 0, errors.New("the database's address cannot be parsed")
	}
	password, _ := u.User.Password()
	cmd := exec.CommandContext(ctx, b.pgbench, "--no-vacuum", "--protocol=prepared", "--file="+scriptPath(b.dir, lines),
		"--define=n="+strconv.FormatInt(time.Now().UnixMilli(), 10), "--client="+strconv.Itoa(clients),
		"--jobs="+strconv.Itoa(min(clients, 2)), "--time="+strconv.Itoa(max(1, int(length.Seconds()))),
		"--host="+u.Hostname(), "--port="+u.Port(), "--username="+u.User.Username(), strings.TrimPrefix(u.Path, "/"))
	cmd.Env = append(os.Environ(), "PGPASSWORD="+password, "PGSSLMODE=disable")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w: %s", err, out)
	}
	return pgbenchRate(string(out))
}

// pgbenchOutput is how pgbench reports: the rate without the time that connecting took.
var pgbenchOutput = regexp.MustCompile(`(?m)^tps = ([0-9.]+) \(without initial connection time\)`)

func pgbenchRate(out string) (float64, error) {
	m := pgbenchOutput.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("pgbench reports no rate: %s", out)
	}
	rate, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w", err)
	}
	return rate, nil
}
