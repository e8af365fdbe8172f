package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
)

// A script is code with its sys.argv, which is as python would make it.
type script struct {
	text string
	argv []string
	file string // it was read from; empty for others
	// stdinLeft: standard input was not read for code, so the code may read it.
	stdinLeft bool
}

// maxScript bounds the code, in bytes. The run itself has a lower limit, which its error
// states.
const maxScript = 16 << 20

// readScript reads the code from where the command line says, standard input
// if it says nothing.
func readScript(ctx context.Context, o execOptions) (script, error) {
	source, arguments := "", o.Args
	if !o.CodeNamed && len(arguments) > 0 {
		source, arguments = arguments[0], arguments[1:]
	}
	for _, arg := range arguments {
		if !utf8.ValidString(arg) {
			return script{}, console.Invalidf("the argument %q is not text in UTF-8", arg)
		}
	}
	argv := func(name string) []string { return append([]string{name}, arguments...) }
	switch {
	case o.CodeNamed:
		return script{text: o.Code, argv: argv("-c"), stdinLeft: true}, nil
	case source != "" && source != "-":
		text, err := readFile(ctx, source)
		return script{text: text, argv: argv(source), file: source, stdinLeft: true}, err
	case o.Prompt && source != "":
		return script{}, console.Usagef("with -i standard input is the prompt's: give a file or -c CODE")
	case o.Prompt:
		return script{argv: argv("")}, nil
	case source == "" && console.Terminal(o.In):
		return script{}, console.Usagef("nothing to run: pass a FILE, -c CODE, - (stdin), or -i for a prompt")
	}
	text, err := readText(ctx, o.In, "standard input")
	return script{text: text, argv: argv("-")}, err
}

func readFile(ctx context.Context, name string) (string, error) {
	f, err := os.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && looksLikeCode(name):
		return "", console.Invalidf("there is no file %q; for code on the command line: toolcell exec -c %s", name, text.ShellWord(name))
	case errors.Is(err, fs.ErrNotExist):
		return "", console.Invalidf("there is no such file: %q", name)
	case err != nil:
		return "", console.Invalidf("reading the code: %w", err)
	}
	defer f.Close()
	return readText(ctx, f, name)
}

// looksLikeCode reports whether a word has a character that is common in code and rare in
// paths of scripts.
func looksLikeCode(word string) bool { return strings.ContainsAny(word, "()[]{}=;:\"'\n") }

// readText reads a file that may be a pipe or a terminal, where the end may be
// long in coming: it returns early when ctx ends.
func readText(ctx context.Context, f *os.File, name string) (string, error) {
	body, err := contain.Await(ctx, "reading the code", func() ([]byte, error) { return io.ReadAll(io.LimitReader(f, maxScript+1)) })
	// Editors on Windows put a byte order mark in front, which Python accepts too.
	text := string(bytes.TrimPrefix(body, []byte("\ufeff")))
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", console.Invalidf("reading the code: %w", err)
	case len(body) > maxScript:
		return "", console.Invalidf("reading the code: %s has more than %d MiB", name, maxScript>>20)
	case !utf8.ValidString(text):
		return "", console.Invalidf("reading the code: %s is not text in UTF-8", name)
	}
	return text, nil
}
