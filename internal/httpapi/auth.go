package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"example.com/orders/internal/app"
)

// ErrUnauthenticated is what an Authenticator answers to a token that proves nobody.
var ErrUnauthenticated = errors.New("invalid access token")

type actorKey struct{}

// authenticate asks for a bearer token (RFC 6750) and puts the actor that it proves into the context.
func authenticate(auth Authenticator) step {
	return func(_ http.ResponseWriter, r *http.Request) (*http.Request, error) {
		lines := r.Header.Values("Authorization")
		if len(lines) != 1 { // of two, a proxy before us may have checked the other one
			return r, errUnauthenticated
		}
		scheme, token, _ := strings.Cut(lines[0], " ")
		if !strings.EqualFold(scheme, "Bearer") || token == "" {
			return r, errUnauthenticated
		}
		actor, err := auth.Authenticate(r.Context(), strings.TrimSpace(token))
		if err != nil {
			return r, err
		}
		return r.WithContext(context.WithValue(r.Context(), actorKey{}, actor)), nil
	}
}

// requireScope refuses an actor without the scope that the contract names for the operation.
func requireScope(_ http.ResponseWriter, r *http.Request) (*http.Request, error) {
	if !actorOf(r.Context()).Has(operationOf(r.Context()).scope) {
		return r, app.ErrForbidden
	}
	return r, nil
}

func actorOf(ctx context.Context) app.Actor {
	actor, _ := ctx.Value(actorKey{}).(app.Actor)
	return actor
}
