package httpapi

import "time"

// AMomentLater lets the authenticator fetch the keys again, as it would some seconds later.
func (a *JWTAuthenticator) AMomentLater() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fetched = time.Time{}
}
