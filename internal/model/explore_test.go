// Package model holds the protocols of client keys and of payments as small models, and visits every state that their
// bounded actors can reach. The decisions in them are the service's own code: the use cases of internal/app run on a
// database and a provider of plain values. docs/model.md says what was explored and what is left out.
package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// spec is a model. States are values: a step never changes the state that it starts from.
type spec[S any, K comparable] struct {
	initial []S
	// key is what tells states apart. States with equal keys must have equal futures.
	key func(S) K
	// steps lists what can happen next. A step that leaves the state as it is may be listed; it is ignored.
	steps func(S) []step[S]
	// always is checked in every state, quiet in those where nothing but optional steps can happen.
	always, quiet func(S) error
}

// step is one atomic change. An optional one need not happen: a fault, or a wish of a customer.
type step[S any] struct {
	name     string
	optional bool
	to       S
}

// explored is what a search has seen, or the shortest way to its first violation.
type explored struct {
	states, edges, depth int
	violation            error
	trace                []string
}

// node is a visited state: how it was reached, and who reaches it without an optional step.
type node struct {
	parent  int
	by      string
	sources []int
}

// search is one run of explore.
type search[S any, K comparable] struct {
	spec  spec[S, K]
	seen  map[K]int
	nodes []node
	queue []S
	quiet []int
	explored
}

// explore visits every reachable state, breadth first, so that a counterexample is a shortest one. After that it checks
// that a quiet state can be reached from every state without an optional step: no work waits for ever. It fails beyond
// limit states.
func explore[S any, K comparable](s spec[S, K], limit int) explored {
	x := &search[S, K]{spec: s, seen: map[K]int{}}
	for _, first := range s.initial {
		x.visit(-1, step[S]{name: "start", to: first}, x.spec.key(first))
	}
	level, ends := 0, len(x.queue)
	for at := 0; at < len(x.queue) && x.violation == nil; at++ {
		if at == ends {
			level, ends = level+1, len(x.queue)
		}
		if x.depth = level; len(x.queue) > limit {
			x.violation = fmt.Errorf("more than %d states", limit)
			break
		}
		x.expand(at)
	}
	if x.states = len(x.nodes); x.violation == nil {
		x.findStuck()
	}
	return x.explored
}

func (x *search[S, K]) expand(at int) {
	state, here, quiet := x.queue[at], x.spec.key(x.queue[at]), true
	var none S
	x.queue[at] = none // its memory is free again
	for _, s := range x.spec.steps(state) {
		key := x.spec.key(s.to)
		if key == here {
			continue
		}
		quiet = quiet && s.optional
		if x.visit(at, s, key); x.violation != nil {
			return
		}
	}
	if !quiet {
		return
	}
	x.quiet = append(x.quiet, at)
	if err := x.spec.quiet(state); err != nil {
		x.fail(at, fmt.Errorf("at rest: %w", err))
	}
}

func (x *search[S, K]) visit(from int, s step[S], key K) {
	x.edges++
	at, known := x.seen[key]
	if !known {
		at = len(x.nodes)
		x.seen[key] = at
		x.nodes = append(x.nodes, node{parent: from, by: s.name})
		x.queue = append(x.queue, s.to)
	}
	if from >= 0 && !s.optional {
		x.nodes[at].sources = append(x.nodes[at].sources, from)
	}
	if known {
		return
	}
	if err := x.spec.always(s.to); err != nil {
		x.fail(at, err)
	}
}

// findStuck fails for the first state from which no quiet state is reached.
func (x *search[S, K]) findStuck() {
	ends := make([]bool, len(x.nodes))
	for work := x.quiet; len(work) > 0; {
		at := work[len(work)-1]
		work = work[:len(work)-1]
		if !ends[at] {
			ends[at] = true
			work = append(work, x.nodes[at].sources...)
		}
	}
	if at := slices.Index(ends, false); at >= 0 {
		x.fail(at, fmt.Errorf("the work never ends"))
	}
}

func (x *search[S, K]) fail(at int, err error) {
	x.violation = err
	for ; at >= 0; at = x.nodes[at].parent {
		x.trace = append(x.trace, x.nodes[at].by)
	}
	slices.Reverse(x.trace)
}

// holds requires that a model has no violation, and prints the trace of one.
func (e explored) holds(t *testing.T) {
	t.Helper()
	t.Logf("%d states, %d steps, depth %d", e.states, e.edges, e.depth)
	require.NoError(t, e.violation, "after:\n\t%s", strings.Join(e.trace, "\n\t"))
}

// breaks requires that a planted fault violates an invariant, in a counterexample of that many steps.
func (e explored) breaks(t *testing.T, invariant string, steps int) {
	t.Helper()
	require.Error(t, e.violation, "not found in %d states", e.states)
	t.Logf("%v, after:\n\t%s", e.violation, strings.Join(e.trace, "\n\t"))
	require.ErrorContains(t, e.violation, invariant)
	require.Equal(t, steps, len(e.trace)-1, "steps")
}

// small reports whether the bounds are to be smaller: with -short, and with the race detector, which has nothing to
// find in a search on one goroutine and makes it ten times slower.
func small() bool { return testing.Short() || raceDetector }
