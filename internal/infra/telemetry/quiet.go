package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Quiet is a rate-limited log for a library that repeats the same message during an outage. It drops lines below least,
// and logs each message at most once per interval, with the number of dropped repetitions. A library has few messages,
// so memory is bounded.
func Quiet(log *slog.Logger, least slog.Level, every time.Duration) *slog.Logger {
	return slog.New(quiet{log.Handler(), least, &repeated{every: every, now: time.Now, seen: map[string]*entry{}}})
}

type quiet struct {
	slog.Handler
	least    slog.Level
	repeated *repeated
}

func (h quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.least && h.Handler.Enabled(ctx, l)
}

func (h quiet) Handle(ctx context.Context, r slog.Record) error {
	leftOut, pass := h.repeated.again(r.Message)
	if !pass {
		return nil
	}
	if leftOut > 0 {
		r.AddAttrs(slog.Int("repeated", leftOut))
	}
	return h.Handler.Handle(ctx, r)
}

func (h quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{h.Handler.WithAttrs(attrs), h.least, h.repeated}
}

func (h quiet) WithGroup(name string) slog.Handler {
	return quiet{h.Handler.WithGroup(name), h.least, h.repeated}
}

// repeated remembers when each message last passed.
type repeated struct {
	every time.Duration
	now   func() time.Time

	mu   sync.Mutex
	seen map[string]*entry
}

type entry struct {
	last    time.Time
	leftOut int
}

func (r *repeated) again(message string) (leftOut int, pass bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seen[message]
	if s == nil {
		s = &entry{}
		r.seen[message] = s
	}
	now := r.now()
	if !s.last.IsZero() && now.Sub(s.last) < r.every {
		s.leftOut++
		return 0, false
	}
	leftOut, s.leftOut, s.last = s.leftOut, 0, now
	return leftOut, true
}
