package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/urfave/cli/v2"
)

// A script is code and the sys.argv it finds, as python would make it.
type script struct {
	text string
	argv []string
	file string // it was read from; empty for others
	// stdinLeft says that standard input is the code's: it was not read for code.
	stdinLeft bool
}

// maxScript bounds what is read, in bytes; the run itself allows less, and says
// how much.
const maxScript = 16 << 20

// readScript reads the code from where the command line says, standard input
// if it says nothing.
func readScript(c *cli.Context, in *os.File) (script, error) {
	source, arguments := "", c.Args().Slice()
	if !c.IsSet("c") && len(arguments) > 0 && arguments[0] != "--" {
		source, arguments = arguments[0], arguments[1:]
	}
	if len(arguments) > 0 && arguments[0] == "--" {
		arguments = arguments[1:]
	}
	for _, arg := range arguments {
		if !utf8.ValidString(arg) {
			return script{}, console.Usagef("the argument %q is not text in UTF-8", arg)
		}
	}
	argv := func(name string) []string { return append([]string{name}, arguments...) }
	switch {
	case c.IsSet("c"):
		return script{text: c.String("c"), argv: argv("-c"), stdinLeft: true}, nil
	case source != "" && source != "-":
		text, err := readFile(c.Context, source)
		return script{text: text, argv: argv(source), file: source, stdinLeft: true}, err
	case c.Bool("i") && source != "":
		return script{}, console.Usagef("with -i standard input is the prompt's: give a file or -c CODE")
	case c.Bool("i"):
		return script{argv: argv("")}, nil
	case source == "" && console.Terminal(in):
		return script{}, console.Usagef("nothing to run: pass a FILE, -c CODE, - (stdin), or -i for a prompt")
	}
	text, err := readText(c.Context, in, "standard input")
	return script{text: text, argv: argv("-")}, err
}

func readFile(ctx context.Context, name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", &console.ExitError{Code: console.ExitUsage, Err: fmt.Errorf("reading the code: %w", err)}
	}
	defer f.Close()
	return readText(ctx, f, name)
}

// readText reads a file that may be a pipe or a terminal, where the end may be
// long in coming: it returns early when ctx ends.
func readText(ctx context.Context, f *os.File, name string) (string, error) {
	type outcome struct {
		body []byte
		err  error
	}
	read := make(chan outcome, 1)
	go func() {
		body, err := io.ReadAll(io.LimitReader(f, maxScript+1))
		read <- outcome{body, err}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case o := <-read:
		switch {
		case o.err != nil:
			return "", &console.ExitError{Code: console.ExitUsage, Err: fmt.Errorf("reading the code: %w", o.err)}
		case len(o.body) > maxScript:
			return "", &console.ExitError{Code: console.ExitUsage, Err: fmt.Errorf("reading the code: %s has more than %d MiB", name, maxScript>>20)}
		}
		// Editors of another world put a mark in front, which Python takes too.
		text := string(bytes.TrimPrefix(o.body, []byte("\ufeff")))
		if !utf8.ValidString(text) {
			return "", &console.ExitError{Code: console.ExitUsage, Err: fmt.Errorf("reading the code: %s is not text in UTF-8", name)}
		}
		return text, nil
	}
}
