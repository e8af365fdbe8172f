package e2e

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// hostilePage is code whose source, output and error try to be more than text on a page.
const hostilePage = `# <img src=x onerror="window.hacked = 1">
evil = '<script>window.hacked = 2</script><img src=x onerror="window.hacked = 3"></pre></td>" onmouseover="window.hacked = 4'
print(evil, '\x1b]52;c;eA==\x07\x1b[31m \u202e\u2066 \x00', 'x' * 200_000)
raise ValueError(evil)`

// TestPageInABrowser: every page and action of ui in Debian's Chromium, with two windows, a hostile run and
// attacks of other pages.
func TestPageInABrowser(t *testing.T) {
	t.Parallel()
	npmProgram(t, "playwright-mcp")
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("needs Chromium: apt-get install chromium")
	}
	h, e := asking(t)
	maps.Copy(e, h.ownState(t)) // other tests ask, too
	c := h.serve(t, e)
	hostile := c.python(t, hostilePage).fields["run"].(string)
	asks := func() (session string) {
		r := c.python(t, tryCall, "github")
		if r.status() != "approval_needed" {
			t.Fatalf("%s: %s", r.status(), r.text)
		}
		return r.fields["approval"].(map[string]any)["id"].(string)
	}
	first := asks()
	ui := inOtherTerminal(t, h.command(t, e, "ui"))
	ui.sees("open in your browser, once: ")
	link := ui.sees("\r\n")

	walk := exec.Command(filepath.Join(os.Getenv("TOOLCELL_TEST_NPM"), "node_modules/.bin/node"), "testdata/page.js")
	walk.Env = append(os.Environ(), "LINK="+link, "CHROMIUM="+chromium, "MODULES="+filepath.Join(os.Getenv("TOOLCELL_TEST_NPM"), "node_modules"), "HOSTILE="+hostile[:8])
	said, err := walk.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	answer, err := walk.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := &syncBuffer{}
	walk.Stderr = stderr
	if err := walk.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = walk.Process.Kill(); _ = walk.Wait() })
	asked := []string{first}
	for lines := bufio.NewScanner(said); lines.Scan(); {
		switch line := lines.Text(); line {
		case "CODE":
			ui.sees("type this code on the page: ")
			fmt.Fprintln(answer, ui.sees("\r\n"))
		case "OTHER":
			c.python(t, "print('another run')")
			fmt.Fprintln(answer)
		case "LONG":
			fmt.Fprintln(answer, goesOn(t, h, e))
		case "RUN":
			asked = append(asked, asks())
			fmt.Fprintln(answer)
		default:
			t.Fatal(strings.ReplaceAll(line, `\n`, "\n"))
		}
	}
	if err := walk.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	for i, want := range []string{"t", "denied by the user, who says: use the test account", "t", "the user stopped the run"} {
		if r := c.call(t, map[string]any{"code": "", "session": asked[i]}); !strings.Contains(r.text, want) {
			t.Errorf("run %d: %s, want %q", i, r.text, want)
		}
	}
}

// goesOn begins a run that goes on until it is stopped, and returns its ID.
func goesOn(t *testing.T, h *host, e env) string {
	t.Helper()
	c := h.serve(t, e)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.python(t, "import time\nfor n in range(4):\n    print('line', n)\ntime.sleep(100)")
	}()
	t.Cleanup(func() { <-ended })
	var all []listedRun
	waitFor(t, "the run to begin", func() bool {
		all = listRuns(t, h, e, "--status", "running")
		return len(all) == 1
	})
	return all[0].Run
}

// TestPageBelowAClientOnlyShows, and no values: the client's model may be who reads it.
func TestPageBelowAClientOnlyShows(t *testing.T) {
	t.Parallel()
	h, e := asking(t)
	maps.Copy(e, h.ownState(t)) // other tests ask, too
	c := h.serve(t, e)
	run := c.python(t, "secret = 17\n"+tryCall, "github")
	p := atTerminal(t, h.command(t, e, "ui"), 200)
	p.sees("open in your browser, once: ")
	link := p.sees("\r\n")
	p.sees("An MCP client that runs toolcell has started it")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Client{Jar: jar}
	fetch := func(method, address string) string {
		r, err := http.NewRequestWithContext(t.Context(), method, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := web.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	fetch(http.MethodGet, link)
	base := regexp.MustCompile(`^http://[^/]+`).FindString(link)
	id := run.fields["approval"].(map[string]any)["id"].(string)
	if text := fetch(http.MethodGet, base+"/"); !strings.Contains(text, id) || strings.Contains(text, "<button") || strings.Contains(text, "secret = 17") {
		t.Errorf("the page has a button, a value or no question: %s", text)
	}
	if text := fetch(http.MethodGet, base+"/runs/"+questions(t, h, e)[0].Run); strings.Contains(text, "secret = 17") || !strings.Contains(text, "not shown") {
		t.Errorf("the run has a value: %s", text)
	}
	for path, want := range map[string]string{"/servers": "github", "/servers/github": "create_issue(", "/sandbox": "RC-SANDBOX"} {
		if text := fetch(http.MethodGet, base+path); !strings.Contains(text, want) || strings.Contains(text, "<button type") {
			t.Errorf("%s has a command to copy, or nothing: %s", path, text)
		}
	}
	for _, what := range []string{"begin", "approve", "deny", "revoke"} {
		if text := fetch(http.MethodPost, base+"/questions/"+id+"/"+what); !strings.Contains(text, "An MCP client that runs toolcell has started it") {
			t.Errorf("%s: %s", what, text)
		}
	}
	if all := questions(t, h, e); all[0].State != "pending" {
		t.Errorf("%+v", all)
	}
	if err := os.Remove(filepath.Join(e["XDG_CONFIG_HOME"], "toolcell", "policy.toml")); err != nil {
		t.Fatal(err)
	}
	if text := fetch(http.MethodGet, base+"/policy"); !strings.Contains(text, "The policy file is gone.") || !strings.Contains(text, "started again: toolcell serve (PID ") {
		t.Errorf("the policy is gone: %s", text)
	}
}
