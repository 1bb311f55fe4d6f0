package sandbox

import (
	"fmt"
	"net/http"
	"time"

	"example.com/orders/internal/dev/issuer"
)

// openIssuer takes the signing key from the state, or makes one and puts it there. made tells which.
func openIssuer(cfg Config, st *state) (i *issuer.Issuer, made bool, err error) {
	if i, err = issuer.New(cfg.Issuer, cfg.Audience, st.signingKey, cfg.Now); err != nil {
		return nil, false, fmt.Errorf("sandbox: %w", err)
	}
	if st.signingKey != nil {
		return i, false, nil
	}
	st.signingKey, err = i.Key()
	return i, true, err
}

func (s *Sandbox) postToken(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Sub       string `json:"sub"`
		Tenant    string `json:"tenant"`
		Scope     string `json:"scope"`
		ExpiresIn *int64 `json:"expires_in"` // seconds
	}
	if err := readJSON(w, r, &asked); err != nil {
		writeProblem(w, err)
		return
	}
	life, err := tokenLife(asked.ExpiresIn)
	if err != nil {
		writeProblem(w, err)
		return
	}
	token, err := s.Token(asked.Sub, asked.Tenant, asked.Scope, life)
	if err != nil {
		writeProblem(w, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": token, "token_type": "Bearer", "expires_in": int64(life / time.Second),
	})
}

func tokenLife(seconds *int64) (time.Duration, error) {
	if seconds == nil {
		return issuer.DefaultLife, nil
	}
	limit := int64(issuer.MaxLife / time.Second)
	if *seconds > limit || *seconds < -limit {
		return 0, fmt.Errorf("expires_in must be within ±%d seconds", limit)
	}
	return time.Duration(*seconds) * time.Second, nil
}
