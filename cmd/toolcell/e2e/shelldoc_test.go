package e2e

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestShellDocument types what docs/shell.md shows, and compares the answers.
// In them a line … stands for any lines, and a … in a line for anything.
func TestShellDocument(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/shell.md")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("needs the source")
	}
	if err != nil {
		t.Fatal(err)
	}
	h := firstHost(t)
	e, dir := docHost(t, h)
	commands, prompts := 0, 0
	for _, block := range strings.Split(string(doc), "\n```")[1:] {
		kind, body, _ := strings.Cut(block, "\n")
		switch kind {
		case "console":
			for _, step := range consoleSteps(body) {
				commands++
				c := h.command(t, e)
				c.Path, c.Args, c.Dir = "/bin/bash", []string{"bash", "-c", step.typed}, dir
				out, _ := c.CombinedOutput() // the answers have the exit codes
				if !step.fits(string(out)) {
					t.Errorf("$ %s\n%s\nthe page has\n%s", step.typed, out, strings.Join(step.answer, "\n"))
				}
			}
		case "prompt":
			prompts++
			typeAtPrompt(t, h, e, body)
		}
	}
	if commands < 25 || prompts != 1 {
		t.Errorf("%d commands and %d prompts were found", commands, prompts)
	}
}

// docHost has a home with servers, and a project in it to work in.
func docHost(t *testing.T, h *host) (e env, dir string) {
	t.Helper()
	e = h.ownState(t)
	home := e["TOOLCELL_STATE_DIR"]
	dir = filepath.Join(home, "project")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Mkdir(filepath.Join(home, "MCPs"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, text := range exampleServers(t, home) {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e["HOME"], e["TOOLCELL_IMAGE"], e["PATH"] = home, "host", filepath.Dir(bin)+":"+os.Getenv("PATH")
	return e, dir
}

// A step is a command and what it answers.
type step struct {
	typed  string
	answer []string
}

// consoleSteps reads a block in which $ stands before a command, and > before
// each line that goes on with it.
func consoleSteps(body string) (all []step) {
	for line := range strings.SplitSeq(strings.TrimSuffix(body, "\n"), "\n") {
		last := len(all) - 1
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, step{typed: command})
		} else if more, ok := strings.CutPrefix(line, "> "); ok && last >= 0 {
			all[last].typed += "\n" + more
		} else if last >= 0 {
			all[last].answer = append(all[last].answer, line)
		}
	}
	return all
}

// fits reports whether the output is what the page shows. What a host lacks is
// noted on any of them.
func (s step) fits(out string) bool {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\n"), "\n") {
		if !strings.HasPrefix(line, "toolcell: note: ") {
			lines = append(lines, line)
		}
	}
	// How wide a column is depends on the times in it.
	spaces := regexp.MustCompile(` {2,}`)
	got := spaces.ReplaceAllString(strings.Join(lines, "\n"), " ")
	want := regexp.QuoteMeta(spaces.ReplaceAllString(strings.Join(s.answer, "\n"), " "))
	want = regexp.MustCompile(`(?m)^…$`).ReplaceAllString(want, "[^\x00]*")
	want = strings.ReplaceAll(want, "…", ".*")
	ok, _ := regexp.MatchString("^"+want+"$", got)
	return ok
}

// typeAtPrompt types the lines of a block that stand behind a prompt, in a
// terminal, and waits for what stands below them.
func typeAtPrompt(t *testing.T, h *host, e env, body string) {
	t.Helper()
	p := atPrompt(t, h, e)
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	for i, line := range lines {
		next := ""
		if i+1 < len(lines) {
			next, _, _ = cutMark(lines[i+1])
		}
		_, typed, ok := cutMark(line)
		switch {
		case ok:
			p.types(typed + "\r")
		case line == "…":
			continue
		default:
			p.sees("\n" + line)
		}
		if next != "" {
			p.sees("\n" + next)
		}
	}
	if code := p.leaves(); code != 0 {
		t.Errorf("the prompt ended with %d", code)
	}
}

// cutMark cuts a line that is typed into the prompt's mark and the rest.
func cutMark(line string) (mark, typed string, ok bool) {
	for _, mark := range []string{">>>", "..."} {
		if typed, ok := strings.CutPrefix(line, mark); ok {
			return mark + " ", strings.TrimPrefix(typed, " "), true
		}
	}
	return "", "", false
}
