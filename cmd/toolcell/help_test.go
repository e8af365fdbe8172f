package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
)

// helpOf returns what --help prints where there is no terminal.
func helpOf(t *testing.T, of any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "help")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &console.Streams{Out: out}
	if of == settingsTopic {
		printSettings(s)
	} else {
		printHelp(s, of)
	}
	if err := errors.Join(s.WriteError(), out.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestHelp of every command fits 80 columns and 45 lines, has its own flags and two
// examples, which name flags that there are, before the settings, and says where all of
// those are.
func TestHelp(t *testing.T) {
	app := testApp()
	checkHelp(t, "toolcell", helpOf(t, app))
	eachCommand(app, func(words []string, c *cli.Command) {
		if c.Hidden {
			return
		}
		path := strings.Join(words, " ")
		c.HelpName = path
		text := helpOf(t, c)
		checkHelp(t, path, text)
		if n := strings.Count(text, "\n"); n > 45 {
			t.Errorf("%s has %d lines:\n%s", path, n, text)
		}
		own, set, _ := strings.Cut(text, "\nSETTINGS\n")
		if isAll := strings.Contains(set, "all are flags"); len(settings.Flags()) == countSettings(c) != isAll || set != "" && !strings.Contains(set, "toolcell help settings") {
			t.Errorf("%s: %s", path, set)
		}
		for _, f := range c.Flags {
			name := dashed(f.Names()[0])
			switch {
			case !isSetting(f) && !strings.Contains(own, "\n  "+name),
				isSetting(f) && !strings.Contains(set, name) && !strings.Contains(set, "all are flags"):
				t.Errorf("%s: there is no %s in its place:\n%s", path, name, text)
			}
		}
		if !strings.Contains(own, "\nEXAMPLES\n") || len(examples[path]) < 2 {
			t.Errorf("%s has %d examples", path, len(examples[path]))
		}
		for _, e := range examples[path] {
			typed, isOurs := strings.CutPrefix(e, "toolcell ")
			if !isOurs {
				continue // a shell's
			}
			typed = strings.FieldsFunc(typed, func(r rune) bool { return strings.ContainsRune("|<>'", r) })[0]
			if _, err := findCommand(app, append([]string{"toolcell"}, strings.Fields(typed)...)).flagsFirst(); err != nil && !strings.HasSuffix(err.Error(), "needs a value") {
				t.Errorf("%s: %v", e, err)
			}
		}
	})
}

func countSettings(c *cli.Command) (n int) {
	for _, f := range c.Flags {
		if isSetting(f) {
			n++
		}
	}
	return n
}

// TestHelpOfSettings has all of them, in their groups.
func TestHelpOfSettings(t *testing.T) {
	text := helpOf(t, settingsTopic)
	checkHelp(t, settingsTopic, text)
	at := 0
	for _, g := range settings.Groups {
		want := []string{"\n" + strings.ToUpper(g.Title) + "\n"}
		for _, k := range g.Settings {
			want = append(want, "\n  "+dashed(k.Name), "$"+k.Variable())
		}
		for _, w := range want {
			i := strings.Index(text[at:], w)
			if i < 0 {
				t.Fatalf("there is no %q after:\n%s", w, text[:at])
			}
			at += i
		}
	}
}

// TestSettingsWithoutUseAreRefused: a command does not take flags that it would ignore.
func TestSettingsWithoutUseAreRefused(t *testing.T) {
	for _, args := range []string{
		"servers login --picture-bytes 1m x", "servers list --image host", "servers check --memory 1g", "doctor --picture-bytes 1m",
		"doctor --timeout 5", "images list --registry-ca x", "images pull --pull never x", "images rm --authfile x y", "tools list --image x", "version --image x",
	} {
		_, err := findCommand(testApp(), append([]string{"toolcell"}, strings.Fields(args)...)).flagsFirst()
		if err == nil || !strings.Contains(err.Error(), " has no flag --") {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func checkHelp(t *testing.T, path, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(line) > 81 && !strings.HasPrefix(line, "  toolcell ") {
			t.Errorf("%s: a line of %d columns: %s", path, len(line), line)
		}
	}
	for _, not := range []string{"default: false", "`", "a NUMBER", " VALUE"} {
		if strings.Contains(strings.ReplaceAll(text, "KEY VALUE", ""), not) {
			t.Errorf("%s: %q in the help:\n%s", path, not, text)
		}
	}
}
