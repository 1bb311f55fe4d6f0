package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// Observer is told of every answered request. code is the problem code, or ok.
type Observer interface {
	Request(ctx context.Context, operation, code string, replayed bool, took time.Duration)
}

// record collects, on the way through the layers, what an observer is told.
type record struct {
	operation string
	code      string
	status    int
	replayed  bool
}

type recordKey struct{}

// recordOf is the record of a request; outside of one it is a record that nobody reads.
func recordOf(ctx context.Context) *record {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		return r
	}
	return &record{}
}

// observe tells the observer and the log of each request: its operation and outcome, never its content.
func observe(o Observer, log *slog.Logger) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			start := time.Now()
			if id := traceID(r); id != "" {
				w.Header().Set(headerRequestID, id) // of this exchange: never stored, so a replay has its own
			}
			seen := &record{operation: "none", code: "ok", status: http.StatusOK}
			ctx := context.WithValue(r.Context(), recordKey{}, seen)
			next.ServeHTTP(&statusWriter{ResponseWriter: w, record: seen}, r.WithContext(ctx))
			took := time.Since(start)
			o.Request(ctx, seen.operation, seen.code, seen.replayed, took)
			log.LogAttrs(ctx, slog.LevelInfo, "request",
				slog.String("operation", seen.operation), slog.String("method", r.Method), slog.Int("status", seen.status),
				slog.String("code", seen.code), slog.Bool("replayed", seen.replayed), slog.Duration("took", took))
		})
	}
}

// statusWriter notes the status that was written.
type statusWriter struct {
	http.ResponseWriter
	record *record
}

func (w *statusWriter) WriteHeader(status int) {
	w.record.status = status
	w.record.replayed = w.Header().Get(headerIdempotentReplayed) != ""
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
