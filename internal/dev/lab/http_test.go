package lab

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/scenario"
	"example.com/orders/internal/dev/stack"
)

// Ensure the lab answers this machine only: neither a foreign name that was made to point here, nor a page of another site.
func TestLabIsForThisMachine(t *testing.T) {
	t.Parallel()
	v := visit(t)
	for host, status := range map[string]int{
		"localhost:8082": http.StatusOK, "127.0.0.1:8082": http.StatusOK, "[::1]:8082": http.StatusOK, "[::1]": http.StatusOK,
		"evil.example": http.StatusForbidden, "evil.example:8082": http.StatusForbidden, "10.0.0.1": http.StatusForbidden,
		"localhost.evil.example": http.StatusForbidden, "[": http.StatusForbidden,
	} {
		response, _ := v.ask(http.MethodGet, "/lab/scenarios", "", "Host", host)
		require.Equal(t, status, response.StatusCode, host)
		require.Equal(t, "default-src 'self'", response.Header.Get("Content-Security-Policy"))
		require.Empty(t, response.Header.Get("Access-Control-Allow-Origin"))
	}
	response, _ := v.ask(http.MethodPost, "/lab/runs", `{"scenario":"place-order"}`, "Origin", "http://evil.example")
	require.Equal(t, http.StatusForbidden, response.StatusCode)
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0"} {
		_, err := Serve(t.Context(), addr, stack.ThrowawayOptions{}, "", nil)
		require.ErrorContains(t, err, "LAB_ADDR", addr)
	}
}

// Ensure a run that cannot be is refused with Problem Details, and a second one while one is under way; and that the lab can
// be stopped then.
func TestRunsThatCannotBe(t *testing.T) {
	t.Parallel()
	v := visit(t)
	for body, status := range map[string]int{
		`{"scenario":"none"}`: http.StatusNotFound, `{"scenario":"duplicates-at-once","knobs":{"duplicates":51}}`: http.StatusBadRequest,
		`{"scenario":"place-order","knobs":{"duplicates":5}}`: http.StatusBadRequest, `{"what":1}`: http.StatusBadRequest,
		`[`: http.StatusBadRequest, ``: http.StatusBadRequest,
	} {
		response, answer := v.ask(http.MethodPost, "/lab/runs", body)
		require.Equal(t, status, response.StatusCode, body)
		require.Equal(t, "application/problem+json", response.Header.Get("Content-Type"))
		require.Contains(t, answer, `"detail"`)
	}
	response, _ := v.ask(http.MethodGet, "/lab/runs/7", "")
	require.Equal(t, http.StatusNotFound, response.StatusCode)

	run := v.start(killed, nil)
	response, _ = v.ask(http.MethodPost, "/lab/runs", `{"scenario":"place-order"}`)
	require.Equal(t, http.StatusConflict, response.StatusCode)
	_, answer := v.ask(http.MethodGet, "/lab/runs/"+run, "")
	var view runView
	require.NoError(t, json.Unmarshal([]byte(answer), &view))
	require.Equal(t, running, view.State)
}

// Ensure every scenario is told with its rules in words, and with links that lead to the line in the source.
func TestScenariosAreListed(t *testing.T) {
	t.Parallel()
	v := visit(t)
	_, answer := v.ask(http.MethodGet, "/lab/scenarios", "")
	var list struct{ Scenarios []scenarioView }
	require.NoError(t, json.Unmarshal([]byte(answer), &list))
	require.Len(t, list.Scenarios, len(scenario.All()))
	for _, s := range list.Scenarios {
		for _, rule := range s.Rules {
			require.NotEmpty(t, rule.Text, rule.ID)
		}
		for _, link := range s.Links {
			require.Regexp(t, `^/lab/source/[a-z0-9_/.-]+#L[1-9][0-9]*$`, link.Href)
			response, text := v.ask(http.MethodGet, link.Href, "")
			require.Equal(t, http.StatusOK, response.StatusCode, link.Href)
			require.Contains(t, text, `<span id="L1">`)
		}
	}
}

// Ensure only the source of the checkout is shown, whatever the path is made to look like.
func TestOnlySourceIsShown(t *testing.T) {
	t.Parallel()
	v := visit(t)
	for _, path := range []string{
		"go.mod", ".golangci.yml", ".git/config", "%2e%2e/%2e%2e/etc/passwd", "..%2fsecret.yaml", "internal/app/..%2f..%2f..%2fx.go",
		"%2Fetc%2Fx.yaml", "internal", "internal/none.go", ".data/x.yaml",
	} {
		response, _ := v.ask(http.MethodGet, "/lab/source/"+path, "")
		require.Equal(t, http.StatusNotFound, response.StatusCode, path)
	}
}
