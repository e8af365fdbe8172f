package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
)

// TestManPageIsClean: the checker of manual pages has nothing to say, not even
// of style, and a reader finds every command, flag and setting, in the words of help.
func TestManPageIsClean(t *testing.T) {
	text, err := os.ReadFile("toolcell.1")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
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
	shownPage := oneSpace(bold.Replace(string(out)))
	var want []string
	for _, k := range settings.All {
		want = append(want, dashed(k.Name)+", "+k.Variable(), strings.ReplaceAll(k.Usage, "`", "")[1:])
	}
	var look func(above string, all []*cli.Command)
	look = func(above string, all []*cli.Command) {
		for _, c := range visible(all) {
			if len(c.Subcommands) == 0 {
				want = append(want, strings.TrimSpace(above+" "+c.Name+" "+c.ArgsUsage), c.Usage[1:], oneSpace(c.Description))
			}
			for _, f := range c.Flags {
				want = append(want, dashed(f.Names()[0]))
				if !isSetting(f) {
					want = append(want, about(f)[1:]) // its first letter is a capital there
				}
			}
			look(above+" "+c.Name, c.Subcommands)
		}
	}
	look("toolcell", newCommandLine(&console.Streams{}).Commands)
	want = append(want, "128+n", "NO_COLOR", "toolcell exec -c 'print(1+1)'")
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

func oneSpace(s string) string { return strings.Join(strings.Fields(s), " ") }
