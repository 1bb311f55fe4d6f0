package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func environment(env map[string]string) Lookup {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

// Ensure a start tells of every variable that is missing or wrong, in one line, each once.
func TestAllMistakesAreToldAtOnce(t *testing.T) {
	t.Parallel()
	_, err := LoadAPI(environment(map[string]string{"DB_MAX_CONNS": "many", "REQUEST_TIMEOUT": "soon"}))
	require.Error(t, err)
	require.NotContains(t, err.Error(), "\n")
	for _, name := range []string{
		"DATABASE_URL is not set", "AUTH_ISSUER is not set", "AUTH_AUDIENCE is not set", "AUTH_JWKS_URL is not set",
		"DB_MAX_CONNS must be", "REQUEST_TIMEOUT must be",
	} {
		require.Equal(t, 1, strings.Count(err.Error(), name), "%s in: %s", name, err)
	}

	_, err = LoadWorker(environment(nil))
	require.EqualError(t, err, "DATABASE_URL is not set; STRIPE_API_KEY is not set")
}

// Ensure a switch takes its words and no other.
func TestSwitch(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"1": true, "true": true, "0": false, "false": false, "": false} {
		on, err := Switch(environment(map[string]string{"EPHEMERAL": value}), "EPHEMERAL")
		require.NoError(t, err)
		require.Equal(t, want, on, value)
	}
	for _, value := range []string{"yes", "no", "on", "TRUE", " 1"} {
		_, err := Switch(environment(map[string]string{"EPHEMERAL": value}), "EPHEMERAL")
		require.EqualError(t, err, `EPHEMERAL must be 1, true, 0 or false; it is "`+value+`"`)
	}
}
