package spans

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// Pipe is a child's end of the pipe to its parent. What was written is there for the parent even when the child is killed
// in the next moment.
type Pipe struct {
	mu  sync.Mutex
	out *json.Encoder
}

// NewPipe writes to the parent.
func NewPipe(to io.Writer) *Pipe { return &Pipe{out: json.NewEncoder(to)} }

// Report tells the parent of a span. A parent that has gone is not told.
func (p *Pipe) Report(s Span) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.out.Encode(s)
}

// Read reads the other end of a Pipe until the child has ended, and then reports each span that has not ended as cut.
func Read(from io.Reader, report func(Span)) {
	open := map[string]Span{}
	for lines := json.NewDecoder(bufio.NewReader(from)); ; {
		var s Span
		if lines.Decode(&s) != nil {
			break
		}
		if s.End.IsZero() {
			open[s.ID] = s
		} else {
			delete(open, s.ID)
		}
		report(s)
	}
	for _, s := range slices.SortedFunc(maps.Values(open), func(a, b Span) int { return a.Start.Compare(b.Start) }) {
		s.End, s.Cut = time.Now(), true
		report(s)
	}
}
