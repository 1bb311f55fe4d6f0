package docs_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// useCase is a use-case record; docs/usecases/schema.json describes it.
type useCase struct {
	Operation string
	Kind      string
	Actor     struct {
		Scope    string
		MayTouch string `yaml:"may_touch"`
	}
	Idempotency struct {
		Mode        string
		Fingerprint struct {
			Input []string
			Route string
		}
		ConcurrentDuplicate struct {
			Behavior string
			Bound    string
			Then     []struct{ Result string }
		} `yaml:"concurrent_duplicate"`
		Stored []storedAnswer
	}
	CallerVersion string   `yaml:"caller_version"`
	Changes       []string // the aggregates that it saves
	Conflicts     []conflict
	Contention    struct {
		Races []race
		Rows  []sharedRow
	}
	Effects  []effect
	Outcomes []outcome
}

type storedAnswer struct {
	Status  int
	Headers []string
}

type conflict struct {
	With          string
	InvalidResult string  `yaml:"invalid_result"`
	LoserSees     outcome `yaml:"loser_sees"`
	Test          string
}

type race struct{ With, Test string }

type effect struct {
	DurableBy   string `yaml:"durable_by"`
	Job         string
	ProviderKey string `yaml:"provider_key"`
}

// sharedRow is the writers that meet at a row of an aggregate and nowhere else.
type sharedRow struct {
	Of   string
	With []string
	Test string
}

type outcome struct {
	Status int
	Code   string
}

func (u useCase) isJob() bool     { return u.Kind == "job" || u.Kind == "periodic-job" }
func (u useCase) keyed() bool     { return u.Idempotency.Mode == "key" }
func (u useCase) versioned() bool { return strings.HasPrefix(u.CallerVersion, "if-match") }

// setting is a setting record; docs/settings/schema.json describes it.
type setting struct {
	Setting     string
	Environment string
	Processes   []string
	Value       string
	Unit        string
	Bounds      struct{ Least, Most string }
	Choices     []string
	Span        []struct{ Part, Value string }
	Relations   []relation
	UsedIn      struct{ File, Symbol string } `yaml:"used_in"`
}

type relation struct {
	Rule     string
	To       string
	Enforced bool
}

func useCases(t testing.TB) map[string]useCase {
	t.Helper()
	return records[useCase](t, "usecases")
}

func settings(t testing.TB) map[string]setting {
	t.Helper()
	return records[setting](t, "settings")
}

// records reads the records of a folder by the names of their files.
func records[R any](t testing.TB, folder string) map[string]R {
	t.Helper()
	all := map[string]R{}
	for _, path := range recordFiles(t, folder) {
		var r R
		require.NoError(t, yaml.Unmarshal([]byte(read(t, path)), &r), path)
		all[strings.TrimSuffix(filepath.Base(path), ".yaml")] = r
	}
	return all
}

func recordFiles(t testing.TB, folder string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	return paths
}

// Ensure every record says all that its schema asks for and nothing that the schema does not know. The schemas ask a
// keyed use case for its fingerprint, its concurrent duplicates and its stored answers, a versioned one for its
// conflicts, and a write without a version for why contention is absorbed.
func TestRecordsObeyTheirSchemas(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"usecases", "settings"} {
		compiler := jsonschema.NewCompiler()
		schema, err := compiler.Compile(filepath.Join(folder, "schema.json"))
		require.NoError(t, err)
		require.Equal(t, 2020, schema.DraftVersion)
		for _, path := range recordFiles(t, folder) {
			var value any
			require.NoError(t, yaml.Unmarshal([]byte(read(t, path)), &value), path)
			if err := schema.Validate(value); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

// Ensure a record is found under the name that it states.
func TestRecordsAreNamedAfterWhatTheyState(t *testing.T) {
	t.Parallel()
	for name, u := range useCases(t) {
		require.Equal(t, name, u.Operation)
	}
	for name, s := range settings(t) {
		require.Equal(t, name, s.Setting)
		require.Equal(t, strings.ToUpper(strings.ReplaceAll(name, "-", "_")), s.Environment)
	}
}
