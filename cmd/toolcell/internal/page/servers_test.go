package page

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// servesOf fills in what pages of servers show: the same text everywhere.
func servesOf(said string) func(*Options) {
	row := ServerRow{Name: said, Status: said, Transport: said, Source: said, Remark: said, Known: true, Tools: 2, Tokens: 100}
	commands := []Command{{Why: said, Text: said}, {Why: said, Text: said}}
	return func(o *Options) {
		o.Servers = func(context.Context, string) (ServersView, error) {
			return ServersView{
				Servers: []ServerRow{row}, Notes: []string{said}, Unknown: []string{said}, Problem: said,
				Found: []FoundTool{{Server: said, Tool: said, Signature: said, Description: said, Score: 0.5}},
			}, nil
		}
		o.Server = func(_ context.Context, name string) (*ServerView, error) {
			if name != said {
				return nil, nil
			}
			return &ServerView{
				ServerRow: row, About: said, Also: []string{said}, Problem: said, Commands: commands,
				Docs: []ShownTool{{Name: said, Signature: said, Description: said, Full: said}},
				Pins: &PinsView{
					Summary: said, Hidden: []HiddenTool{{Tool: said, In: []string{said}, Lines: []string{said}}},
					Changes: []PinChange{{Tool: said, Change: said, Accept: said, Differences: []Difference{{Part: said, Diff: "+" + said + "\n"}}}},
				},
			}, nil
		}
	}
}

// evil tries to be more than text.
const evil = `</td></script><script>alert(1)</script><img src=x onerror=alert(2)>" onmouseover="alert(3)` + "\x1b[31m\u202e{{.}}"

// isText checks that what is evil does nothing on a page.
func isText(t *testing.T, path, body string) {
	t.Helper()
	for _, not := range []string{"<script>alert", "<img", `" onmouseover`, "\x1b", "\u202e"} {
		if i := strings.Index(body, not); i >= 0 {
			t.Errorf("%s has %q: …%s", path, not, body[max(0, i-200):min(len(body), i+100)])
		}
	}
}

// TestHostileServersAreText on each page that has something of them.
func TestHostileServersAreText(t *testing.T) {
	v := visit(t, servesOf(evil))
	for _, path := range []string{"/servers", "/servers?q=" + url.QueryEscape(evil), serverPath(evil), "/servers/none"} {
		status, body := v.get(path)
		if none := path == "/servers/none"; none != (status == http.StatusNotFound) || !none && status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
		isText(t, path, body)
		if path != "/servers/none" && !strings.Contains(body, "alert(1)") {
			t.Errorf("%s shows nothing of it: %s", path, body)
		}
	}
	for _, name := range []string{"a/b?c#d", "javascript:alert(1)", "%2e%2e", "ä b"} {
		v := visit(t, servesOf(name))
		_, list := v.get("/servers")
		link := regexp.MustCompile(`<td class="name"><a href="(/servers/[^"]*)"`).FindStringSubmatch(list)
		if link == nil {
			t.Errorf("%q has no link", name)
		} else if status, _ := v.get(link[1]); status != http.StatusOK {
			t.Errorf("%q is not at its link %s: %d", name, link[1], status)
		}
	}
}

// TestCommandsAreCopied by buttons of their own, and there are none on a page that only shows.
func TestCommandsAreCopied(t *testing.T) {
	const said = "toolcell-do-something"
	copies(t, servesOf(said), said, map[string]int{"/servers": 0, "/servers/" + said: 3})
}

// copies checks how many commands pages have to copy, which are all what was said.
func copies(t *testing.T, fill func(*Options), said string, commands map[string]int) {
	t.Helper()
	v := visit(t, fill)
	for path, want := range commands {
		_, body := v.get(path)
		ids := map[string]bool{}
		for _, m := range regexp.MustCompile(`data-copy="([^"]+)"`).FindAllStringSubmatch(body, -1) {
			if strings.Count(body, `id="`+m[1]+`">`+said) == 1 {
				ids[m[1]] = true
			}
		}
		if len(ids) != want {
			t.Errorf("%s has %d commands to copy, want %d: %s", path, len(ids), want, body)
		}
	}
	v = visit(t, func(o *Options) {
		fill(o)
		o.ReadsOnly = func() string { return "This page only shows." }
	})
	for path := range commands {
		if status, body := v.get(path); status != http.StatusOK || strings.Contains(body, "data-copy") || !strings.Contains(body, said) {
			t.Errorf("%s, which only shows: %d %s", path, status, body)
		}
	}
}

// TestWhatIsCutIsSaid, of tools and of changes.
func TestWhatIsCutIsSaid(t *testing.T) {
	v := visit(t, func(o *Options) {
		o.Server = func(context.Context, string) (*ServerView, error) {
			return &ServerView{Known: true, Tools: 20_000, Docs: make([]ShownTool, 3), Pins: &PinsView{Summary: "x", Changes: make([]PinChange, 2), More: 7}}, nil
		}
	})
	_, body := v.get("/servers/x")
	for _, want := range []string{"the first 3 of 20000", "7 more tools"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q: %s", want, body)
		}
	}
}

// TestProblemsOfServersAreShown in place of what cannot be had.
func TestProblemsOfServersAreShown(t *testing.T) {
	broken := errors.New("config.json: line 3 is broken")
	v := visit(t, func(o *Options) {
		o.Servers = func(context.Context, string) (ServersView, error) { return ServersView{}, broken }
		o.Server = func(context.Context, string) (*ServerView, error) { return nil, broken }
	})
	for _, path := range []string{"/servers", "/servers/x"} {
		if _, body := v.get(path); !strings.Contains(body, `role="alert"`) || !strings.Contains(body, broken.Error()) {
			t.Errorf("%s: %s", path, body)
		}
	}
}
