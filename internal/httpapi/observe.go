package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Observer is told of every request. code is the problem code, or ok, or client_gone: the client did not take the answer.
type Observer interface {
	Request(ctx context.Context, operation, code string, replayed bool, took time.Duration)
}

// record collects, on the way through the layers, what an observer is told.
type record struct {
	operation string
	code      string
	status    int
	replayed  bool
	written   bool // the answer has begun
	failed    bool // the client did not take the answer
}

type recordKey struct{}

// unknownOperation is the operation of a request without a route.
const unknownOperation = "none"

// clientGone is what is noted as the code of a request whose client did not wait for the answer.
const clientGone = "client_gone"

// recordOf is the record of a request; outside of one it is a record that is not read.
func recordOf(ctx context.Context) *record {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		return r
	}
	return &record{}
}

// methodMost is how much of a method the log shows, in bytes: it is the caller's text.
const methodMost = 16

// observe tells the observer and the log of each request: its operation and outcome, never its content.
func observe(o Observer, log *slog.Logger) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			start := time.Now()
			seen := &record{operation: unknownOperation, code: "ok", status: http.StatusOK}
			ctx := context.WithValue(r.Context(), recordKey{}, seen)
			defer func() { // also where the answer is cut off by a panic
				took := time.Since(start)
				nameSpan(ctx, seen)
				log.LogAttrs(ctx, slog.LevelInfo, "request",
					slog.String("operation", seen.operation), slog.String("method", clip(r.Method, methodMost)), slog.Int("status", seen.status),
					slog.String("code", seen.code), slog.Bool("replayed", seen.replayed), slog.Duration("took", took))
				o.Request(ctx, seen.operation, seen.code, seen.replayed, took) // last: who is told finds the line in the log
			}()
			next.ServeHTTP(&statusWriter{ResponseWriter: w, record: seen, requestID: traceID(r)}, r.WithContext(ctx))
		})
	}
}

// nameSpan names the request's span by what was asked for; a path would be a name of its own for every order.
func nameSpan(ctx context.Context, seen *record) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	if seen.operation != unknownOperation {
		span.SetName(seen.operation)
	}
	span.SetAttributes(attribute.String("orders.code", seen.code))
}

// statusWriter notes the status that was written, and a client that does not take its answer. It gives every answer its
// Request-Id: of this exchange and never stored, so that a replay has its own.
type statusWriter struct {
	http.ResponseWriter
	record    *record
	requestID string
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.record.status, w.record.written = status, true
	w.record.replayed = w.Header().Get(headerIdempotentReplayed) != ""
	if w.requestID != "" {
		w.Header().Set(headerRequestID, w.requestID)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter. It fails where the client has gone, or does not read within the time that it has.
func (w *statusWriter) Write(body []byte) (int, error) {
	if !w.record.written {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(body)
	if err != nil {
		w.record.failed, w.record.code = true, clientGone
	}
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
