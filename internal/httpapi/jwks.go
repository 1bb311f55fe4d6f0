package httpapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lestrrat-go/httprc/v3"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"
	"golang.org/x/sync/singleflight"

	"example.com/orders/internal/app"
)

const (
	// clockSkew is how far an issuer's clock may be off.
	clockSkew = 30 * time.Second
	// keysEvery is how often the keys are fetched anyway; keysAtMost bounds fetches for the sake of unknown keys.
	keysEvery  = 15 * time.Minute
	keysAtMost = 10 * time.Second
	// fetchMost bounds one fetch, and so how long a request waits for it.
	fetchMost = 10 * time.Second
	// claimMost bounds the claims that end up in the store, in bytes.
	claimMost = 255
	// singleTenant is the tenant of a deployment whose tokens name none.
	singleTenant = "default"
)

// JWTConfig says whose tokens count.
type JWTConfig struct {
	Issuer   string
	Audience string
	JWKSURL  string
}

// JWTAuthenticator checks bearer JWTs against the issuer's published keys (RFC 7519, RFC 7517).
type JWTAuthenticator struct {
	config JWTConfig
	cache  *jwk.Cache

	fetches singleflight.Group
	mu      sync.Mutex
	fetched time.Time // when an unknown key last caused a fetch
}

// NewJWTAuthenticator starts fetching the keys in the background until ctx ends; the issuer need not be up yet.
func NewJWTAuthenticator(ctx context.Context, c JWTConfig) (*JWTAuthenticator, error) {
	cache, err := jwk.NewCache(ctx, httprc.NewClient())
	if err != nil {
		return nil, fmt.Errorf("key cache: %w", err)
	}
	err = cache.Register(ctx, c.JWKSURL, jwk.WithConstantInterval(keysEvery), jwk.WithWaitReady(false))
	if err != nil {
		return nil, fmt.Errorf("key cache: %w", err)
	}
	return &JWTAuthenticator{config: c, cache: cache}, nil
}

// Authenticate implements Authenticator.
func (a *JWTAuthenticator) Authenticate(ctx context.Context, token string) (app.Actor, error) {
	kid, err := allowedHeader(token)
	if err != nil {
		return app.Actor{}, err
	}
	keys, err := a.keys(ctx, kid)
	if err != nil {
		return app.Actor{}, fmt.Errorf("%w: %w", app.ErrTryAgain, err)
	}
	// Issuers may publish keys without an algorithm: it then follows from the key's type and the allowed header.
	parsed, err := jwt.ParseString(token, jwt.WithKeySet(keys, jws.WithInferAlgorithmFromKey(true)), jwt.WithIssuer(a.config.Issuer),
		jwt.WithAudience(a.config.Audience), jwt.WithAcceptableSkew(clockSkew),
		jwt.WithRequiredClaim(jwt.ExpirationKey), jwt.WithRequiredClaim(jwt.SubjectKey))
	if err != nil {
		return app.Actor{}, fmt.Errorf("%w: %w", ErrUnauthenticated, err)
	}
	return actorFrom(parsed)
}

// keys returns the issuer's keys. A token of an unknown key makes it fetch them again, since the issuer may have
// rotated. Requests that come at once share one fetch, which goes on when one of them leaves.
func (a *JWTAuthenticator) keys(ctx context.Context, kid string) (jwk.Set, error) {
	set, err := a.cache.Lookup(ctx, a.config.JWKSURL)
	if err == nil {
		if _, known := set.LookupKeyID(kid); known {
			return set, nil
		}
	}
	fetched := a.fetches.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchMost)
		defer cancel()
		return a.fetch(ctx)
	})
	select {
	case r := <-fetched:
		set, _ = r.Val.(jwk.Set)
		return set, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fetch fetches the keys, unless that was tried a moment ago. Where the issuer does not answer, the keys that are there
// stay good.
func (a *JWTAuthenticator) fetch(ctx context.Context) (jwk.Set, error) {
	set, err := a.cache.Lookup(ctx, a.config.JWKSURL)
	if !a.mayFetch(err != nil) {
		return set, err
	}
	fresh, fetchErr := a.cache.Refresh(ctx, a.config.JWKSURL)
	if fetchErr != nil && err == nil {
		return set, nil
	}
	return fresh, fetchErr
}

func (a *JWTAuthenticator) mayFetch(haveNone bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	wait := keysAtMost
	if haveNone {
		wait = time.Second
	}
	if time.Since(a.fetched) < wait {
		return false
	}
	a.fetched = time.Now()
	return true
}

// allowedHeader refuses algorithms that are not on the list, before any key is looked up, and returns the key's id.
func allowedHeader(token string) (kid string, err error) {
	message, err := jws.ParseString(token)
	if err != nil || len(message.Signatures()) != 1 {
		return "", fmt.Errorf("%w: not one signature", ErrUnauthenticated)
	}
	header := message.Signatures()[0].ProtectedHeaders()
	algorithm, _ := header.Algorithm()
	if !slices.Contains([]jwa.SignatureAlgorithm{jwa.RS256(), jwa.PS256(), jwa.ES256(), jwa.EdDSA()}, algorithm) {
		return "", fmt.Errorf("%w: algorithm %s", ErrUnauthenticated, algorithm)
	}
	kid, _ = header.KeyID()
	return kid, nil
}

func actorFrom(t jwt.Token) (app.Actor, error) {
	subject, _ := t.Subject()
	tenant, scope := singleTenant, ""
	if t.Has("tenant") {
		if err := t.Get("tenant", &tenant); err != nil {
			return app.Actor{}, fmt.Errorf("%w: tenant: %w", ErrUnauthenticated, err)
		}
	}
	if t.Has("scope") {
		if err := t.Get("scope", &scope); err != nil {
			return app.Actor{}, fmt.Errorf("%w: scope: %w", ErrUnauthenticated, err)
		}
	}
	if err := errors.Join(storable(subject), storable(tenant)); err != nil {
		return app.Actor{}, fmt.Errorf("%w: %w", ErrUnauthenticated, err)
	}
	return app.Actor{Tenant: tenant, ID: subject, Scopes: strings.Fields(scope)}, nil
}

// storable refuses names that are empty, too long or not to be stored.
func storable(name string) error {
	if name == "" || len(name) > claimMost || !isText(name) {
		return errors.New("subject or tenant is not a name")
	}
	return nil
}
