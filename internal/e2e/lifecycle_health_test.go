package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/testkit"
)

// asks returns the status of a path of a process's ops listener; 0: nobody answers.
func asks(p *testkit.Running, path string) int {
	response, err := http.Get(p.Ops + path)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

func awaitReady(t *testing.T, p *testkit.Running, status int) {
	t.Helper()
	testkit.Eventually(t, "answer of /readyz", func() bool { return asks(p, "/readyz") == status })
}

// Ensure a process is ready while its database answers and has the schema that it needs, not ready otherwise, by itself
// ready again, and alive all the time.
func TestLifecycleReadiness(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"api", "worker"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			s := testkit.Start(t)
			database := networkTo(t, s.DatabaseURL)
			s.Env["DATABASE_URL"] = database.URL
			p := testkit.Process(t, command, s.Env)
			awaitReady(t, p, http.StatusOK)

			database.cut()
			awaitReady(t, p, http.StatusServiceUnavailable)
			require.Equal(t, http.StatusOK, asks(p, "/livez"))
			database.mend()
			awaitReady(t, p, http.StatusOK)

			database.silence()
			awaitReady(t, p, http.StatusServiceUnavailable)
			require.Equal(t, http.StatusOK, asks(p, "/livez"))
			database.recover()
			awaitReady(t, p, http.StatusOK)

			pending := s.Begin(t).Exec(`DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`)
			require.Equal(t, http.StatusOK, asks(p, "/readyz"))
			pending.Commit()
			require.Equal(t, http.StatusServiceUnavailable, asks(p, "/readyz"))
			require.Equal(t, http.StatusOK, asks(p, "/livez"))
			p.Stop()
		})
	}
}
