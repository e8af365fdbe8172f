package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
)

// eachCommand calls do for every command that can be typed, with its words.
func eachCommand(app *cli.App, do func(words []string, c *cli.Command)) {
	var walk func(words []string, all []*cli.Command)
	walk = func(words []string, all []*cli.Command) {
		for _, c := range all {
			words := append(slices.Clone(words), c.Name)
			do(words, c)
			walk(words, c.Subcommands)
		}
	}
	walk([]string{app.Name}, app.Commands)
}

func testApp() *cli.App {
	return newCommandLine(&console.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}

// TestFlagWithoutItsValue of any command is refused, whatever stands in the value's
// place; a value that begins with a dash is taken.
//
//test:alone
func TestFlagWithoutItsValue(t *testing.T) {
	app, tried := testApp(), 0
	eachCommand(app, func(words []string, c *cli.Command) {
		for _, f := range c.Flags {
			if !takesValue(f) || c.SkipFlagParsing {
				continue
			}
			for _, name := range f.Names() {
				tried++
				checkMissingValue(t, app, words, dashed(name), c.Flags)
			}
		}
	})
	if tried < 150 {
		t.Errorf("%d flags were tried", tried)
	}
}

func checkMissingValue(t *testing.T, app *cli.App, words []string, flag string, all []cli.Flag) {
	t.Helper()
	missing := [][]string{{flag}, {flag, "--"}, {flag, "--", "x"}, {flag, "--help"}, {flag, "-h"}, {"x", flag}}
	for _, other := range all {
		missing = append(missing, []string{flag, dashed(other.Names()[0])}, []string{flag, dashed(other.Names()[0]) + "=1"})
	}
	for _, args := range missing {
		_, err := findCommand(app, slices.Concat(words, args)).flagsFirst()
		var exit *console.ExitError
		if err == nil || err.Error() != flag+" needs a value" || !errors.As(err, &exit) || exit.Code != console.ExitUsage {
			if words[1] == execName && args[0] == "x" {
				continue // it is an argument of the code's
			}
			t.Errorf("%v %v: %v", words, args, err)
		}
	}
	for _, args := range [][]string{{flag, "x"}, {flag, "-1"}, {flag, "-"}, {flag, "--no-such-flag"}, {flag + "=--"}, {flag + "=--x"}, {flag + "="}} {
		got, err := findCommand(app, slices.Concat(words, args)).flagsFirst()
		if want := slices.Concat(words, args, []string{"--"}); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v %v: %v, %v", words, args, got, err)
		}
	}
}

// TestHelpWinsOverArguments: the cli package would print the help of a command of that
// name, and nothing if there is none.
func TestHelpWinsOverArguments(t *testing.T) {
	for _, line := range []string{"images rm x --help", "servers pins accept bank -h", "servers check bank --json --help"} {
		out, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		args := strings.Fields(line)
		code := runCommandLine(append([]string{"toolcell"}, args...), os.Stdin, out, os.Stderr)
		want := "toolcell " + strings.Join(args[:2], " ") + " - "
		if got := read(t, out); code != console.ExitOK || !strings.HasPrefix(got, want) {
			t.Errorf("%s: exit %d\n%swant %s", line, code, got, want)
		}
	}
}

// TestTyposAreNamed: what was typed wrong, and what was probably meant.
func TestTyposAreNamed(t *testing.T) {
	for args, want := range map[string]string{
		"images list --jsno":    "toolcell images list has no flag --jsno; did you mean --json?",
		"images list --xyzzy":   "toolcell images list has no flag --xyzzy",
		"doctor -imag x":        "toolcell doctor has no flag -imag; did you mean --image?",
		"exec --sever=a x":      "toolcell exec has no flag --sever; did you mean --server? (arguments for the code come after the file, or after -c CODE --)",
		"--verison":             "toolcell has no flag --verison; did you mean --version?",
		"-x":                    "toolcell has no flag -x",
		"-v":                    "toolcell has no flag -v; did you mean -V?",
		"images pull --creds":   "--creds needs a value",
		"install cursor --name": "--name needs a value",
	} {
		_, err := findCommand(testApp(), append([]string{"toolcell"}, strings.Fields(args)...)).flagsFirst()
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", args, err, want)
		}
	}
}

// TestFlagsWhoseFirstValueWouldBeLostAreGivenOnce, and others as often as one likes.
func TestFlagsWhoseFirstValueWouldBeLostAreGivenOnce(t *testing.T) {
	for args, want := range map[string]string{
		"exec -c 1 -c 2":                             "-c is given twice, and only the last would count",
		"exec -c=1 --c 2":                            "-c is given twice, and only the last would count",
		"exec --mounts /a:/a -c 1 --mounts /b:/b":    "--mounts is given twice, and only the last would count",
		"serve --policy a.toml --policy b.toml":      "--policy is given twice, and only the last would count",
		"install cursor --name a --name b":           "--name is given twice, and only the last would count",
		"exec -c 1 -- -c 2":                          "",
		"exec file -c 1 -c 2":                        "",
		"exec --timeout 1m --timeout 5s -c 1":        "",
		"exec --server a --server b --json --json=0": "",
	} {
		_, err := findCommand(testApp(), append([]string{"toolcell"}, strings.Fields(args)...)).flagsFirst()
		if got := fmt.Sprint(err); got != cmp.Or(want, "<nil>") {
			t.Errorf("%s: %s\nwant %s", args, got, want)
		}
	}
}

