package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"
)

// state is all that survives a restart. Intents and refunds are kept in the shape in which Stripe shows them.
type state struct {
	Intents    []*intent           `json:"payment_intents"`
	Refunds    []*refund           `json:"refunds"`
	Keys       map[string]savedKey `json:"keys"`
	SigningKey json.RawMessage     `json:"signing_key"`
}

// loadState reads the state file. No path and no file both mean an empty state; a file that is not ours is an error,
// never overwritten.
func loadState(path string) (*state, error) {
	st := &state{Keys: map[string]savedKey{}}
	if path == "" {
		return st, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox: SANDBOX_STATE: %w", err)
	}
	if err := json.Unmarshal(data, st); err != nil {
		return nil, fmt.Errorf("sandbox: SANDBOX_STATE: %s is not a state file: %w", path, err)
	}
	return st, nil
}

// save replaces the file as a whole: whoever reads it, after a crash too, finds the old state or the new one.
// Only the owner may read it, for it holds the signing key.
func (st *state) save(path string) error {
	if path == "" {
		return nil
	}
	data, err := json.Marshal(st)
	if err != nil {
		return fmt.Errorf("sandbox: encode state: %w", err)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // created with mode 0600
	if err != nil {
		return fmt.Errorf("sandbox: SANDBOX_STATE: %w", err)
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("sandbox: SANDBOX_STATE: %w", errors.Join(err, os.Remove(temp.Name())))
	}
	return nil
}

func (st *state) dropExpired(now time.Time) {
	maps.DeleteFunc(st.Keys, func(_ string, k savedKey) bool { return k.expired(now) })
}

func (st *state) intent(id string) *intent {
	for _, pi := range st.Intents {
		if pi.ID == id {
			return pi
		}
	}
	return nil
}

func (st *state) refund(id string) *refund {
	for _, r := range st.Refunds {
		if r.ID == id {
			return r
		}
	}
	return nil
}
