package consoletest

import (
	"encoding/json"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/chromedp/chromedp"
)

// laptop opens the console that samya console serves: nobody signs in, since the command has
// the token, and every request stays at the command's listener.
func laptop(chromium browser, kim *tab, bin string) {
	t := kim.t
	token := filepath.Join(t.TempDir(), "kim.token")
	if err := os.WriteFile(token, []byte(adminToken), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, "console", "--addr", kim.origin, "--token-file", token, "--json")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var printed struct{ URL string }
	lines := json.NewDecoder(out)
	if err := lines.Decode(&printed); err != nil {
		t.Fatalf("samya console prints no URL: %v", err)
	}
	read := make(chan struct{})
	go func() { // the command prints the next URL once this one is used
		defer close(read)
		_, _ = io.Copy(io.Discard, out)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		<-read
		_ = cmd.Wait() // ended by the signal
	})
	u, err := url.Parse(printed.URL)
	if err != nil {
		t.Fatal(err)
	}
	b := chromium.openTab(t, u.Host, kim.shots)
	get(b, chromedp.Navigate(printed.URL))
	b.until("the caller", `document.querySelector(".caller")?.textContent.includes("kim")`)
	b.shows("all 5 sites serve")
	b.open("entity?name=acme/vm")
	b.until("watched shares", `document.querySelector("[aria-labelledby=time-title] canvas") !== null`)
	b.shoot("laptop")
	b.end()
}
