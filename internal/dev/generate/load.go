package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"gopkg.in/yaml.v3"

	"example.com/orders/api"
)

// service is what the templates show.
type service struct {
	Operations []operation // of the contract, by path and method
	Jobs       []record    // by name
	Problems   []problem   // as the contract lists them
}

type operation struct {
	record
	ID, Method, Path, Scope, Mode, CallerVersion, MayTouch string
	Conflicts                                              []string // the operations that it conflicts with, by name
}

// Versioned tells whether the caller must send a version.
func (o operation) Versioned() bool { return o.CallerVersion != "none" }

// record is what the index shows of a use-case record.
type record struct {
	Operation, Kind, Summary string
	Conflicting              []struct{ With string } `yaml:"conflicts"`
	Effects                  []struct {
		Job string
	}
}

type problem struct {
	Code       string `yaml:"code"`
	Status     int    `yaml:"status"`
	Title      string `yaml:"title"`
	RetryAfter int    `yaml:"retry_after"`
	Meaning    string `yaml:"meaning"`
	Action     string `yaml:"action"`
}

func load() (s service, err error) {
	records, err := loadRecords()
	if err != nil {
		return s, err
	}
	contract, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		return s, fmt.Errorf("read contract: %w", err)
	}
	for path, item := range contract.Paths.Map() {
		for method, o := range item.Operations() {
			s.Operations = append(s.Operations, newOperation(method, path, o, records))
		}
	}
	slices.SortFunc(s.Operations, func(a, b operation) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
	})
	for _, r := range records {
		if r.Kind == "job" || r.Kind == "periodic-job" {
			s.Jobs = append(s.Jobs, r)
		}
	}
	slices.SortFunc(s.Jobs, func(a, b record) int { return strings.Compare(a.Operation, b.Operation) })
	s.Problems, err = problems(contract)
	return s, err
}

func newOperation(method, path string, o *openapi3.Operation, records map[string]record) operation {
	op := operation{record: records[o.OperationID], ID: o.OperationID, Method: method, Path: path}
	for _, scopes := range (*o.Security)[0] {
		op.Scope = strings.Join(scopes, "")
	}
	mode, _ := o.Extensions["x-idempotency"].(map[string]any)
	op.Mode, _ = mode["mode"].(string)
	op.CallerVersion, _ = o.Extensions["x-caller-version"].(string)
	op.MayTouch, _ = o.Extensions["x-may-touch"].(string)
	for name, other := range records { // a conflict is told by one of the two, or by both
		for _, c := range other.Conflicting {
			switch op.ID {
			case name:
				op.Conflicts = append(op.Conflicts, c.With)
			case c.With:
				op.Conflicts = append(op.Conflicts, name)
			}
		}
	}
	slices.Sort(op.Conflicts)
	op.Conflicts = slices.Compact(op.Conflicts)
	return op
}

// problems reads x-problems of the schema ProblemCode.
func problems(contract *openapi3.T) (all []problem, err error) {
	raw, err := yaml.Marshal(contract.Components.Schemas["ProblemCode"].Value.Extensions["x-problems"])
	if err == nil {
		err = yaml.Unmarshal(raw, &all)
	}
	return all, err
}

func loadRecords() (map[string]record, error) {
	paths, err := filepath.Glob("docs/usecases/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("find records: %w", err)
	}
	records := map[string]record{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read record: %w", err)
		}
		var r record
		if err := yaml.Unmarshal(raw, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		records[r.Operation] = r
	}
	return records, nil
}
