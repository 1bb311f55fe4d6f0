package httpapi

import "time"

// Bounds of tokens and key sets, in bytes and in tokens.
const (
	MaxToken      = maxToken
	MaxRemembered = maxRemembered
	MaxVerified   = maxVerified
	MaxKeySet     = maxKeySet
)

// AMomentLater lets the authenticator fetch the keys again, as it would some seconds later.
func (a *JWTAuthenticator) AMomentLater() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fetched = time.Time{}
}

// SetClock replaces the clock, before the first use.
func (a *JWTAuthenticator) SetClock(now func() time.Time) { a.now = now }

// Remembered is how many verified tokens are remembered.
func (a *JWTAuthenticator) Remembered() int {
	a.verified.mu.Lock()
	defer a.verified.mu.Unlock()
	return len(a.verified.tokens)
}

// Remember makes the authenticator remember at most so many verified tokens, before the first use.
func (a *JWTAuthenticator) Remember(tokens int) { a.verified = newTokenCache(tokens) }
