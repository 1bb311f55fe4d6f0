package deploy

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

type service struct {
	Image       string
	User        string
	Restart     string
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	CapAdd      []string `yaml:"cap_add"`
	Security    []string `yaml:"security_opt"`
	Privileged  bool
	Ports       []string
	Environment map[string]string
	Healthcheck struct{ Test []string }
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
}

func services(t testing.TB) map[string]service {
	t.Helper()
	raw, err := os.ReadFile("../docker-compose.yml")
	require.NoError(t, err)
	var compose struct{ Services map[string]service }
	require.NoError(t, yaml.Unmarshal(raw, &compose))
	require.NotEmpty(t, compose.Services)
	return compose.Services
}

// Ensure every container is read-only, has no capabilities, cannot gain privileges, publishes ports on the loopback
// interface only, and has a health check if it keeps running.
func TestContainersAreHardened(t *testing.T) {
	t.Parallel()
	for name, s := range services(t) {
		require.True(t, s.ReadOnly, name)
		require.Equal(t, []string{"ALL"}, s.CapDrop, name)
		require.Empty(t, s.CapAdd, name)
		require.Equal(t, []string{"no-new-privileges:true"}, s.Security, name)
		require.False(t, s.Privileged, name)
		for _, port := range s.Ports {
			require.True(t, strings.HasPrefix(port, "127.0.0.1:"), "%s: %s", name, port)
		}
		if s.Restart != "" {
			require.NotEmpty(t, s.Healthcheck.Test, name)
		}
	}
}

// Ensure only the migrations connect as the owner, and the other services start after the migrations.
func TestOnlyMigrationsConnectAsTheOwner(t *testing.T) {
	t.Parallel()
	all := services(t)
	for name, s := range all {
		for variable, value := range s.Environment {
			if name != "migrate" && name != "postgres" {
				require.NotContains(t, value, "orders_owner", "%s of %s", variable, name)
				require.NotContains(t, value, "//postgres:", "%s of %s", variable, name)
			}
		}
	}
	require.Contains(t, all["migrate"].Environment["MIGRATE_DATABASE_URL"], "//orders_owner:")
	for _, name := range []string{"api", "worker", "seed"} {
		require.Contains(t, all[name].Environment["DATABASE_URL"], "//orders_service:")
		require.Equal(t, "service_completed_successfully", all[name].DependsOn["migrate"].Condition, name)
	}
}

// Ensure compose sets only variables that docs/settings lists.
func TestComposeKnowsTheSettings(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/settings/README.md")
	require.NoError(t, err)
	for name, s := range services(t) {
		if name == "postgres" {
			continue
		}
		for variable := range s.Environment {
			require.Contains(t, string(page), "`"+variable+"`", name)
		}
	}
}

// Ensure the images contain no shell, run as a numeric user other than root, and run no command in their last stage.
func TestImagesHaveNoShell(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../Dockerfile")
	require.NoError(t, err)
	stages := regexp.MustCompile(`(?m)^FROM `).Split(string(raw), -1)[2:] // after the comment and the build
	require.True(t, strings.HasPrefix(stages[0], "scratch AS base\n"), stages[0])
	require.Contains(t, stages[0], "\nUSER 65532:65532\n")
	for _, stage := range stages[1:] {
		require.True(t, strings.HasPrefix(stage, "base AS "), stage)
		require.NotContains(t, stage, "\nRUN ")
		require.NotContains(t, stage, "\nUSER ")
	}
}
