package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// Ensure that every scenario of the running service can be run by the keyboard alone, passes, and is shown without an
// error, without a violation that axe finds and without a page that scrolls sideways.
func TestEveryScenario(t *testing.T) {
	for _, look := range []look{looks[0], looks[3]} {
		p := openLab(t, look, serving(t)+"/lab/")
		count := eval[int](p, `document.querySelectorAll('#list a').length`)
		if count == 0 {
			t.Fatal("there are no scenarios")
		}
		for i := range count {
			p.runScenario(i)
		}
	}
}

// runScenario chooses a scenario of the list, runs it and looks at what came of it.
func (p *page) runScenario(i int) {
	p.t.Helper()
	link := fmt.Sprintf(`#list li:nth-child(%d) a`, i+1)
	if !eval[bool](p, `document.querySelector('#scenarios details').open`) {
		p.tabTo("#scenarios summary")
		p.press(kb.Enter)
	}
	p.tabTo(link)
	title := eval[string](p, `document.activeElement.firstChild.textContent`)
	p.press(kb.Enter)
	p.until(fmt.Sprintf(`document.querySelector('#title').textContent === %q`, title))
	p.runByKeyboard()
	if state := p.text("#state"); !strings.HasPrefix(state, "Passed") {
		p.t.Errorf("%s, %s: %s\n%s", p.look.name, title, state, p.text("#checks"))
	}
	if n := eval[int](p, `document.querySelectorAll('.bar').length`); n == 0 {
		p.t.Errorf("%s, %s: the time line is empty", p.look.name, title)
	}
	p.tabTo("[data-item]")
	p.press(kb.Enter)
	p.until(`!document.querySelector('#item').hidden`)
	p.accessible(title + ", an item open")
	p.press(kb.Escape)
	p.accessible(title)
	p.staysInItsWidth()
	p.shoot("scenario " + strings.ReplaceAll(title, "/", " "))
}

// Ensure that the files that a scenario links to are shown, at the line that the link names.
func TestSource(t *testing.T) {
	for _, look := range looks {
		p := openLab(t, look, serving(t)+"/lab/")
		links := eval[[]string](p, `[...document.querySelectorAll('#links a')].map((a) => a.href)`)
		if len(links) == 0 {
			t.Fatal("the first scenario has no links")
		}
		source := open(t, look, links[0])
		source.until(`document.querySelector(':target') !== null`)
		source.accessible("source")
		source.staysInItsWidth()
		source.shoot("source")
	}
}
