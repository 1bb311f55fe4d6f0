package docs_test

import (
	"fmt"
	"go/ast"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/infra/config"
)

// minimum is the environment without which no process starts.
func minimum() map[string]string {
	return map[string]string{
		"DATABASE_URL": "postgres://localhost/orders", "AUTH_ISSUER": "issuer", "AUTH_AUDIENCE": "audience",
		"AUTH_JWKS_URL": "http://localhost/jwks.json", "STRIPE_API_KEY": "sk_test",
		"STRIPE_WEBHOOK_SECRET": "whsec_test",
	}
}

// load reads the configuration of a process from the minimum and env.
func load(process string, env map[string]string) (any, error) {
	all := minimum()
	maps.Copy(all, env)
	lookup := func(name string) (string, bool) { v, ok := all[name]; return v, ok }
	if process == "api" {
		return config.LoadAPI(lookup)
	}
	return config.LoadWorker(lookup)
}

// measured is the settings whose values are amounts, with bounds.
func measured(t testing.TB) map[string]setting {
	t.Helper()
	all := settings(t)
	maps.DeleteFunc(all, func(_ string, s setting) bool { return s.Unit == "choice" })
	return all
}

// Ensure a choice takes its words, each with an effect, and no other, and that its default is the value of its record.
func TestChoicesAreAsRecorded(t *testing.T) {
	t.Parallel()
	for name, s := range settings(t) {
		if s.Unit != "choice" {
			continue
		}
		require.Contains(t, s.Choices, s.Value, name)
		for _, process := range s.Processes {
			untold, err := load(process, nil)
			require.NoError(t, err)
			for _, word := range s.Choices {
				told, err := load(process, map[string]string{s.Environment: word})
				require.NoError(t, err, "%s = %s", name, word)
				require.Equal(t, word == s.Value, reflect.DeepEqual(untold, told), "%s = %s", name, word)
			}
			_, err = load(process, map[string]string{s.Environment: "other"})
			require.ErrorContains(t, err, s.Environment+" ")
		}
	}
}