// TestEveryListIsAlsoLs, since it is for images.
func TestEveryListIsAlsoLs(t *testing.T) {
	lists := 0
	for _, group := range newCommandLine(&console.Streams{}).Commands {
		for _, c := range group.Subcommands {
			if c.Name != "list" {
				continue
			}
			if lists++; !c.HasName("ls") {
				t.Errorf("%s list is not ls", group.Name)
			}
		}
	}
	if lists < 5 {
		t.Errorf("there are %d lists", lists)
	}
}

// TestHelpAndHAreArguments of every command that takes any: the cli package's hidden help
// command must not take them, do nothing and succeed.
func TestHelpAndHAreArguments(t *testing.T) {
	app, tried := testApp(), 0
	var got []string
	ran := errors.New("ran")
	eachCommand(app, func(_ []string, c *cli.Command) {
		c.Action = func(c *cli.Context) error { got = c.Args().Slice(); return ran }
	})
	eachCommand(app, func(words []string, c *cli.Command) {
		for _, args := range [][]string{{"h"}, {"help"}, {"h", "x"}, {"help", "s"}} {
			typed := findCommand(app, slices.Concat(words, args))
			ordered, err := typed.flagsFirst()
			if err != nil {
				t.Fatalf("%v %v: %v", words, args, err)
			}
			got = nil
			if err := app.Run(ordered); !errors.Is(err, ran) || !slices.Equal(slices.DeleteFunc(got, func(s string) bool { return s == "--" }), args) {
				t.Errorf("%v %v: ran with %q, %v", words, args, got, err)
			}
			tried++
		}
	})
	if tried < 150 {
		t.Errorf("%d command lines were tried", tried)
	}
}

// TestNoCommandTakesWhatItDoesNotUse: one that takes no arguments, a certain number of
// them, or the names of what is there, refuses others.
func TestNoCommandTakesWhatItDoesNotUse(t *testing.T) {
	takesAny := []string{
		"toolcell exec", "toolcell serve", // code, and a server that would wait for its client
		"toolcell servers search", "toolcell servers untrust", // which say what they found, or that there is nothing to do
		"toolcell packages add", "toolcell images pull", // whose arguments may exist elsewhere
	}
	state := t.TempDir()
	t.Setenv("HOME", state)
	t.Setenv("TOOLCELL_STATE_DIR", state)
	t.Chdir(state)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	eachCommand(testApp(), func(words []string, c *cli.Command) {
		if c.SkipFlagParsing || slices.Contains(takesAny, strings.Join(words, " ")) {
			return
		}
		for _, args := range [][]string{{""}, {"h"}, {"help", "x"}, {"no-such-thing", "--", "--no-such-flag"}, {"a", "b", "c", "d"}} {
			line := slices.Concat(words, args)
			if code := runCommandLine(line, null, null, null); code == console.ExitOK {
				t.Errorf("%q: exit 0", line)
			}
		}
	})
}

// TestMissingArgumentsAreNamed, before a command does anything else.
func TestMissingArgumentsAreNamed(t *testing.T) {
	state := t.TempDir()
	t.Setenv("HOME", state)
	t.Setenv("TOOLCELL_STATE_DIR", state)
	for command, takes := range arguments {
		line := append([]string{"toolcell"}, strings.Fields(command)...)
		if typed := findCommand(testApp(), line); typed.path != "toolcell "+command {
			t.Errorf("there is no command %s", command)
		}
		for _, n := range []int{takes.least - 1, takes.most + 1} {
			if n < 0 || n > 9 {
				continue
			}
			err := testApp().Run(slices.Concat(line, slices.Repeat([]string{"x"}, n)))
			exit, ok := errors.AsType[*console.ExitError](err)
			if want := command + " takes " + takes.what; !ok || exit.Code != console.ExitUsage || err.Error() != want {
				t.Errorf("%s with %d arguments: %v, want %s", command, n, err, want)
			}
		}
	}
}

func TestMisspelledVariablesAreNamed(t *testing.T) {
	got := settingTypos([]string{
		"MCP_BRIDGE_TIMOUT=5", "MCP_BRIDGE_TIMEOUT=5", "MCP_BRIDGE_imagE=x", "MCP_BRIDGE_ALLOWED_MCP_DIRS=/", "MCP_BRIDGE_INPUT_IMAGE=x", "TIMOUT=1", "MCP_BRIDGE_",
	})
	want := []string{
		"there is no setting MCP_BRIDGE_TIMOUT; did you mean TOOLCELL_TIMEOUT?",
		"there is no setting MCP_BRIDGE_imagE; did you mean TOOLCELL_IMAGE?",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
