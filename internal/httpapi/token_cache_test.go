package httpapi_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
	"example.com/orders/internal/httpapi"
)

// clock is a clock that a test sets.
type clock struct{ offset atomic.Int64 }

func (c *clock) Now() time.Time          { return time.Now().Add(time.Duration(c.offset.Load())) }
func (c *clock) advance(d time.Duration) { c.offset.Add(int64(d)) }

// Ensure a verified token is remembered, and is refused once it has expired.
func TestARememberedTokenExpires(t *testing.T) {
	t.Parallel()
	k, c := ecKey(t, "k1"), &clock{}
	a := newIssuer(t, k).authenticator()
	a.SetClock(c.Now)
	token := sign(t, claims(map[string]any{"exp": time.Now().Add(time.Minute).Unix()}), jwa.ES256(), k)
	first, err := a.Authenticate(t.Context(), token)
	require.NoError(t, err)
	for range 3 {
		again, err := a.Authenticate(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
	require.Equal(t, 1, a.Remembered())
	c.advance(2 * time.Minute)
	_, err = a.Authenticate(t.Context(), token)
	require.ErrorIs(t, err, httpapi.ErrUnauthenticated)
}

// Ensure a token that is not valid yet becomes valid in time, and that a remembered one is not valid before its time
// where the clock is set back.
func TestARememberedTokenIsNotValidBeforeItsTime(t *testing.T) {
	t.Parallel()
	k := ecKey(t, "k1")
	for _, claim := range []string{"nbf", "iat"} {
		c := &clock{}
		a := newIssuer(t, k).authenticator()
		a.SetClock(c.Now)
		token := sign(t, claims(map[string]any{claim: time.Now().Add(10 * time.Minute).Unix()}), jwa.ES256(), k)
		for _, step := range []struct {
			advance time.Duration
			valid   bool
		}{{0, false}, {9 * time.Minute, false}, {2 * time.Minute, true}, {0, true}, {-5 * time.Minute, false}, {5 * time.Minute, true}} {
			c.advance(step.advance)
			_, err := a.Authenticate(t.Context(), token)
			require.Equal(t, step.valid, err == nil, "%s, %v: %v", claim, step, err)
		}
	}
}

// Ensure a token is remembered only for as long as the key set is the one that it was verified with.
func TestAWithdrawnKeyTakesItsTokensAlong(t *testing.T) {
	t.Parallel()
	first, second := ecKey(t, "k1"), ecKey(t, "k2")
	i := newIssuer(t, first, second)
	a := i.authenticator()
	ofFirst, ofSecond := sign(t, claims(nil), jwa.ES256(), first), sign(t, claims(nil), jwa.ES256(), second)
	unknown := sign(t, claims(nil), jwa.ES256(), ecKey(t, "k3"))
	for _, token := range []string{ofFirst, ofSecond} {
		_, err := a.Authenticate(t.Context(), token)
		require.NoError(t, err)
	}
	i.publish(second)
	a.AMomentLater()
	_, err := a.Authenticate(t.Context(), unknown) // makes it fetch
	require.ErrorIs(t, err, httpapi.ErrUnauthenticated)
	_, err = a.Authenticate(t.Context(), ofFirst)
	require.ErrorIs(t, err, httpapi.ErrUnauthenticated)
	_, err = a.Authenticate(t.Context(), ofSecond)
	require.NoError(t, err)
}

// Ensure the key behind an id can be replaced: a token of the one before it is refused, remembered or not.
func TestAReplacedKeyTakesItsTokensAlong(t *testing.T) {
	t.Parallel()
	first, second := ecKey(t, "k1"), ecKey(t, "k1")
	i := newIssuer(t, first)
	a := i.authenticator()
	token := sign(t, claims(nil), jwa.ES256(), first)
	_, err := a.Authenticate(t.Context(), token)
	require.NoError(t, err)
	i.publish(second)
	a.AMomentLater()
	_, err = a.Authenticate(t.Context(), sign(t, claims(nil), jwa.ES256(), ecKey(t, "k9"))) // makes it fetch
	require.ErrorIs(t, err, httpapi.ErrUnauthenticated)
	_, err = a.Authenticate(t.Context(), token)
	require.ErrorIs(t, err, httpapi.ErrUnauthenticated)
}

// Ensure what is refused is not remembered, neither is a token that is large, and that the oldest makes room where there
// is no more: all of them stay valid.
func TestRememberedTokensAreBounded(t *testing.T) {
	t.Parallel()
	s := newRawSigner(t)
	s.auth.Remember(4)
	require.Nil(t, s.actor(t, s.token(goodHeader, claimsWith("aud", `"x"`))))
	require.Nil(t, s.actor(t, "x"))
	require.Zero(t, s.auth.Remembered())
	long := fmt.Sprintf(`"%0*d"`, httpapi.MaxRemembered, 1)
	require.NotNil(t, s.actor(t, s.token(goodHeader, claimsWith("x", long))))
	require.Zero(t, s.auth.Remembered())
	for range 2 {
		for n := range 20 {
			name := fmt.Sprintf(`"u%d"`, n)
			actor := s.actor(t, s.token(goodHeader, claimsWith("sub", name)))
			require.NotNil(t, actor)
			require.Equal(t, name, `"`+actor.ID+`"`)
			require.LessOrEqual(t, s.auth.Remembered(), 4)
		}
	}
	require.Equal(t, 4, s.auth.Remembered())
}

// Ensure requests at once get each its own token's actor, while tokens come and go and keys change.
func TestRememberedTokensAtOnce(t *testing.T) {
	t.Parallel()
	s := newRawSigner(t)
	s.auth.Remember(3)
	done := testkit.Together(8, func(worker int) error {
		for n := range 200 {
			name := fmt.Sprintf("u%d", (n+worker)%7)
			actor, err := s.auth.Authenticate(t.Context(), s.token(goodHeader, claimsWith("sub", `"`+name+`"`)))
			if err != nil || actor.ID != name {
				return fmt.Errorf("%s is %v: %w", name, actor, err)
			}
		}
		return nil
	})
	for _, err := range testkit.Receive(done, 8) {
		require.NoError(t, err)
	}
}
