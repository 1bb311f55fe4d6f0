package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// limit bounds every wait of these tests. It is long because a busy machine needs most of it.
const limit = 90 * time.Second

// look is a window size with a colour scheme.
type look struct {
	name          string
	width, height int64
	scheme        string
	touch         bool
}

var looks = []look{
	{"desktop light", 1280, 800, "light", false},
	{"desktop dark", 1280, 800, "dark", false},
	{"phone light", 375, 740, "light", true},
	{"phone dark", 375, 740, "dark", true},
}

// page is one tab, with the errors that occurred in it.
type page struct {
	t    *testing.T
	ctx  context.Context
	look look

	mu    sync.Mutex
	wrong []string
}

// open opens url in a new tab and closes it with the test. The test fails if the console showed an error or a request
// failed; allowed lists substrings of the errors that the test expects.
func open(t *testing.T, look look, url string, allowed ...string) *page {
	t.Helper()
	tab, closeTab := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	ctx, cancel := context.WithTimeout(tab, 20*time.Minute)
	t.Cleanup(func() { cancel(); closeTab() })
	p := &page{t: t, ctx: ctx, look: look}
	if err := chromedp.Listen(ctx, p.heard); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.complain(allowed) })
	run(p, func(ctx context.Context, _ *chromedp.Target) (cdp.Empty, error) {
		return chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: look.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
	})
	viewport := []chromedp.EmulateViewportOption{chromedp.EmulateScale(2)}
	if look.touch {
		viewport = append(viewport, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	run(p, chromedp.EmulateViewport(look.width, look.height, viewport...))
	run(p, chromedp.Navigate(url))
	return p
}

// heard collects console errors, uncaught errors and failed requests.
func (p *page) heard(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			for _, a := range e.Args {
				p.note("console: %s", a.Value)
			}
		}
	case *runtime.EventExceptionThrown:
		p.note("uncaught: %s %s", e.ExceptionDetails.Text, e.ExceptionDetails.Exception.Description)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			p.note("log: %s %s", e.Entry.Text, e.Entry.URL)
		}
	case *network.EventLoadingFailed:
		if !e.Canceled {
			p.note("request failed: %s", e.ErrorText)
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			p.note("response %d: %s", e.Response.Status, e.Response.URL)
		}
	}
}

func (p *page) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = append(p.wrong, fmt.Sprintf(format, args...))
}

func (p *page) complain(allowed []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
lines:
	for _, line := range p.wrong {
		for _, part := range allowed {
			if strings.Contains(line, part) {
				continue lines
			}
		}
		p.t.Errorf("%s: %s", p.look.name, line)
	}
}

// run runs an action in the tab, within the limit.
func run[T any](p *page, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		p.t.Fatalf("%s: %v", p.look.name, err)
	}
	return value
}

// eval returns the value of a JavaScript expression. It awaits a promise.
func eval[T any](p *page, expression string) T {
	p.t.Helper()
	return run(p, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// until waits for an expression to be true.
func (p *page) until(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	poll := chromedp.Poll[bool](expression, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(limit))
	if _, err := chromedp.Run(ctx, poll); err != nil {
		p.shoot("failed")
		p.t.Fatalf("%s: %s was not true in time: %v; the page shows: %s", p.look.name, expression, err, eval[string](p, `document.body.innerText`))
	}
}

// press sends keys to the focused element, one after the other.
func (p *page) press(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		run(p, chromedp.KeyEvent(key))
	}
}

// tabTo presses Tab until the element of the selector has the focus.
func (p *page) tabTo(selector string) {
	p.t.Helper()
	for range 200 {
		if eval[bool](p, fmt.Sprintf(`document.activeElement?.matches(%q) ?? false`, selector)) {
			return
		}
		p.press(kb.Tab)
	}
	p.t.Fatalf("%s: Tab does not come to %s", p.look.name, selector)
}

// click waits for the element of the selector and clicks it. It does not click at coordinates, because the page may
// still move.
func (p *page) click(selector string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelector(%q) !== null`, selector))
	eval[*struct{}](p, fmt.Sprintf(`document.querySelector(%q).click()`, selector))
}

func (p *page) text(selector string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ''`, selector))
}

// staysInItsWidth fails if the page can scroll horizontally.
func (p *page) staysInItsWidth() {
	p.t.Helper()
	if over := eval[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
		p.t.Errorf("%s: the page is %d pixels too wide: %s", p.look.name, over, eval[string](p, `[...document.querySelectorAll('body *')]
			.filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('#plot')).map((e) => e.tagName + '#' + e.id + '.' + e.className).slice(0, 5).join(' ')`))
	}
}

// shoot writes a screenshot to the folder in SCREENSHOTS, if that is set.
func (p *page) shoot(name string) {
	p.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	png := run(p, chromedp.CaptureScreenshot())
	path := filepath.Join(dir, strings.ReplaceAll(name+" "+p.look.name, " ", "-")+".png")
	if err := os.WriteFile(path, png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
