package docs_test

import (
	"cmp"
	"go/ast"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
)

// Ensure every operation of the code and of the contract, and every job, has a record, and that no record speaks of
// anything else.
func TestEveryOperationHasARecord(t *testing.T) {
	t.Parallel()
	inCode, inContract := map[string]bool{}, map[string]bool{}
	for _, u := range app.UseCases() {
		inCode[u.Operation] = true
	}
	for name := range contracts(t) {
		inContract[name] = true
	}
	callable, jobs := map[string]bool{}, map[string]bool{}
	for name, u := range useCases(t) {
		if u.isJob() {
			jobs[name] = true
		} else {
			callable[name] = true
		}
	}
	require.Equal(t, inCode, callable, "records and app.UseCases()")
	require.Equal(t, inContract, callable, "records and api/openapi.yaml")
	require.Equal(t, jobKinds(t), jobs, "records and the kinds of jobs in internal/infra")
}

// jobKinds finds the kinds of all jobs: what the Kind methods of their arguments return.
func jobKinds(t testing.TB) map[string]bool {
	t.Helper()
	kinds := map[string]bool{}
	for _, file := range goFiles(t, "internal/infra", isCode) {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "Kind" || len(f.Body.List) != 1 {
				continue
			}
			for _, kind := range literals(f) {
				kinds[kind] = true
			}
		}
	}
	return kinds
}

// literals is the string literals beneath a node.
func literals(node ast.Node) []string {
	var found []string
	ast.Inspect(node, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil {
				found = append(found, s)
			}
		}
		return true
	})
	return found
}

// Ensure record, code and contract say the same of an operation: its scope, how a retry is survived, whether the caller
// sends a version, and who may touch what.
func TestRecordsAgreeWithCodeAndContract(t *testing.T) {
	t.Parallel()
	all := useCases(t)
	for _, code := range app.UseCases() {
		u, c := all[code.Operation], contracts(t)[code.Operation]
		scope := cmp.Or(code.Scope, scopeNone)
		require.Equal(t, scope, u.Actor.Scope, "scope of %s in the record", code.Operation)
		require.Equal(t, scope, c.scope, "scope of %s in the contract", code.Operation)
		require.Equal(t, code.Mode == app.ModeEvent, scope == scopeNone, "%s takes a token or a signature", code.Operation)
		require.Equal(t, string(code.Mode), u.Idempotency.Mode, "mode of %s in the record", code.Operation)
		require.Equal(t, string(code.Mode), c.mode, "mode of %s in the contract", code.Operation)
		require.Equal(t, code.Versioned, u.versioned(), "version of %s in the record", code.Operation)
		require.Equal(t, u.CallerVersion, c.callerVersion, "version of %s in the contract", code.Operation)
		require.Equal(t, c.mayTouch, u.Actor.MayTouch, "who may touch what in %s", code.Operation)
		require.Equal(t, strings.Contains(c.route, "/orders"), strings.HasSuffix(u.Actor.MayTouch, "-orders"), code.Operation)
		require.Equal(t, code.Mode == app.ModeSafe, u.Kind == "query", "kind of %s", code.Operation)
	}
}

// Ensure the outcomes of a record are the statuses and problem codes of the contract, no more and no fewer.
func TestOutcomesAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	for name, u := range useCases(t) {
		if u.isJob() {
			continue
		}
		stated := map[outcome]bool{}
		for _, o := range u.Outcomes {
			require.False(t, stated[o], "%s states %v twice", name, o)
			stated[o] = true
		}
		declared := contracts(t)[name].outcomes
		for _, o := range missing(declared, stated) {
			t.Errorf("docs/usecases/%s.yaml lacks the outcome %d %s of the contract", name, o.Status, o.Code)
		}
		for _, o := range missing(stated, declared) {
			t.Errorf("docs/usecases/%s.yaml has the outcome %d %s, which the contract does not declare", name, o.Status, o.Code)
		}
	}
}

// missing is what is in one set and not in the other, sorted.
func missing(from, in map[outcome]bool) (all []outcome) {
	for o := range from {
		if !in[o] {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b outcome) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Code, b.Code))
	})
	return all
}

// Ensure a record lists what the fingerprint covers: every member of the canonical input, and the route that the
// contract has. The input of place-order is the struct PlaceOrderInput.
func TestFingerprintsCoverTheInput(t *testing.T) {
	t.Parallel()
	inputs := structs(t, "internal/app")
	for name, u := range useCases(t) {
		if !u.keyed() {
			continue
		}
		input := methodOf(name) + "Input"
		require.NotNil(t, inputs[input], "internal/app has no struct %s, the canonical input of the keyed operation %s", input, name)
		require.Equal(t, members(t, inputs[input]), u.Idempotency.Fingerprint.Input, name)
		require.Equal(t, contracts(t)[name].route, u.Idempotency.Fingerprint.Route, name)
	}
}

// structs is the struct types of a folder, by their names.
func structs(t testing.TB, folder string) map[string]*ast.StructType {
	t.Helper()
	all := map[string]*ast.StructType{}
	for _, file := range goFiles(t, folder, isCode) {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					all[spec.Name.Name] = s
				}
			}
			return true
		})
	}
	return all
}

