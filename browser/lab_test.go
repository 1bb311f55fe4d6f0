package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// openLab opens a lab, and waits until it lists its scenarios.
func openLab(t *testing.T, look look, url string, allowed ...string) *page {
	t.Helper()
	p := open(t, look, url, allowed...)
	p.until(`document.querySelector('#list a') !== null`)
	return p
}

// runByKeyboard presses the Run button and waits for the run to end.
func (p *page) runByKeyboard() {
	p.t.Helper()
	p.tabTo("#run")
	p.press(kb.Enter)
	p.until(`['passed', 'failed'].includes(document.querySelector('#state').className)`)
}

// focused is the name of the item in focus.
func (p *page) focused() string {
	p.t.Helper()
	return eval[string](p, `document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent`)
}

// Ensure that a run of two thousand items is drawn whole, that all of it is one stop of the Tab key, and that its page
// is as wide as the window.
func TestTwoThousandItems(t *testing.T) {
	r := duplicates("1", 250)
	for _, look := range looks {
		p := openLab(t, look, shop(r).serve(t))
		p.runByKeyboard()
		p.until(fmt.Sprintf(`document.querySelectorAll('.bar').length === %d`, len(r.Items)))
		if stops := eval[int](p, `document.querySelectorAll('.bar[tabindex="0"]').length`); stops != 1 {
			t.Errorf("%d of the items are in the tab order", stops)
		}
		p.staysInItsWidth()
		took := eval[float64](p, `(async () => {
			const { Timeline } = await import('/lab/timeline.js')
			const run = await (await fetch('/lab/runs/1')).json()
			const timeline = new Timeline(document.querySelector('#plot'), { open() {}, hint() {} })
			const from = performance.now()
			timeline.show(run)
			document.body.offsetHeight
			return performance.now() - from
		})()`)
		t.Logf("%s: %d items drawn in %.0f ms", look.name, len(r.Items), took)
	}
}

// Ensure that a run that a lab has recorded is drawn whole: see TestRecordedRun of internal/dev/lab.
func TestRecordedRun(t *testing.T) {
	raw, err := os.ReadFile("../internal/dev/lab/testdata/run.json")
	if err != nil {
		t.Fatal(err)
	}
	var r labRun
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	r.Scenario = "duplicates"
	lab := shop(r)
	for _, look := range append(slices.Clone(looks), look{"small phone", 360, 640, "light", true}, look{"tablet", 900, 700, "light", true}) {
		p := openLab(t, look, lab.serve(t)+"#scenario="+r.Scenario+"&run="+r.ID)
		p.until(fmt.Sprintf(`document.querySelectorAll('.bar').length === %d`, len(r.Items)))
		if arrows := eval[int](p, `document.querySelectorAll('.arrow[d]').length`); arrows < 20 {
			t.Errorf("%s: only %d arrows are drawn", look.name, arrows)
		}
		p.staysInItsWidth()
		p.shoot("recorded")
	}
}

// Ensure that the arrow keys move along a lane and between lanes, that Enter opens an item with its bytes, and that Escape
// closes it and leaves the focus where it was.
func TestKeyboard(t *testing.T) {
	p := openLab(t, looks[0], shop(duplicates("1", 3)).serve(t))
	p.runByKeyboard()
	p.tabTo("[data-item]")
	for _, move := range []struct{ key, focus string }{
		{kb.ArrowRight, "alice 2: POST /v1/orders, Clients to API, at 941 µs, took 14.2 ms"},
		{kb.ArrowDown, "place-order, API, at 1.24 ms, took 13.5 ms"}, // what it caused
		{kb.End, "place-order, API, at 1.28 ms, took 13.7 ms"},
		{kb.Home, "place-order, API, at 1.20 ms, took 13.3 ms"},
		{kb.ArrowLeft, "place-order, API, at 1.20 ms, took 13.3 ms"}, // it is the first
		{kb.ArrowUp, "alice 1: POST /v1/orders, Clients to API, at 900 µs, took 14.0 ms"},
	} {
		p.press(move.key)
		if got := p.focused(); got != move.focus {
			t.Errorf("the focus is on %q, not on %q", got, move.focus)
		}
	}
	p.press(kb.Enter)
	p.until(`!document.querySelector('#item').hidden`)
	for _, want := range []string{"Idempotency-Key: cart-3", `{"id":"0199","status":"open"}`, "alice 1"} {
		if shown := p.text("#item"); !strings.Contains(shown, want) {
			t.Errorf("the item does not show %q:\n%s", want, shown)
		}
	}
	p.tabTo(`[data-do="next"]`)
	p.press(kb.Enter, kb.Enter, kb.Escape)
	p.until(`document.querySelector('#item').hidden`)
	if got, want := p.focused(), "alice 3: POST /v1/orders, Clients to API, at 982 µs, took 14.4 ms"; got != want {
		t.Errorf("Escape left the focus on %q, not on %q", got, want)
	}
}

