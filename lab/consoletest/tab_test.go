package consoletest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const (
	// patience bounds every wait for something that takes far less.
	patience = 20 * time.Second
	// every is the time between two looks at a page.
	every = 40 * time.Millisecond
	// axeFile is the checker of accessibility, from this folder.
	axeFile = "../../appmgr/console/web/node_modules/axe-core/axe.min.js"
)

// tab is a tab of the browser. It notes the errors of the page and all requests.
type tab struct {
	t      *testing.T
	ctx    context.Context
	origin string
	shots  string // folder of the screenshots

	mu       sync.Mutex
	errors   []string // faults of the page
	foreign  []string // requests to other origins
	failures []string // answers that the browser reports as errors
}

// browser is a running browser.
type browser struct{ ctx context.Context }

// openTab opens a tab for the console at an address.
func (w browser) openTab(t *testing.T, addr, shots string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(w.ctx)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, origin: "http://" + addr, shots: shots}
	if err := chromedp.Listen(ctx, b.note); err != nil {
		t.Fatal(err)
	}
	send(b, network.Enable, network.EnableParams{})
	send(b, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
	send(b, log.Enable, cdp.Empty{})
	send(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: stopwatch})
	return b
}

// stopwatch notes when the page first has its bar, and when it first has a site in a table.
const stopwatch = `(() => {
	const seen = {};
	window.__seen = seen;
	const look = () => {
		if (!seen.interactive && document.querySelector("#find")) seen.interactive = performance.now();
		if (!seen.sites && document.querySelector("[aria-labelledby=sites-title] tbody tr")) seen.sites = performance.now();
	};
	new MutationObserver(look).observe(document, {subtree: true, childList: true});
	seen.blocked = 0;
	new PerformanceObserver((list) => list.getEntries().forEach((e) => { seen.blocked = Math.max(seen.blocked, e.duration); })).observe({type: "longtask", buffered: true});
})()`

// note takes an event of the tab.
func (b *tab) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.errors = append(b.errors, text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			var text []string
			for _, a := range e.Args {
				text = append(text, string(a.Value)+a.Description)
			}
			b.errors = append(b.errors, string(e.Type)+": "+strings.Join(text, " "))
		}
	case *log.EventEntryAdded:
		switch {
		case e.Entry.Level != log.EntryLevelError && e.Entry.Level != log.EntryLevelWarning:
		case e.Entry.Source == log.EntrySourceNetwork:
			b.failures = append(b.failures, e.Entry.URL+" "+e.Entry.Text)
		default:
			b.errors = append(b.errors, string(e.Entry.Source)+": "+e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme != "data" && u.Scheme+"://"+u.Host != b.origin {
			b.foreign = append(b.foreign, e.Request.URL)
		}
	}
}

// end checks what the tab noted. Each failed answer must have been expected: its text holds
// an expected text. Each expected text must have been seen.
func (b *tab) end(expected ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.errors {
		b.t.Errorf("the page of %s has an error: %s", b.origin, e)
	}
	for _, f := range b.foreign {
		b.t.Errorf("the page of %s asks another origin: %s", b.origin, f)
	}
	for _, f := range b.failures {
		if !slices.ContainsFunc(expected, func(e string) bool { return strings.Contains(f, e) }) {
			b.t.Errorf("the page of %s has a failed request: %s", b.origin, f)
		}
	}
	for _, e := range expected {
		if !slices.ContainsFunc(b.failures, func(f string) bool { return strings.Contains(f, e) }) {
			b.t.Errorf("no request of the page of %s failed with %q; the browser reports %q", b.origin, e, b.failures)
		}
	}
}

// send sends a command of the protocol to the tab.
func send[P, R any](b *tab, command cdp.Command[P, R], params P) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, command, params); err != nil {
		b.t.Fatalf("%s: %s: %v", b.origin, command.Method, err)
	}
}

// get runs an action and returns its value.
func get[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	out, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatalf("%s: %v", b.origin, err)
	}
	return out
}

// open loads a page of the console.
func (b *tab) open(path string) {
	b.t.Helper()
	get(b, chromedp.Navigate(b.origin+"/console/"+path))
}

