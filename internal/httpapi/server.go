// Package httpapi is the HTTP boundary: it authenticates, maps requests to commands and results to responses, and
// answers every error as a problem. The routes, models and strict handlers are generated from api/openapi.yaml.
package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"example.com/orders/internal/app"
	"example.com/orders/internal/httpapi/openapi"
)

// Authenticator returns the actor of a bearer token. It returns ErrUnauthenticated for an invalid token; any other
// error means that the token cannot be verified at the moment.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (app.Actor, error)
}

// server implements the generated strict interface on the use cases.
type server struct{ app *app.Service }

// New builds the handler of the API. A request passes, in this order:
//
//	trace and recover → route → authenticate → scope → headers → path and query → body → generated mapping → use case
//	→ preconditions of a read
//
// so that 401 and 403 are decided before parameters and body are read. A provider event has neither token nor
// parameters: only its signature over the body is verified.
func New(
	service *app.Service, auth Authenticator, events app.EventParser, o Observer, log *slog.Logger,
) (http.Handler, error) {
	return newHandler(&server{service}, auth, events, o, log)
}

func newHandler(
	handlers openapi.StrictServerInterface, auth Authenticator, events app.EventParser, o Observer, log *slog.Logger,
) (http.Handler, error) {
	operations, err := loadOperations()
	if err != nil {
		return nil, fmt.Errorf("read contract: %w", err)
	}
	p := newProblems(log)
	router := chi.NewRouter()
	router.Use(observe(o, log), p.recoverPanics, middleware.GetHead)
	router.NotFound(func(w http.ResponseWriter, r *http.Request) { p.write(w, r, errRouteNotFound) })
	router.MethodNotAllowed(p.noRoute(router))
	router.Get(contractPath, serveContract)

	strict := openapi.NewStrictHandlerWithOptions(handlers, nil, openapi.StrictHTTPServerOptions{
		RequestErrorHandlerFunc:  p.write,
		ResponseErrorHandlerFunc: p.write,
	})
	openapi.HandlerWithOptions(strict, openapi.ChiServerOptions{
		// Middlewares of an inline router run once the route is known.
		BaseRouter: router.With(
			p.middleware(operations.find),
			p.middleware(verifySignature(events)),
			p.middleware(unlessSigned(authenticate(auth))),
			p.middleware(unlessSigned(requireScope)),
			p.middleware(unlessSigned(checkHeaders)),
			p.middleware(unlessSigned(checkParameters)),
			p.middleware(unlessSigned(strictBody)),
			p.evaluatePreconditions,
		),
		ErrorHandlerFunc: p.write,
	})
	return router, nil
}

// step checks a request before its handler. It returns the request to continue with, or an error.
type step func(w http.ResponseWriter, r *http.Request) (*http.Request, error)

func (p problems) middleware(s step) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r, err := s(w, r)
			if err != nil {
				p.write(w, r, err)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