// Ensure that a time in which nothing happens is drawn short, and in full when the reader wants that.
func TestIdleTime(t *testing.T) {
	p := openLab(t, looks[0], shop(duplicates("1", 3)).serve(t))
	p.runByKeyboard()
	const work = `[...document.querySelectorAll('.lane-worker .bar')].find((b) => b.textContent.includes('charge-order')).getBoundingClientRect().width`
	if got := p.text("#plot .axis"); !strings.Contains(got, "5.19 s") {
		t.Errorf("the axis does not tell how long the idle time is: %q", got)
	}
	short := eval[float64](p, work)
	p.click("#shorten")
	if long := eval[float64](p, work); short < 50 || long > 5 {
		t.Errorf("8 ms of work are %.0f pixels wide beside 5 s that are drawn short, and %.0f beside 5 s in full", short, long)
	}
	before := eval[float64](p, `document.querySelector('.canvas').getBoundingClientRect().width`)
	p.tabTo("[data-item]")
	p.press("+", "+")
	if after := eval[float64](p, `document.querySelector('.canvas').getBoundingClientRect().width`); after < 2*before {
		t.Errorf("zooming in twice made %.0f pixels to %.0f", before, after)
	}
	p.staysInItsWidth()
	p.press("0")
	if after := eval[float64](p, `document.querySelector('.canvas').getBoundingClientRect().width`); after > before {
		t.Errorf("0 did not bring the time line back to its %.0f pixels: %.0f", before, after)
	}
}

// Ensure that the text of a run is shown as text, wherever it stands, and that a link that is no page is left out.
func TestTextIsNotMarkup(t *testing.T) {
	r := duplicates("1", 2)
	for i := range r.Items {
		r.Items[i].Name, r.Items[i].Group, r.Items[i].Request, r.Items[i].Response = hostile, hostile, hostile, hostile
		r.Items[i].Detail = []detail{{hostile, hostile}}
	}
	r.Checks = []check{{hostile, false, hostile}}
	r.Steps = []step{{0, hostile}}
	for i := range r.Lanes {
		r.Lanes[i].Label = hostile
	}
	lab := shop(r)
	lab.scenarios = func() (int, any) {
		return http.StatusOK, map[string]any{"scenarios": []scenario{{
			ID: "duplicates", Title: hostile, Promise: hostile, Rules: []rule{{hostile, hostile}},
			Links: []link{{hostile, "javascript:alert(1)"}, {hostile, "/lab/source/" + hostile}},
			Knobs: []knob{{Name: "n", Label: hostile, Min: 1, Max: 2, Default: 1, Choices: []choice{{1, hostile}}}},
		}}}
	}
	for _, look := range looks {
		p := openLab(t, look, lab.serve(t))
		p.runByKeyboard()
		p.tabTo("[data-item]")
		p.press(kb.Enter)
		p.until(`!document.querySelector('#item').hidden`)
		if n := eval[int](p, `document.querySelectorAll('img').length`); n != 0 {
			t.Errorf("%s: %d texts became elements", look.name, n)
		}
		if n := eval[int](p, `document.querySelectorAll('#links a').length`); n != 1 {
			t.Errorf("%s: %d links are shown, of which one is a page", look.name, n)
		}
		p.staysInItsWidth()
		p.shoot("hostile")
	}
}

// Ensure that the page says what went wrong, and that Run or Try again works once it is over.
func TestErrors(t *testing.T) {
	var start, get atomic.Value // func() (int, any)
	lab := shop(duplicates("1", 2))
	fine, show := lab.start, lab.run
	start.Store(func() (int, any) { return problem(http.StatusConflict, "another run is under way") })
	get.Store(func() (int, any) { return show("1") })
	lab.start = func() (int, any) { return start.Load().(func() (int, any))() }
	lab.run = func(string) (int, any) { return get.Load().(func() (int, any))() }
	p := openLab(t, looks[0], lab.serve(t), "response ", "the server responded with a status")
	state := func(want string) {
		t.Helper()
		p.until(fmt.Sprintf(`document.querySelector('#state').textContent.includes(%q)`, want))
	}
	p.tabTo("#run")
	p.press(kb.Enter)
	state("Another run is under way")
	start.Store(func() (int, any) { return problem(http.StatusBadRequest, "duplicates is 60, and at most 50") })
	p.press(kb.Enter)
	state("duplicates is 60, and at most 50")
	start.Store(fine)
	get.Store(func() (int, any) { return http.StatusBadGateway, "" })
	p.tabTo("#again")
	p.press(kb.Enter)
	state("The lab answered 502")
	get.Store(func() (int, any) { return show("1") })
	p.tabTo("#again")
	p.press(kb.Enter)
	state("Passed 2 checks")
	get.Store(func() (int, any) { return problem(http.StatusNotFound, "there is no such run") })
	eval[*struct{}](p, `void (location.hash = '#scenario=crash&run=77')`)
	state("no longer kept")
}

