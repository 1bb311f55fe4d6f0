package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/lestrrat-go/httprc/v3"
	"github.com/lestrrat-go/httprc/v3/errsink"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
	"golang.org/x/sync/singleflight"

	"example.com/orders/internal/app"
)

const (
	// clockSkew is the tolerated difference to the issuer's clock.
	clockSkew = 30 * time.Second
	// refreshInterval is the time between regular fetches. unknownKeyInterval is the minimum time between fetches that
	// unknown key ids cause, and emptyInterval the minimum while no keys are known.
	refreshInterval    = 15 * time.Minute
	unknownKeyInterval = 10 * time.Second
	emptyInterval      = time.Second
	// fetchTimeout bounds one fetch and therefore a request's wait for it.
	fetchTimeout = 10 * time.Second
	// defaultTenant is the tenant of tokens without a tenant claim, in a single-tenant deployment.
	defaultTenant = "default"
)

// JWTConfig configures which tokens are accepted.
type JWTConfig struct {
	Issuer         string
	Audience       string
	JWKSURL        string
	TenantRequired bool // a token without tenant is refused
}

// JWTAuthenticator checks bearer JWTs against the issuer's published keys (RFC 7519, RFC 7517, RFC 8725).
type JWTAuthenticator struct {
	config     JWTConfig
	log        *slog.Logger
	now        func() time.Time
	controller httprc.Controller
	published  *httprc.ResourceBase[*keySet]
	verified   *tokenCache

	fetches singleflight.Group
	mu      sync.Mutex
	fetched time.Time // when an unknown key last caused a fetch
}

// NewJWTAuthenticator fetches the keys in the background until ctx ends. The issuer may be unreachable at start.
func NewJWTAuthenticator(ctx context.Context, c JWTConfig, o KeyObserver, log *slog.Logger) (*JWTAuthenticator, error) {
	published, err := httprc.NewResource[*keySet](c.JWKSURL, &keySetReader{observer: o, log: log},
		httprc.WithConstantInterval(refreshInterval), httprc.WithHTTPClient(keyClient()))
	if err != nil {
		return nil, fmt.Errorf("key set: %w", err)
	}
	a := &JWTAuthenticator{config: c, log: log, now: time.Now, published: published, verified: newTokenCache(maxVerified)}
	// One worker, because with overlapping fetches a late response could replace a newer one.
	client := httprc.NewClient(httprc.WithWorkers(1), httprc.WithErrorSink(errsink.NewFunc(a.logFailure)))
	if a.controller, err = client.Start(ctx); err != nil {
		return nil, fmt.Errorf("key set: %w", err)
	}
	if err := a.controller.Add(ctx, published, httprc.WithWaitReady(false)); err != nil {
		return nil, fmt.Errorf("key set: %w", err)
	}
	return a, nil
}

// keyClient follows no redirect: the keys are trusted because they come from the configured URL.
func keyClient() *http.Client {
	return &http.Client{
		Timeout:       fetchTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirects are not followed") },
	}
}

func (a *JWTAuthenticator) logFailure(ctx context.Context, err error) {
	a.log.WarnContext(ctx, "signing keys were not fetched", "error", err)
}

// verifiedToken is a verified token's actor and expiry.
type verifiedToken struct {
	actor      app.Actor
	notBefore  time.Time
	expires    time.Time
	generation uint64 // of the key set that it was verified with
}

func (v verifiedToken) validAt(now time.Time) bool {
	return !now.Before(v.notBefore) && now.Before(v.expires)
}

