// Package scenario is what the service promises, one scenario each: shown on a running service and checked there. The tour
// of make demo, the lab of make run and the tests run the same scenarios.
package scenario

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
)

// Scenario is one promise of the service.
type Scenario struct {
	ID      string // kebab-case
	Title   string
	Promise string
	Rules   []string // the provisions of the standard that it shows, by the last part of their ids; see RuleText
	Code    []Link   // where the promise is kept
	Tests   []Link   // what proves it
	Knobs   []Knob
	run     func(*Run)
	// end tells the rest where the scenario has to wait for it. The tour tells other scenarios in between.
	end func(*Run)
}

// Link is a place in the repository.
type Link struct {
	Path string // of a file, or of the folder of a Go package; from the root of the repository
	Name string // of a declaration in the package, or a word of the file
}

// Find finds the file of a link and the line in it, counted from 1; 0: it is not there.
func (l Link) Find(repository fs.FS) (file string, line int) {
	files, look := []string{l.Path}, regexp.MustCompile(`\b`+regexp.QuoteMeta(l.Name)+`\b`)
	if path.Ext(l.Path) == "" {
		files, _ = fs.Glob(repository, l.Path+"/*.go")
		look = regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|type |const )` + regexp.QuoteMeta(l.Name) + `\b`)
	}
	for _, file := range files {
		text, err := fs.ReadFile(repository, file)
		if at := look.FindIndex(text); err == nil && at != nil {
			return file, bytes.Count(text[:at[0]], []byte("\n")) + 1
		}
	}
	return l.Path, 0
}

// Knob is a number that the visitor may choose.
type Knob struct {
	Name    string   `json:"name"`
	Label   string   `json:"label"`
	Min     int      `json:"min"`
	Max     int      `json:"max"`
	Default int      `json:"default"`
	Choices []Choice `json:"choices,omitempty"` // of a knob whose numbers stand for something; from Min to Max
}

// Choice is what one number of a Knob stands for.
type Choice struct {
	Value int    `json:"value"`
	Label string `json:"label"`
}

// choose makes a Knob of choices, numbered from 1.
func choose(name, label string, standard int, labels ...string) Knob {
	k := Knob{Name: name, Label: label, Min: 1, Max: len(labels), Default: standard}
	for i, l := range labels {
		k.Choices = append(k.Choices, Choice{Value: i + 1, Label: l})
	}
	return k
}

// Find returns the scenario of an id.
func Find(id string) (Scenario, bool) {
	all := All()
	i := slices.IndexFunc(all, func(s Scenario) bool { return s.ID == id })
	if i < 0 {
		return Scenario{}, false
	}
	return all[i], true
}

// Set completes the chosen values of a scenario's knobs with the defaults. A value that is out of bounds or of no knob is an
// error.
func (s Scenario) Set(chosen map[string]int) (map[string]int, error) {
	values := map[string]int{}
	for _, k := range s.Knobs {
		values[k.Name] = k.Default
	}
	for name, value := range chosen {
		i := slices.IndexFunc(s.Knobs, func(k Knob) bool { return k.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("scenario %s has no knob %q", s.ID, name)
		}
		if k := s.Knobs[i]; value < k.Min || value > k.Max {
			return nil, fmt.Errorf("%s must be within %d and %d", name, k.Min, k.Max)
		}
		values[name] = value
	}
	return values, nil
}
