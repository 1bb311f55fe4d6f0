package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Observer counts every request. code is the problem code, or ok, or client_gone if the client did not read the
// response.
type Observer interface {
	Request(ctx context.Context, operation, code string, replayed bool, took time.Duration)
}

// record collects what the layers report to the observer.
type record struct {
	operation string
	code      string
	status    int
	replayed  bool
	written   bool // the response has begun
	failed    bool // the client did not read the response
}

type recordKey struct{}

// unknownOperation is the operation of a request without a route.
const unknownOperation = "none"

// clientGone is the code of a request whose client did not wait for the response.
const clientGone = "client_gone"

// recordOf returns the record of a request. Without a request it returns an unused record.
func recordOf(ctx context.Context) *record {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		return r
	}
	return &record{}
}

// methodMost bounds a logged method, in bytes, because the client chooses the text.
const methodMost = 16

// observe counts and logs each request's operation and outcome, never its content.
func observe(o Observer, log *slog.Logger) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			start := time.Now()
			seen := &record{operation: unknownOperation, code: "ok", status: http.StatusOK}
			ctx := context.WithValue(r.Context(), recordKey{}, seen)
			defer func() { // also if a panic cuts off the response
				took := time.Since(start)
				nameSpan(ctx, seen)
				log.LogAttrs(ctx, slog.LevelInfo, "request",
					slog.String("operation", seen.operation), slog.String("method", clip(r.Method, methodMost)), slog.Int("status", seen.status),
					slog.String("code", seen.code), slog.Bool("replayed", seen.replayed), slog.Duration("took", took))
				o.Request(ctx, seen.operation, seen.code, seen.replayed, took) // last, so that the log line is already written
			}()
			next.ServeHTTP(&statusWriter{ResponseWriter: w, record: seen, requestID: traceID(r)}, r.WithContext(ctx))
		})
	}
}

// nameSpan names the request's span after the operation. The path would give every order a span name of its own.
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

// statusWriter records the status, and whether the client failed to read the response. It adds a Request-Id header to
// every response. The header is never stored, so a replay has a new one.
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

// Write implements http.ResponseWriter. It fails if the client has disconnected or reads too slowly.
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
