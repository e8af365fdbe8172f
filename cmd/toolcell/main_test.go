package main

import (
	"errors"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/contain"
)

// TestHelpIsNamedForWrongFlagsAndArgumentsOnly: a value or a file that cannot be used is
// nothing that help explains.
func TestHelpIsNamedForWrongFlagsAndArgumentsOnly(t *testing.T) {
	t.Setenv("TOOLCELL_STATE_DIR", t.TempDir())
	for args, want := range map[string]string{
		"exec --no-such-flag":           "hint: toolcell exec --help\n",
		"images rm":                     "hint: toolcell images rm --help\n",
		"nope":                          "hint: toolcell --help\n",
		"exec no-such-file.py":          "",
		"exec print(1)":                 "",
		"exec --timeout soon -c 1":      "",
		"exec .":                        "",
		"images prune --max-size large": "",
		"servers call a b c":            "",
	} {
		file := filepath.Join(t.TempDir(), "stderr")
		stderr, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		code := runCommandLine(append([]string{"toolcell"}, strings.Fields(args)...), os.Stdin, os.Stdout, stderr)
		stderr.Close()
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if code != 2 || strings.Contains(string(got), "--help") != (want != "") || !strings.HasSuffix(string(got), want) {
			t.Errorf("%s: exit %d\n%s", args, code, got)
		}
	}
}

// TestNothingThatServersSendIsLogged by libraries, which write to the standard logger.
func TestNothingThatServersSendIsLogged(t *testing.T) {
	before := log.Writer()
	defer log.SetOutput(before)
	log.SetOutput(os.Stderr)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if code := runCommandLine([]string{"toolcell", "--version"}, null, null, null); code != 0 || log.Writer() != io.Discard {
		t.Errorf("exit %d, and the standard logger writes to %v", code, log.Writer())
	}
}

// TestStacksGoToTheLogAlone, and what the standard logger gets goes nowhere still.
func TestStacksGoToTheLogAlone(t *testing.T) {
	beforeLog, before := log.Writer(), slog.Default()
	defer func() {
		slog.SetDefault(before)
		log.SetOutput(beforeLog)
	}()
	var out strings.Builder
	keepLog(slog.New(slog.NewTextHandler(&out, nil)))
	log.Print("bytes that a server sent")
	err := contain.Call("answering", func() error { panic("nil map") })
	var p *contain.PanicError
	if !errors.As(err, &p) || strings.Contains(err.Error(), "nil map") {
		t.Fatalf("error = %v", err)
	}
	if got := out.String(); !strings.Contains(got, "id="+p.ID) || !strings.Contains(got, "main_test.go") || strings.Contains(got, "bytes that") {
		t.Errorf("log = %q", got)
	}
}
