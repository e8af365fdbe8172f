package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/urfave/cli/v2"
)

// TestManPageIsClean: the checker of manual pages has nothing to say, not even
// of style, and a reader finds every command, flag and setting.
func TestManPageIsClean(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	file, err := os.Create(filepath.Join(t.TempDir(), "toolcell.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := newCommandLine(&console.Streams{Out: file, Err: os.Stderr}).Run([]string{"toolcell", "man"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	if !strings.HasPrefix(page, `.TH TOOLCELL 1 "1970-01-02" "toolcell `) {
		t.Errorf("begins %.60q", page)
	}
	if _, err := exec.LookPath("mandoc"); err != nil {
		t.Skip("needs mandoc: apt-get install mandoc")
	}
	lint := exec.Command("mandoc", "-T", "lint", "-W", "style")
	lint.Stdin = strings.NewReader(page)
	if out, err := lint.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	show := exec.Command("mandoc", "-T", "utf8", "-O", "width=200")
	show.Stdin = strings.NewReader(page)
	out, err := show.Output()
	if err != nil {
		t.Fatal(err)
	}
	shownPage := bold.Replace(string(out))
	var want []string
	for _, k := range settings.All {
		want = append(want, dashed(k.Name)+", "+k.Env)
	}
	var look func(above string, all []*cli.Command)
	look = func(above string, all []*cli.Command) {
		for _, c := range shown(all) {
			if len(c.Subcommands) == 0 {
				want = append(want, above+" "+c.Name)
			}
			for _, f := range c.Flags {
				want = append(want, dashed(f.Names()[0]))
			}
			look(above+" "+c.Name, c.Subcommands)
		}
	}
	look("toolcell", newCommandLine(&console.Streams{}).Commands)
	want = append(want, "128+n", "NO_COLOR", "toolcell exec -c 'print(1+1)'", "[-i] [-c CODE | FILE | -] [ARGUMENT…]")
	if missing := slices.DeleteFunc(want, func(w string) bool { return strings.Contains(shownPage, w) }); len(missing) > 0 {
		t.Errorf("the page does not have %q\n%s", missing, shownPage)
	}
}

// bold undoes how a terminal was told of bold letters: each twice, one over the
// other.
var bold = func() *strings.Replacer {
	var pairs []string
	for r := ' '; r <= '~'; r++ {
		pairs = append(pairs, string(r)+"\b"+string(r), string(r))
	}
	return strings.NewReplacer(append(pairs, "…\b…", "…")...)
}()

func TestRoffTakesNothingForAMacro(t *testing.T) {
	for in, want := range map[string]string{
		".SH x":   `\&.SH x`,
		"'quoted": `\&\(aqquoted`,
		`a\fB-b`:  `a\efB\-b`,
		"… é":     `\[u2026] \[u00E9]`,
		"plain":   "plain",
	} {
		if got := escapeRoff(in); got != want {
			t.Errorf("escapeRoff(%q) = %q, want %q", in, got, want)
		}
	}
	if got := quoted(`say "x"`); got != `"say \(dqx\(dq"` {
		t.Errorf("quoted: %s", got)
	}
}
