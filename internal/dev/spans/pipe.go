package spans

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// line is what a Pipe carries: one of the two.
type line struct {
	Ready string `json:"ready,omitempty"`
	Span  *Span  `json:"span,omitempty"`
}

// Pipe is a child's end of the pipe to its parent. What was written is there for the parent even when the child is killed
// in the next moment.
type Pipe struct {
	mu  sync.Mutex
	out *json.Encoder
}

// NewPipe writes to the parent.
func NewPipe(to io.Writer) *Pipe { return &Pipe{out: json.NewEncoder(to)} }

// Ready tells the parent that the child has started, and at which address its listener for operators is.
func (p *Pipe) Ready(ops string) error {
	if err := p.write(line{Ready: ops}); err != nil {
		return fmt.Errorf("tell the parent: %w", err)
	}
	return nil
}

// Report tells the parent of a span. A parent that has gone is not told.
func (p *Pipe) Report(s Span) { _ = p.write(line{Span: &s}) }

func (p *Pipe) write(l line) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Encode(l)
}

// Read reads the other end of a Pipe until the child has ended, and then reports each span that has not ended as cut.
func Read(from io.Reader, ready func(ops string), report func(Span)) {
	open := map[string]Span{}
	for lines := json.NewDecoder(bufio.NewReader(from)); ; {
		var l line
		if lines.Decode(&l) != nil {
			break
		}
		switch {
		case l.Span == nil:
			ready(l.Ready)
			continue
		case l.Span.End.IsZero():
			open[l.Span.ID] = *l.Span
		default:
			delete(open, l.Span.ID)
		}
		report(*l.Span)
	}
	for _, s := range slices.SortedFunc(maps.Values(open), func(a, b Span) int { return a.Start.Compare(b.Start) }) {
		s.End, s.Cut = time.Now(), true
		report(s)
	}
}
