package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/infra/config"
)

// exampleEnv is the variables of .env.example.
func exampleEnv(t testing.TB) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^#?([A-Z_]+)=(.*)$`).FindAllStringSubmatch(read(t, "../.env.example"), -1) {
		require.NotContains(t, found, m[1])
		found[m[1]] = m[2]
	}
	return found
}

// Ensure every process starts with .env.example, that it has nothing but settings, each setting without a default among
// them, and that the other ones have their defaults.
func TestExampleEnvironmentStartsEveryProcess(t *testing.T) {
	t.Parallel()
	env, page := exampleEnv(t), read(t, "settings/README.md")
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	_, apiErr := config.LoadAPI(lookup)
	_, workerErr := config.LoadWorker(lookup)
	_, migrateErr := config.LoadMigrate(lookup)
	require.NoError(t, apiErr)
	require.NoError(t, workerErr)
	require.NoError(t, migrateErr)
	for name := range minimum() {
		require.Contains(t, env, name, "a required setting")
	}
	row := regexp.MustCompile("(?m)^\\| \\[?`([A-Z_]+)`[^|]* \\| `([^`]+)` \\|")
	defaults := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(page, -1) {
		defaults[m[1]] = m[2]
	}
	for name, value := range env {
		require.Contains(t, page, "`"+name+"`", "%s is no setting", name)
		if defaults[name] != "" && name != "MIGRATE_DATABASE_URL" {
			require.Equal(t, defaults[name], value, "%s is not its default", name)
		}
		if strings.HasPrefix(value, "sk_") || strings.HasPrefix(value, "whsec_") || strings.Contains(value, "postgres://") {
			require.Contains(t, value, "REPLACE", "%s looks like a real secret", name)
		}
	}
}
