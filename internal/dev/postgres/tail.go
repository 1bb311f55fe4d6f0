package postgres

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

const tailLines = 12

// tail keeps the last lines written to it.
type tail struct {
	mu    sync.Mutex
	lines []string
	rest  []byte // the line that has no end yet
}

// Write takes output in pieces of any size.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rest = append(t.rest, p...)
	for {
		i := bytes.IndexByte(t.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		t.lines = append(t.lines, string(t.rest[:i]))
		t.lines = t.lines[max(0, len(t.lines)-tailLines):]
		t.rest = t.rest[i+1:]
	}
}

// String returns the last lines.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(append(slices.Clip(t.lines), string(t.rest)), "\n")
}
