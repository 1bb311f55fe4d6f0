package browser

import (
	"encoding/json"
	"os"
	"sync"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// axe is the source of axe-core, which AXE names; empty: accessibility is not checked.
var axe = sync.OnceValue(func() string {
	raw, err := os.ReadFile(os.Getenv("AXE"))
	if err != nil {
		return ""
	}
	return string(raw)
})

// accessible fails with every violation of a rule of axe-core that the page shows as it is now.
func (p *page) accessible(state string) {
	p.t.Helper()
	if axe() == "" {
		return
	}
	eval[*struct{}](p, axe()+"; null")
	found := eval[string](p, `axe.run().then((r) => JSON.stringify(r.violations.map((v) => ({
		rule: v.id, help: v.help, at: v.nodes.slice(0, 3).map((n) => n.target.join(' ') + ': ' + n.failureSummary),
	}))))`)
	var violations []struct {
		Rule, Help string
		At         []string
	}
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		p.t.Fatal(err)
	}
	for _, v := range violations {
		p.t.Errorf("%s, %s: axe %s: %s\n%s", p.look.name, state, v.Rule, v.Help, lines(v.At))
	}
}

// Ensure that axe finds no violation in any state of the lab's page.
func TestAccessibility(t *testing.T) {
	if axe() == "" {
		t.Skip("AXE names no axe-core (scripts/axe.sh)")
	}
	failing := duplicates("1", 12)
	failing.State, failing.Checks[0].OK, failing.Checks[0].Why = "failed", false, "one was answered 409"
	for _, look := range looks {
		p := openLab(t, look, shop(failing).serve(t))
		p.accessible("before a run")
		p.runByKeyboard()
		p.accessible("after a run")
		p.click(".lane-toggle")
		p.accessible("with names")
		p.tabTo("[data-item]")
		p.press(kb.Enter)
		p.accessible("with an item open")
		p.shoot("accessible")
		p.press(kb.Escape)
		eval[*struct{}](p, `void (location.hash = '#scenario=crash')`)
		p.until(`document.querySelector('[name=crash_at]') !== null`)
		p.accessible("another scenario")
	}
}
