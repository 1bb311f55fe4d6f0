package ops

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

type panel struct {
	Title   string `json:"title"`
	Type    string `json:"type"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

func panels(t *testing.T) []panel {
	t.Helper()
	text, err := os.ReadFile("grafana/orders.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []panel `json:"panels"`
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	return dashboard.Panels
}

// Ensure every panel of the dashboard shows something when the service has gone through the story of the readings, and
// names only what the service shows.
func TestEveryPanelShowsSomething(t *testing.T) {
	t.Parallel()
	w := readWorld(t)
	exprs := 0
	for _, p := range panels(t) {
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
			exprs++
			requireKnown(t, w, expr)
			if len(w.ask(t, expr)) == 0 {
				t.Errorf("%s: %s shows nothing", p.Title, expr)
			}
		}
	}
	if exprs < 20 {
		t.Errorf("%d expressions", exprs)
	}
}

// Ensure the dashboard shows every metric of the service.
func TestTheDashboardShowsEveryMetric(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			all.WriteString(target.Expr + "\n")
		}
	}
	for name := range readWorld(t).names() {
		family := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(name, "orders_") && !strings.Contains(all.String(), family) {
			t.Errorf("no panel shows %s", family)
		}
	}
}