// members is the names that a command input has in canonical JSON, sorted. What has none (json:"-") is part of the
// route.
func members(t testing.TB, input *ast.StructType) []string {
	t.Helper()
	names := []string{}
	for _, field := range input.Fields.List {
		require.NotNil(t, field.Tag, "%v has no name in canonical JSON", field.Names)
		tag, err := strconv.Unquote(field.Tag.Value)
		require.NoError(t, err)
		name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if name != "-" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Ensure every use case that changes something says what a concurrent duplicate gets and for how long it waits, and
// that every keyed one says the same: it waits, and then it replays, takes over, or is told that the first attempt is
// still at work.
//
// Standard: litespec/ext/concurrency#define-concurrent-retry-behavior
func TestConcurrentDuplicatesAreDefined(t *testing.T) {
	t.Parallel()
	bounds := map[string]bool{}
	for _, s := range settings(t) {
		bounds[s.Environment] = true
	}
	for name, u := range useCases(t) {
		d := u.Idempotency.ConcurrentDuplicate
		if u.Idempotency.Mode == "safe" {
			continue
		}
		require.Contains(t, bounds, d.Bound, "the setting that bounds the wait in %s", name)
		var results []string
		for _, then := range d.Then {
			results = append(results, then.Result)
			if status, code, ok := strings.Cut(then.Result, " "); ok {
				require.Contains(t, u.Outcomes, outcome{number(t, status), code}, "%s: an outcome for %s", name, then.Result)
			}
		}
		if !u.keyed() {
			continue
		}
		require.Equal(t, "waits", d.Behavior, name)
		require.Equal(t, "IDEMPOTENCY_KEY_WAIT", d.Bound, name)
		require.ElementsMatch(t, []string{
			"replay", "422 idempotency_key_reused", "takes-over", "409 idempotency_key_in_progress",
		}, results, name)
	}
}

func number(t testing.TB, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// Ensure every keyed record lists the statuses that are stored for replay, each with its headers: those that the
// contract declares for them, but for the mark of a replay and the id of the exchange, which are never stored. TestRecordsStateTheStoredAnswers
// compares the same list with what is in the store.
//
// Standard: litespec/ext/concurrency#declare-replayed-transport-outcomes
func TestStoredAnswersAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	for name, u := range useCases(t) {
		if !u.keyed() {
			require.Empty(t, u.Idempotency.Stored, name)
			continue
		}
		stored := map[int][]string{}
		for _, answer := range u.Idempotency.Stored {
			stored[answer.Status] = slices.Sorted(slices.Values(answer.Headers))
		}
		declared := map[int][]string{}
		for status, headers := range contracts(t)[name].headers {
			headers = slices.DeleteFunc(headers, func(h string) bool { return h == "Idempotent-Replayed" || h == "Request-Id" })
			declared[status] = slices.Sorted(slices.Values(headers))
		}
		require.Equal(t, declared, stored, name)
	}
}

// Ensure an operation documents its conflicts exactly when it asks the caller for a version: in the record, in the
// code and in the contract. A version without a conflict is a burden for nothing; a conflict without a version is a
// silent overwrite.
//
// Standard: litespec/ext/concurrency#document-write-conflict-behavior
// Standard: litespec/ext/concurrency#limit-version-checks
func TestVersionsAndConflictsGoTogether(t *testing.T) {
	t.Parallel()
	inCode := map[string]bool{}
	for _, u := range app.UseCases() {
		inCode[u.Operation] = u.Versioned
	}
	for name, u := range useCases(t) {
		conflicting := len(u.Conflicts) > 0
		require.Equal(t, conflicting, u.versioned(), "%s: the version that its record asks for", name)
		require.Equal(t, conflicting, inCode[name], "%s: the version that the code asks for", name)
		if c, ok := contracts(t)[name]; ok {
			require.Equal(t, conflicting, c.callerVersion != "none", "%s: the version that the contract asks for", name)
		}
	}
}

// Ensure a conflict holds for both operations: what the loser sees is an outcome of either, and where the record of the other
// one tells it too, it tells the same invalid result and the same test.
//
// Standard: litespec/ext/concurrency#document-write-conflict-behavior
func TestConflictsHoldForBothSides(t *testing.T) {
	t.Parallel()
	all := useCases(t)
	for name, u := range all {
		for _, c := range u.Conflicts {
			other := all[c.With]
			require.Contains(t, u.Outcomes, c.LoserSees, "%s: the outcome of its loser", name)
			require.Contains(t, other.Outcomes, c.LoserSees, "%s: the outcome of the loser against %s", c.With, name)
			tells := func(alike bool) bool {
				return slices.ContainsFunc(other.Conflicts, func(told conflict) bool {
					return told.With == name && (!alike || told.InvalidResult == c.InvalidResult && told.Test == c.Test)
				})
			}
			require.Equal(t, tells(false), tells(true), "%s tells its conflict with %s otherwise than %s does", c.With, name, name)
		}
		for _, r := range u.Contention.Races {
			require.Contains(t, all, r.With, "%s: the other side of a race", name)
		}
	}
}

// Ensure every conflict, race and shared row of every record has a test that forces it. That the test really sends both
// requests at once is checked where it runs: internal/e2e/main_test.go.
//
// Standard: litespec/ext/concurrency#document-write-conflict-behavior
func TestConflictsAreForcedByTests(t *testing.T) {
	t.Parallel()
	existing := tests(t)
	missing := map[string][]string{}
	note := func(operation, with, test string) {
		if len(existing[test]) == 0 {
			missing[test] = append(missing[test], operation+" against "+with)
		}
	}
	for name, u := range useCases(t) {
		for _, c := range u.Conflicts {
			note(name, c.With, c.Test)
		}
		for _, r := range u.Contention.Races {
			note(name, r.With, r.Test)
		}
		for _, r := range u.Contention.Rows {
			note(name, strings.Join(r.With, " and "), r.Test)
		}
	}
	for _, test := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("there is no %s: %s", test, strings.Join(slices.Sorted(slices.Values(missing[test])), ", "))
	}
}
