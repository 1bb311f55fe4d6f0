package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/orders/internal/dev/scenario"
)

// story prints the tour. It implements scenario.Listener.
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

// Say implements scenario.Listener.
func (s *story) Say(who, text string) { s.printf("   %-8s %s\n", who, text) }

// Check implements scenario.Listener.
func (s *story) Check(c scenario.Check) {
	mark, why := s.paint(green, "✓"), ""
	if !c.OK {
		mark, why = s.paint(red, "✗ BROKEN:"), ": "+c.Why
	}
	s.printf("   %s %s%s\n", mark, c.Text, why)
}

// Exchange implements scenario.Listener. It prints what was sent and what came back.
func (s *story) Exchange(x scenario.Exchange) { s.printf("%s%s", s.request(x, ""), s.answer(x)) }

// Crowd implements scenario.Listener. It prints the requests as one, and the answers by kind.
func (s *story) Crowd(all []scenario.Exchange) {
	if len(all) == 0 {
		return
	}
	one, keys := all[0], map[string]bool{}
	actors := map[string]bool{}
	for _, x := range all {
		keys[x.Sent.Get("Idempotency-Key")], actors[x.Actor] = true, true
	}
	if len(actors) > 1 {
		one.Actor = fmt.Sprintf("%d actors", len(actors))
	}
	if len(keys) > 1 {
		one.Sent = http.Header{"Idempotency-Key": {"one for each"}}
	}
	s.printf("%s", s.request(one, fmt.Sprintf("   %d times at once", len(all))))
	kinds := map[string]int{}
	for _, x := range all {
		kinds[kindOf(x)]++
	}
	for _, kind := range slices.Backward(slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(kinds[a], kinds[b]), strings.Compare(a, b))
	})) {
		s.Say("", fmt.Sprintf("← %d × %s", kinds[kind], kind))
	}
}

func kindOf(x scenario.Exchange) string {
	if x.Err != nil {
		return "no answer"
	}
	return x.Outcome() + strings.Join(named(x.Received, "Idempotent-Replayed"), "")
}

func (s *story) request(x scenario.Exchange, times string) string {
	line := fmt.Sprintf("   %-8s → %s %s%s", x.Actor, x.Method, x.Path, times)
	return folded(line, named(x.Sent, "Idempotency-Key", "If-Match", "If-None-Match")) + s.body(x.Body)
}

func (s *story) answer(x scenario.Exchange) string {
	if x.Err != nil {
		return fmt.Sprintf("   %-8s ✂ %s\n", "", "the answer is lost")
	}
	line := fmt.Sprintf("   %-8s ← %s", "", x.Outcome())
	return folded(line, named(x.Received, "Location", "ETag", "Idempotent-Replayed", "Retry-After")) + s.body(x.Answer)
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
func (s *story) summary(told []scenario.Told, took time.Duration) error {
	s.printf("\n%s\n\n", s.paint(bold, "What was promised, and what was seen"))
	failed := 0
	for i, t := range told {
		broken := 0
		for _, c := range t.Checks {
			if !c.OK {
				broken++
			}
		}
		mark := s.paint(green, "✓")
		if broken > 0 {
			mark = s.paint(red, "✗")
		}
		s.printf("   %s %2d. %-60s %2d of %2d checks %7.1f s\n", mark, i+1, t.Title, len(t.Checks)-broken, len(t.Checks), t.Took.Seconds())
		failed += broken
	}
	s.printf("\n   %.0f s in all.\n", took.Seconds())
	if failed > 0 {
		return fmt.Errorf("%d checks failed: a promise is broken", failed)
	}
	s.printf("   Every promise held.\n")
	return nil
}
