package e2e

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/dev/testkit"
)

// conflictsWereForced checks that each test which a record names for a conflict, a race or a shared row has really sent both
// requests at once. It needs whole tests: where -run picks subtests, it does not look.
//
// Standard: litespec/ext/concurrency#document-write-conflict-behavior
func conflictsWereForced() error {
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return nil
	}
	var errs []error
	paths, err := filepath.Glob("../../docs/usecases/*.yaml")
	errs = append(errs, err)
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		errs = append(errs, err)
		var r meetings
		errs = append(errs, yaml.Unmarshal(raw, &r))
		for _, m := range slices.Concat(r.Conflicts, r.Contention.Races) {
			errs = append(errs, testkit.Overlapped(m.Test, r.Operation, m.With))
		}
		for _, m := range r.Contention.Rows {
			for _, with := range m.With {
				errs = append(errs, testkit.Overlapped(m.Test, r.Operation, with))
			}
		}
	}
	return errors.Join(errs...)
}

// meetings is what a use-case record says of overlapping writes.
type meetings struct {
	Operation  string
	Conflicts  []meeting
	Contention struct {
		Races []meeting
		Rows  []struct {
			With []string
			Test string
		}
	}
}

type meeting struct{ With, Test string }

func TestMain(m *testing.M) {
	// These tests wait more than they work. -parallel on the command line, which is read later, still decides.
	_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	pgtest.Main(m, testkit.RemoveBinaries, conflictsWereForced)
}
