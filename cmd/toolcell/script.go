package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/urfave/cli/v2"
)

// A script is code and the sys.argv it finds, as python would make it.
type script struct {
	text string
	argv []string
}

// maxScript bounds what is read, in bytes; the run itself allows less, and says
// how much.
const maxScript = 16 << 20

// readScript reads the code from where the command line says, standard input
// if it says nothing.
func readScript(c *cli.Context, in *os.File) (script, error) {
	sources, arguments := c.Args().Slice(), []string(nil)
	for i, arg := range sources {
		if arg == "--" {
			sources, arguments = sources[:i], sources[i+1:]
			break
		}
	}
	for _, arg := range arguments {
		if !utf8.ValidString(arg) {
			return script{}, console.Usagef("the argument %q is not text in UTF-8", arg)
		}
	}
	argv := func(name string) []string { return append([]string{name}, arguments...) }
	switch {
	case c.IsSet("c") && len(sources) > 0:
		return script{}, console.Usagef("give either -c CODE or a file, not both; arguments for the code stand after --")
	case c.IsSet("c"):
		return script{c.String("c"), argv("-c")}, nil
	case len(sources) > 1:
		return script{}, console.Usagef("give one file, got %q; arguments for the code stand after --", strings.Join(sources, " "))
	case len(sources) == 1 && sources[0] != "-":
		text, err := readFile(c.Context, sources[0])
		return script{text, argv(sources[0])}, err
	case c.Bool("i") && len(sources) > 0:
		return script{}, console.Usagef("with -i standard input is the prompt's: give a file or -c CODE")
	case c.Bool("i"):
		return script{"", argv("")}, nil
	case len(sources) == 0 && console.Terminal(in):
		return script{}, console.Usagef("there is no code: give -c CODE or a file, - and type it, or -i for a prompt")
	}
	text, err := readText(c.Context, in, "standard input")
	return script{text, argv("-")}, err
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
