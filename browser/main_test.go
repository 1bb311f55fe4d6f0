// Package browser tests the pages of `make run` in a real browser, Chromium. It is a module of its own, so that the
// driver of the browser does not become a dependency of the service.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/chromedp/chromedp"
)

// browser is the running Chromium, which every test opens tabs of; nil where the machine has none.
var browser context.Context

func TestMain(m *testing.M) {
	code := test(m)
	stopService()
	os.Exit(code)
}

func test(m *testing.M) int {
	program := chromium()
	if program == "" {
		fmt.Println("browser tests skipped: there is no Chromium (Debian: apt-get install chromium-headless-shell, or set CHROMIUM)")
		return 0
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))...)
	defer stop()
	var closeBrowser context.CancelFunc
	browser, closeBrowser = chromedp.NewContext(allocator)
	defer closeBrowser()
	if err := chromedp.Do(browser); err != nil {
		fmt.Fprintln(os.Stderr, "start", program+":", err)
		return 1
	}
	return m.Run()
}

// chromium is the program that CHROMIUM names, or one that is on the path; empty: there is none.
func chromium() string {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
