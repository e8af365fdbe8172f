package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPythonDocumentIsUpToDate makes docs/python-api.md anew, and compares.
func TestPythonDocumentIsUpToDate(t *testing.T) {
	documents(t)
	h := firstHost(t)
	script, err := os.ReadFile("../../../.ci/python_api.py")
	if err != nil {
		t.Fatal(err)
	}
	c := h.command(t, env{"TOOLCELL_IMAGE": "host"}, "exec", "-q", "-")
	c.Stdin = strings.NewReader(string(script))
	var errs strings.Builder
	c.Stderr = &errs
	made, err := c.Output()
	if err != nil {
		t.Fatalf("making it: %v\n%s", err, errs.String())
	}
	kept, err := os.ReadFile("../../../docs/python-api.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(made) != string(kept) {
		t.Errorf("docs/python-api.md is out of date: make docs\n%s", firstDifference(string(kept), string(made)))
	}
}

// firstDifference shows where two texts part.
func firstDifference(kept, made string) string {
	a, b := strings.Split(kept, "\n"), strings.Split(made, "\n")
	for i := range max(len(a), len(b)) {
		x, y := lineAt(a, i), lineAt(b, i)
		if x != y {
			return "kept: " + x + "\nmade: " + y
		}
	}
	return ""
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the end)"
}

// TestWalkIsTheScripts checks that docs/walk.txt has the commands that
// .ci/walk.sh types, in that order, and nothing of the machine that it was
// recorded on.
func TestWalkIsTheScripts(t *testing.T) {
	documents(t)
	script, err := os.ReadFile("../../../.ci/walk.sh")
	if err != nil {
		t.Fatal(err)
	}
	walk, err := os.ReadFile("../../../docs/walk.txt")
	if err != nil {
		t.Fatal(err)
	}
	rest := string(walk)
	typed := regexp.MustCompile(`(?m)^typed(?:_inside)? (?:'(.*)'|"(.*)")$`)
	commands := 0
	for _, m := range typed.FindAllStringSubmatch(string(script), -1) {
		command := m[1] + strings.NewReplacer(`\"`, `"`, `\$`, `$`).Replace(m[2])
		before, after, found := strings.Cut(rest, " "+command+"\n")
		if !found || !strings.HasSuffix(before, "$") && !strings.HasSuffix(before, ">>>") {
			t.Fatalf("%q is not in docs/walk.txt at its place: make walk", command)
		}
		rest = after
		commands++
	}
	if commands < 10 {
		t.Errorf("%d commands were found in the script", commands)
	}
	home, _ := os.UserHomeDir()
	for _, secret := range []string{"/tmp/", "127.0.0.1", home + "/"} {
		if strings.Contains(string(walk), secret) {
			t.Errorf("docs/walk.txt has %q of the machine in it", secret)
		}
	}
}

// TestDocumentLinksLead checks that every link into the source has a file, and
// a heading, at its end.
//
//test:mainjob
func TestDocumentLinksLead(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)|src(?:set)?="([^"\s]+)"`)
	for _, name := range documents(t) {
		text, err := os.ReadFile(filepath.Join("../../..", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			to := m[1] + m[2]
			if strings.Contains(to, "://") {
				continue
			}
			path, anchor, _ := strings.Cut(to, "#")
			target := filepath.Join("../../..", filepath.Dir(name), path)
			if path == "" {
				target = filepath.Join("../../..", name)
			}
			body, err := os.ReadFile(target)
			if info, errStat := os.Stat(target); errStat == nil && info.IsDir() {
				err = nil
			}
			if err != nil {
				t.Errorf("%s links to %s: %v", name, to, err)
			} else if anchor != "" && !slices.Contains(anchors(string(body)), anchor) {
				t.Errorf("%s links to %s: there is no such heading", name, to)
			}
		}
	}
}

// anchors gives the names of a document's headings, as GitHub makes them.
func anchors(text string) (all []string) {
	drop := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for line := range strings.Lines(text) {
		if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
			title = drop.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			all = append(all, strings.ReplaceAll(title, " ", "-"))
		}
	}
	return all
}
