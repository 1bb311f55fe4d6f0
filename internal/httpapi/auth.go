package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

// ErrUnauthenticated is returned by an Authenticator for an invalid token.
var ErrUnauthenticated = errors.New("invalid access token")

// The error codes of a challenge (RFC 6750, section 3.1).
const (
	bearerInvalidRequest    = "invalid_request"
	bearerInvalidToken      = "invalid_token"
	bearerInsufficientScope = "insufficient_scope"
)

type actorKey struct{}

// authenticate requires a bearer token (RFC 6750) and puts the actor that it names into the context.
func authenticate(auth Authenticator) step {
	return func(_ http.ResponseWriter, r *http.Request) (*http.Request, error) {
		token, errorCode := bearerToken(r.Header)
		if errorCode != "" || token == "" {
			return r, errUnauthenticated
		}
		actor, err := auth.Authenticate(r.Context(), token)
		if err != nil {
			return r, err
		}
		return r.WithContext(context.WithValue(r.Context(), actorKey{}, actor)), nil
	}
}

// bearerToken reads the token of the Authorization header (RFC 6750, section 2.1). Without bearer credentials it
// returns two empty strings; for malformed credentials it returns the challenge's error code.
func bearerToken(header http.Header) (token, errorCode string) {
	lines := header.Values("Authorization")
	if len(lines) > 1 { // reject repeated headers: a proxy in front may have validated the other one
		return "", bearerInvalidRequest
	}
	scheme, rest, _ := strings.Cut(header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", ""
	}
	token = strings.TrimLeft(rest, " ")
	if token == "" || strings.ContainsAny(token, " \t") {
		return "", bearerInvalidRequest
	}
	return token, ""
}

// challenge is the WWW-Authenticate header of a 401 or a 403 (RFC 6750, section 3). It has no error code if the request
// has no bearer credentials, and names the required scope if the token lacks it.
func challenge(r *http.Request, code domain.Code) string {
	const realm = `Bearer realm="orders"`
	if code == app.CodeForbidden {
		return realm + `, error="` + bearerInsufficientScope + `", scope="` + operationOf(r.Context()).scope + `"`
	}
	token, errorCode := bearerToken(r.Header)
	if token != "" {
		errorCode = bearerInvalidToken
	}
	if errorCode == "" {
		return realm
	}
	return realm + `, error="` + errorCode + `"`
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