// ask evaluates an expression of the page.
func ask[T any](b *tab, expression string) T {
	b.t.Helper()
	return get(b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// run runs statements in the page.
func (b *tab) run(statements string) {
	b.t.Helper()
	ask[bool](b, `(() => {`+statements+`})() || true`)
}

// until waits until an expression of the page is true.
func (b *tab) until(what, expression string) {
	b.t.Helper()
	if !b.within(patience, expression) {
		b.shoot("failure")
		b.t.Fatalf("%s: after %v the page does not show %s; its text:\n%s", b.origin, patience, what, ask[string](b, `document.body.innerText.slice(0, 3000)`))
	}
}

// within reports whether an expression becomes true in time.
func (b *tab) within(limit time.Duration, expression string) bool {
	b.t.Helper()
	timer, ticker := time.NewTimer(limit), time.NewTicker(every)
	defer timer.Stop()
	defer ticker.Stop()
	for !ask[bool](b, `Boolean(`+expression+`)`) {
		select {
		case <-timer.C:
			return false
		case <-ticker.C:
		}
	}
	return true
}

// shows waits until the page has a text.
func (b *tab) shows(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("%q", text), `document.body.innerText.includes(`+quoted(text)+`)`)
}

// quoted is a text as a literal of JavaScript.
func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string has JSON
	}
	return string(out)
}

// click clicks an element, once it is there and may be clicked.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.until(selector, `document.querySelector(`+quoted(selector)+`) !== null && !document.querySelector(`+quoted(selector)+`).disabled`)
	get(b, chromedp.Click(chromedp.CSS(selector)))
}

// fill puts a text into a field, in the place of what it has.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.until(selector, `document.querySelector(`+quoted(selector)+`) !== null`)
	b.run(`const field = document.querySelector(` + quoted(selector) + `); field.focus(); field.select();`)
	get(b, chromedp.KeyEvent(text))
}

// keys presses keys, one after the other.
func (b *tab) keys(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		get(b, chromedp.KeyEvent(k))
	}
}

// looks chooses colours and the size of the window.
func (b *tab) looks(scheme string, width int64) {
	b.t.Helper()
	send(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	get(b, chromedp.EmulateViewport(width, 900))
	b.until("the colours "+scheme, `document.documentElement.dataset.theme === `+quoted(scheme))
}

// shoot keeps a picture of the whole page.
func (b *tab) shoot(name string) {
	b.t.Helper()
	png := get(b, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(b.shots, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// picture keeps what the window shows, small enough for the documentation.
func (b *tab) picture(name string, height int64) {
	b.t.Helper()
	get(b, chromedp.EmulateViewport(wide, height))
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	quality := int64(70)
	shot, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatWebp, Quality: &quality})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.shots, name+".webp"), shot.Data, 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.looks("light", wide)
}

// wide and narrow are the widths of windows, in pixels of a page.
const (
	wide   = 1280
	narrow = 400
)

// check takes pictures of a page in light, dark and narrow, and has its accessibility checked
// in each.
func (b *tab) check(name string) {
	b.t.Helper()
	for _, look := range []struct {
		suffix, scheme string
		width          int64
	}{{"", "light", wide}, {"-dark", "dark", wide}, {"-narrow", "light", narrow}} {
		b.looks(look.scheme, look.width)
		b.shoot(name + look.suffix)
		b.axe(name + look.suffix)
		if over := ask[int64](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
			b.t.Errorf("%s%s is %d pixels wider than its window", name, look.suffix, over)
		}
	}
	b.looks("light", wide)
}

// axe fails for each violation of WCAG AA that axe-core finds.
func (b *tab) axe(name string) {
	b.t.Helper()
	source, err := os.ReadFile(axeFile)
	if err != nil {
		b.t.Fatalf("axe-core is installed by make console-check: %v", err)
	}
	if !ask[bool](b, `window.axe !== undefined`) {
		b.run(string(source))
	}
	found := ask[[]string](b, `axe.run(document, {runOnly: {type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}})
		.then((r) => r.violations.map((v) => v.id + ": " + v.help + ": " + v.nodes.map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).slice(0, 4).join("; ")))`)
	for _, f := range found {
		b.t.Errorf("%s: %s", name, f)
	}
}

// signIn shows a token to the console.
func (b *tab) signIn(token string) {
	b.t.Helper()
	b.open("")
	b.fill("#token", token)
	b.click("form button[type=submit]")
}

// forgive drops failed requests to an address, after a fault that the test has caused.
func (b *tab) forgive(addr string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = slices.DeleteFunc(b.failures, func(f string) bool { return strings.Contains(f, addr) && strings.Contains(f, "net::ERR") })
}
