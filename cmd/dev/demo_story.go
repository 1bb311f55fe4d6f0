package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// story prints the tour.
type story struct {
	mu     sync.Mutex
	out    io.Writer
	colour bool
}

func newStory(out *os.File) *story {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &story{out: out, colour: terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// The colours, as terminals number them.
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
)

func (s *story) paint(colour, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (s *story) printf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format, args...)
}

func (s *story) headline(n int, title, promise string) {
	s.printf("\n%s\n   %s\n\n", s.paint(bold, fmt.Sprintf("%d. %s", n, title)), promise)
}

// line says something beside the requests: who is on the left.
func (s *story) line(who, format string, args ...any) {
	s.printf("   %-8s %s\n", who, fmt.Sprintf(format, args...))
}

// patience says every five seconds that a wait goes on, until stop.
func (s *story) patience() (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.line("", "… not yet")
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

func (s *story) check(ok bool, what string) {
	mark := s.paint(green, "✓")
	if !ok {
		mark = s.paint(red, "✗ BROKEN:")
	}
	s.printf("   %s %s\n", mark, what)
}

// show prints what was sent and what came back.
func (s *story) show(x passed) { s.printf("%s%s", s.request(x, ""), s.answer(x)) }

func (s *story) request(x passed, times string) string {
	line := fmt.Sprintf("   %-8s → %s %s%s", x.actor, x.method, x.path, times)
	return folded(line, named(x.sent, "Idempotency-Key", "If-Match", "If-None-Match")) + s.body(x.body)
}

func (s *story) answer(x passed) string {
	if x.err != nil {
		return fmt.Sprintf("   %-8s ✂ %s\n", "", "the answer is lost")
	}
	line := fmt.Sprintf("   %-8s ← %s", "", x.outcome())
	return folded(line, named(x.received, "Location", "ETag", "Idempotent-Replayed", "Retry-After")) + s.body(x.answer)
}

func (s *story) body(raw []byte) string {
	text := gist(raw)
	if text == "" {
		return ""
	}
	return fmt.Sprintf("   %-8s   %s\n", "", s.paint(dim, cut(text, columns-14)))
}

// columns is how wide the tour is.
const columns = 120

// cut shortens a text to so many characters; dots stand for what is gone.
func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-2]) + " …"
	}
	return text
}

// folded goes on in further lines where a line is too long for its headers.
func folded(line string, headers []string) string {
	text := ""
	for _, h := range headers {
		if len([]rune(line+h)) > columns {
			text += line + "\n"
			line = fmt.Sprintf("%11s", "")
		}
		line += h
	}
	return text + line + "\n"
}

// gist is a body without what a reader of the story does not need; dots stand for it.
func gist(raw []byte) string {
	dull := []string{"created_at", "updated_at", "type", "title", "instance", "trace_id", "page"}
	d := json.NewDecoder(bytes.NewReader(raw))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return ""
	}
	var members []string
	dots := ""
	for d.More() {
		var value json.RawMessage
		name, err := d.Token()
		if err != nil || d.Decode(&value) != nil {
			return ""
		}
		if slices.Contains(dull, fmt.Sprint(name)) || string(value) == "null" {
			dots = " …"
			continue
		}
		members = append(members, fmt.Sprintf("%q:%s", name, value))
	}
	return "{" + strings.Join(members, ",") + dots + "}"
}

// named lists those of the headers that there are.
func named(h interface{ Get(string) string }, names ...string) (found []string) {
	for _, name := range names {
		if v := h.Get(name); v != "" {
			found = append(found, "   "+name+": "+v)
		}
	}
	return found
}

// summary prints the table and returns what broke.
func (s *story) summary(told []*step, took time.Duration) error {
	s.printf("\n%s\n\n", s.paint(bold, "What was promised, and what was seen"))
	failed := 0
	for _, t := range told {
		failed += t.broken
		mark := s.paint(green, "✓")
		if t.broken > 0 {
			mark = s.paint(red, "✗")
		}
		s.printf("   %s %2d. %-40s %2d of %2d checks %7.1f s\n", mark, t.number, t.chapter.title, t.checks-t.broken, t.checks,
			t.took.Seconds())
	}
	s.printf("\n   %.0f s in all.\n", took.Seconds())
	if failed > 0 {
		return fmt.Errorf("%d checks failed: a promise is broken", failed)
	}
	s.printf("   Every promise held.\n")
	return nil
}

func euros(cents int64) string { return fmt.Sprintf("%d.%02d EUR", cents/100, cents%100) }

// tail keeps the last lines that the parts logged, for the case that something goes wrong.
type tail struct {
	mu    sync.Mutex
	lines []string
}

const tailLines = 20

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, strings.Split(strings.TrimRight(string(p), "\n"), "\n")...)
	t.lines = t.lines[max(0, len(t.lines)-tailLines):]
	return len(p), nil
}

func (t *tail) used() bool { t.mu.Lock(); defer t.mu.Unlock(); return len(t.lines) > 0 }

func (t *tail) String() string { t.mu.Lock(); defer t.mu.Unlock(); return strings.Join(t.lines, "\n") }