// amount reads a value of the setting: nanoseconds, or a count.
func (s setting) amount(t testing.TB, text string) int64 {
	t.Helper()
	if s.Unit == "count" {
		return int64(number(t, text))
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return int64(d)
}

// text writes a value of the setting.
func (s setting) text(n int64) string {
	if s.Unit == "count" {
		return strconv.FormatInt(n, 10)
	}
	return time.Duration(n).String()
}

// step is the smallest difference between two values that matters.
func (s setting) step() int64 {
	if s.Unit == "count" {
		return 1
	}
	return int64(time.Millisecond)
}

// below reports whether the relation keeps the setting that states it below the other one.
func (r relation) below() bool { return r.Rule == "shorter-than" || r.Rule == "at-most" }

// clear returns an environment in which no enforced relation with another setting stands in the way of any value of s:
// what must be larger is as large as it can be, what must be smaller as small.
func clear(all map[string]setting, s setting) map[string]string {
	env := map[string]string{}
	push(env, all, s.Setting, true)
	push(env, all, s.Setting, false)
	delete(env, s.Environment)
	return env
}

func push(env map[string]string, all map[string]setting, name string, up bool) {
	for other := range all {
		if other == name || !mustExceed(all, other, name, up) {
			continue
		}
		env[all[other].Environment] = all[other].Bounds.Least
		if up {
			env[all[other].Environment] = all[other].Bounds.Most
		}
		push(env, all, other, up)
	}
}

// mustExceed reports whether an enforced relation keeps a above b (up), or a below b.
func mustExceed(all map[string]setting, a, b string, up bool) bool {
	states := func(from, to string, below bool) bool {
		return slices.ContainsFunc(all[from].Relations, func(r relation) bool {
			return r.Enforced && r.To == to && r.below() == below
		})
	}
	return states(a, b, !up) || states(b, a, up)
}

// Ensure the default of every setting is the value of its record: a process that is told the value is configured like
// one that is told nothing, and one that is told another value is not.
func TestDefaultsAreAsRecorded(t *testing.T) {
	t.Parallel()
	all := measured(t)
	for name, s := range all {
		for _, process := range s.Processes {
			env := clear(all, s)
			untold, err := load(process, env)
			require.NoError(t, err, name)
			env[s.Environment] = s.Value
			told, err := load(process, env)
			require.NoError(t, err, name)
			require.Equal(t, untold, told, "the default of %s in %s", name, process)

			env[s.Environment] = s.text(s.amount(t, s.Bounds.Most))
			other, err := load(process, env)
			require.NoError(t, err, name)
			// The caller retry window is only compared with, never kept: TestRelationsAreEnforced pins its default.
			if name != "caller-retry-window" {
				require.NotEqual(t, untold, other, "%s makes no difference to %s", s.Environment, process)
			}
		}
	}
}

// Ensure a process takes the bounds of every setting and nothing beyond, and that its refusal names the variable. A
// process that a setting is not for does not look at it.
func TestBoundsAreAsRecorded(t *testing.T) {
	t.Parallel()
	all := measured(t)
	for name, s := range all {
		least, most := s.amount(t, s.Bounds.Least), s.amount(t, s.Bounds.Most)
		env := clear(all, s)
		for _, process := range []string{"api", "worker"} {
			try := func(value string) error {
				env[s.Environment] = value
				_, err := load(process, env)
				return err
			}
			require.NoError(t, try(s.text(least)), "least of %s", name)
			require.NoError(t, try(s.text(most)), "most of %s", name)
			for _, value := range []string{s.text(least - s.step()), s.text(most + s.step()), "often"} {
				if err := try(value); slices.Contains(s.Processes, process) {
					require.ErrorContains(t, err, s.Environment+" ", "%s = %s", name, value)
				} else {
					require.NoError(t, err, "%s is not for %s", name, process)
				}
			}
		}
	}
}

// Ensure every relation between two settings holds for their defaults, and that one which is enforced stops the process
// exactly where it is broken, with a message that names both variables.
func TestRelationsAreEnforced(t *testing.T) {
	t.Parallel()
	all := measured(t)
	for name, s := range all {
		for _, r := range s.Relations {
			require.Contains(t, all, r.To, name)
			value, limit := s.amount(t, s.Value), all[r.To].amount(t, all[r.To].Value)
			good, bad := edge(r.Rule, limit, s.step())
			require.True(t, value == good || (value < good) == r.below(), "%s is not %s %s", name, r.Rule, r.To)
			if !r.Enforced {
				continue
			}
			for _, process := range s.Processes {
				_, err := load(process, map[string]string{s.Environment: s.text(good)})
				require.NoError(t, err, "%s = %s", name, s.text(good))
				_, err = load(process, map[string]string{s.Environment: s.text(bad)})
				require.ErrorContains(t, err, s.Environment+" ", "%s = %s", name, s.text(bad))
				require.ErrorContains(t, err, all[r.To].Environment, "%s = %s", name, s.text(bad))
			}
		}
	}
}

// edge returns the last value that keeps a rule against a limit, and the first one that breaks it.
func edge(rule string, limit, step int64) (good, bad int64) {
	switch rule {
	case "shorter-than":
		return limit - step, limit
	case "longer-than":
		return limit + step, limit
	case "at-most":
		return limit, limit + step
	default: // at-least
		return limit, limit - step
	}
}

// Ensure the retention of keys is a record that is set from the caller retry window and the business risk: it names
// both, and it is no shorter than their sum.
//
// Standard: litespec/ext/concurrency#set-key-retention
func TestRetentionSpansTheWindowAndTheRisk(t *testing.T) {
	t.Parallel()
	retention := settings(t)["idempotency-key-retention"]
	require.Equal(t, "IDEMPOTENCY_KEY_RETENTION", retention.Environment)
	parts := map[string]int64{}
	var sum int64
	for _, part := range retention.Span {
		parts[part.Part] = retention.amount(t, part.Value)
		sum += parts[part.Part]
	}
	window := settings(t)["caller-retry-window"]
	require.Equal(t, window.amount(t, window.Value), parts["caller-retry-window"])
	require.Positive(t, parts["business-risk"])
	require.GreaterOrEqual(t, retention.amount(t, retention.Value), sum)
}

// Ensure no key expires before its caller can safely retry: a retention that is shorter than the caller retry window
// refuses to start, whichever of the two was changed, and callers are promised what the records say.
//
// Standard: litespec/ext/concurrency#retain-safe-retry-keys
func TestRetentionCoversTheCallerRetryWindow(t *testing.T) {
	t.Parallel()
	retention, window := settings(t)["idempotency-key-retention"], settings(t)["caller-retry-window"]
	require.GreaterOrEqual(t, retention.amount(t, retention.Value), window.amount(t, window.Value))
	for _, c := range []struct {
		env     map[string]string
		refused bool
	}{
		{map[string]string{}, false},
		{map[string]string{"IDEMPOTENCY_KEY_RETENTION": "24h"}, false},
		{map[string]string{"IDEMPOTENCY_KEY_RETENTION": "23h59m59s"}, true},
		{map[string]string{"CALLER_RETRY_WINDOW": "72h"}, false},
		{map[string]string{"CALLER_RETRY_WINDOW": "72h1s"}, true},
		{map[string]string{"CALLER_RETRY_WINDOW": "48h", "IDEMPOTENCY_KEY_RETENTION": "47h"}, true},
	} {
		_, err := load("api", c.env)
		if c.refused {
			require.ErrorContains(t, err, "IDEMPOTENCY_KEY_RETENTION must be at least CALLER_RETRY_WINDOW", "%v", c.env)
		} else {
			require.NoError(t, err, "%v", c.env)
		}
	}
	promise := fmt.Sprintf("kept for %.0f hours and may be retried for %.0f",
		hours(t, retention, retention.Value), hours(t, window, window.Value))
	require.Contains(t, strings.Join(strings.Fields(loadContract(t).Info.Description), " "), promise)
}

func hours(t testing.TB, s setting, value string) float64 {
	t.Helper()
	return time.Duration(s.amount(t, value)).Hours()
}

// Ensure every variable that a process reads has a line in the table of docs/settings/README.md, that a setting with a
// record is linked there with its record's value, and that nothing else is.
func TestEveryVariableIsListed(t *testing.T) {
	t.Parallel()
	variable := regexp.MustCompile(`^[A-Z]+(_[A-Z]+)+$`)
	readBy := map[string]bool{}
	for _, file := range goFiles(t, "internal/infra/config", isCode) {
		for _, text := range literals(file) {
			if variable.MatchString(text) {
				readBy[text] = true
			}
		}
	}
	require.NotEmpty(t, readBy)
	listed := map[string]bool{}
	row := regexp.MustCompile("(?m)^\\| (?:\\[`([A-Z_]+)`\\]\\(([a-z-]+)\\.yaml\\)|`([A-Z_]+)`) \\| ([^|]*) \\|")
	processes, _, _ := strings.Cut(read(t, filepath.Join("settings", "README.md")), "## For local work")
	all := settings(t)
	for _, m := range row.FindAllStringSubmatch(processes, -1) {
		name := m[1] + m[3]
		require.False(t, listed[name], "%s is listed twice", name)
		listed[name] = true
		s, recorded := all[strings.ToLower(strings.ReplaceAll(name, "_", "-"))]
		require.Equal(t, recorded, m[2] != "", "%s: a record and a link to it", name)
		if recorded {
			require.Equal(t, s.Setting, m[2])
			require.Equal(t, "`"+s.Value+"`", m[4], name)
		}
	}
	require.Equal(t, readBy, listed)
}

// Ensure a variable that is read anywhere else (local work, telemetry) is in that page too.
func TestOtherVariablesAreListed(t *testing.T) {
	t.Parallel()
	page := read(t, filepath.Join("settings", "README.md"))
	everywhere := []string{"PATH", "TERM", "NO_COLOR"} // what every program understands
	for _, folder := range []string{"cmd", "internal"} {
		for path, file := range goFiles(t, folder, isCode) {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if ok && len(call.Args) > 0 && readsEnvironment(call) {
					for _, name := range literals(call.Args[0]) {
						if !slices.Contains(everywhere, name) && !strings.Contains(page, "`"+name+"`") {
							t.Errorf("%s reads %s, which docs/settings/README.md does not list", path, name)
						}
					}
				}
				return true
			})
		}
	}
}

func readsEnvironment(call *ast.CallExpr) bool {
	names := []string{"Getenv", "LookupEnv", "getenv", "lookup"}
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return slices.Contains(names, f.Name)
	case *ast.SelectorExpr:
		return slices.Contains(names, f.Sel.Name)
	}
	return false
}

// Ensure the place where a setting takes effect exists.
func TestSettingsAreUsedWhereTheySay(t *testing.T) {
	t.Parallel()
	for _, s := range settings(t) {
		requireSymbol(t, s.UsedIn.File, s.UsedIn.Symbol)
	}
}