// Ensure that the page says that the lab does not answer, and goes on with its run when it does again.
func TestLabGone(t *testing.T) {
	var gone atomic.Bool
	lab := shop(duplicates("1", 2))
	lab.gone = gone.Load
	p := openLab(t, looks[0], lab.serve(t), "request failed: net::ERR_EMPTY_RESPONSE", "Failed to load resource")
	gone.Store(true)
	p.tabTo("#run")
	p.press(kb.Enter)
	p.until(`document.querySelector('#state').textContent.startsWith('The lab does not answer')`)
	gone.Store(false)
	p.tabTo("#again")
	p.press(kb.Enter)
	p.until(`document.querySelector('#state').textContent.startsWith('Passed')`)
}

// Ensure that an address names a scenario, its knobs and its run, so that a guide can point at them.
func TestAddress(t *testing.T) {
	url := shop(duplicates("1", 2)).serve(t)
	p := openLab(t, looks[0], url+"#scenario=crash&crash_at=2")
	p.until(`document.querySelector('#title').textContent === 'Worker killed in mid-charge'`)
	if at := eval[string](p, `document.querySelector('[name=crash_at]').value`); at != "2" {
		t.Errorf("the knob is at %q", at)
	}
	eval[*struct{}](p, `void (location.hash = '#scenario=duplicates&duplicates=7&run=1')`)
	p.until(`document.querySelector('#state').textContent.startsWith('Passed')`)
	if got := eval[string](p, `document.title + document.querySelector('[name=duplicates]').value`); got != "Duplicates at once · Orders lab7" {
		t.Errorf("the page is %q", got)
	}
	p.runByKeyboard()
	if got := eval[string](p, `location.hash`); got != "#scenario=duplicates&duplicates=7&run=1" {
		t.Errorf("the address of the run is %q", got)
	}
}

// Ensure that the list of scenarios is folded on a phone once one is chosen, and stays open on a wide window.
func TestListFolds(t *testing.T) {
	url := shop(duplicates("1", 2)).serve(t)
	for _, look := range []look{looks[0], looks[2]} {
		p := openLab(t, look, url)
		const open = `document.querySelector('#scenarios details').open`
		if got := eval[bool](p, open); got == look.touch {
			t.Errorf("%s: the list is open: %t", look.name, got)
		}
		if look.touch {
			p.tabTo("#scenarios summary")
			p.press(kb.Enter)
			p.until(open)
			p.shoot("list")
		}
		p.tabTo("#list li:last-child a")
		p.press(kb.Enter)
		p.until(`document.querySelector('[name=crash_at]') !== null`)
		if got := eval[bool](p, open); got == look.touch {
			t.Errorf("%s: with a scenario chosen, the list is open: %t", look.name, got)
		}
	}
}

// Ensure that a run that goes on is drawn as it grows, and that neither the focus nor the page moves meanwhile.
func TestRunGoesOn(t *testing.T) {
	var seen atomic.Int32
	whole := duplicates("1", 10)
	lab := shop(whole)
	lab.run = func(string) (int, any) {
		r := whole
		if n := int(seen.Load()) * 20; n < len(whole.Items) {
			r.State, r.Items, r.Checks, r.Steps, r.TookUS = "running", whole.Items[:n], nil, whole.Steps[:1], n*1000
		}
		return http.StatusOK, r
	}
	p := openLab(t, looks[0], lab.serve(t))
	const places = `JSON.stringify(['#run', '#timeline', '#side', '#plot'].map((s) => document.querySelector(s).getBoundingClientRect()))`
	before := eval[string](p, places)
	p.tabTo("#run")
	p.press(kb.Enter)
	seen.Store(1)
	p.until(`document.querySelectorAll('.bar').length === 20`)
	if got := p.text("#state"); !strings.HasPrefix(got, "Running") {
		t.Errorf("the state of a run that goes on is %q", got)
	}
	p.tabTo("[data-item]")
	p.press(kb.ArrowRight)
	focus := p.focused()
	seen.Store(2)
	p.until(`document.querySelectorAll('.bar').length === 40`)
	seen.Store(100)
	p.until(`document.querySelector('#state').className === 'passed'`)
	if now := p.focused(); now != focus {
		t.Errorf("the focus went from %q to %q", focus, now)
	}
	if after := eval[string](p, places); after != before {
		t.Errorf("the page moved:\n%s\n%s", before, after)
	}
}