// Authenticate implements Authenticator.
func (a *JWTAuthenticator) Authenticate(ctx context.Context, token string) (app.Actor, error) {
	id := sha256.Sum256([]byte(token))
	if set := a.published.Resource(); set != nil {
		if known, ok := a.verified.get(id, set.generation); ok && known.validAt(a.now()) {
			return known.actor, nil
		}
	}
	parsed, err := parseToken(token)
	if err != nil {
		return app.Actor{}, fmt.Errorf("%w: %w", ErrUnauthenticated, err)
	}
	keys, err := a.keySet(ctx, parsed.header.KeyID.value)
	if err != nil {
		return app.Actor{}, fmt.Errorf("%w: %w", app.ErrTryAgain, err)
	}
	verified, err := a.verify(parsed, keys)
	if err != nil {
		return app.Actor{}, fmt.Errorf("%w: %w", ErrUnauthenticated, err)
	}
	if len(token) <= maxRemembered {
		a.verified.put(id, verified)
	}
	return verified.actor, nil
}

// verify checks the signature with the keys that have the token's kid and algorithm, and then the claims. If several
// keys share a kid, each is tried.
func (a *JWTAuthenticator) verify(t parsedToken, keys *keySet) (verifiedToken, error) {
	algorithm, _ := jwa.LookupSignatureAlgorithm(t.header.Algorithm.value)
	verifier, err := jws.VerifierFor(algorithm)
	if err != nil {
		return verifiedToken{}, err
	}
	for _, key := range keys.keys[t.header.KeyID.value] {
		if slices.Contains(key.algorithms, t.header.Algorithm.value) &&
			verifier.Verify(key.public, []byte(t.signed), t.signature) == nil {
			return a.accept(t.claims, keys.generation)
		}
	}
	return verifiedToken{}, errors.New("not signed by a published key")
}

// accept checks the claims of a token whose signature is valid.
func (a *JWTAuthenticator) accept(raw []byte, generation uint64) (verifiedToken, error) {
	claims, err := parseClaims(raw)
	if err != nil {
		return verifiedToken{}, err
	}
	v := verifiedToken{
		actor:      app.Actor{Tenant: defaultTenant, ID: claims.Subject.value, Scopes: claims.scopes()},
		notBefore:  claims.earliest().Add(-clockSkew),
		expires:    claims.Expires.value.Add(clockSkew), // without exp: the year 1
		generation: generation,
	}
	if claims.Tenant.present {
		v.actor.Tenant = claims.Tenant.value
	}
	switch {
	case claims.Issuer.value != a.config.Issuer:
		return v, errors.New("claims: another iss")
	case !slices.Contains(claims.Audience, a.config.Audience):
		return v, errors.New("claims: another aud")
	case a.config.TenantRequired && !claims.Tenant.present:
		return v, errors.New("claims: no tenant")
	case !v.validAt(a.now()):
		return v, errors.New("claims: expired, or not valid yet")
	}
	return v, nil
}

// keySet returns the issuer's keys. An unknown kid causes a new fetch, since the issuer may have rotated its keys.
// Concurrent requests share one fetch, which continues if one of them is cancelled.
func (a *JWTAuthenticator) keySet(ctx context.Context, keyID string) (*keySet, error) {
	if set := a.published.Resource(); set != nil && set.has(keyID) {
		return set, nil
	}
	fetched := a.fetches.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		defer cancel()
		return a.fetch(ctx)
	})
	select {
	case r := <-fetched:
		set, _ := r.Val.(*keySet)
		return set, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fetch fetches the keys, unless the last attempt was too recent. If the issuer does not answer, the known keys remain
// valid.
func (a *JWTAuthenticator) fetch(ctx context.Context) (*keySet, error) {
	set := a.published.Resource()
	if a.mayFetch(set == nil) {
		err := a.controller.Refresh(ctx, a.config.JWKSURL)
		if err != nil {
			a.logFailure(ctx, err)
		}
		set = a.published.Resource()
	}
	if set == nil {
		return nil, errors.New("the issuer's keys are not known yet")
	}
	return set, nil
}

func (a *JWTAuthenticator) mayFetch(haveNone bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	wait := unknownKeyInterval
	if haveNone {
		wait = emptyInterval
	}
	if time.Since(a.fetched) < wait {
		return false
	}
	a.fetched = time.Now()
	return true
}
