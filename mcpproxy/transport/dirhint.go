package transport

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// maxHintWords bounds how much of a command is looked at.
const maxHintWords = 64

// withDirHint adds a hint to the error of a failed start if an argument names a file that
// is in the directory of this process, but not where the server starts: the entry was
// written for a client that starts it here.
func withDirHint(s config.Server, err error) error {
	here, cwdErr := os.Getwd()
	if s.Dir != "" || s.DefaultDir == "" || cwdErr != nil {
		return err
	}
	if word := fileOnlyIn(here, s.DefaultDir, s.Args); word != "" {
		return fmt.Errorf("%w; %q is in the folder that toolcell was started in, but the server starts in your home directory: write the full path, or set \"cwd\" in %s", err, word, s.Source)
	}
	return err
}

// fileOnlyIn returns the first word of arguments that names a file of one directory
// that the other does not have.
func fileOnlyIn(here, there string, args []string) string {
	words := strings.Fields(strings.Join(args[:min(len(args), maxHintWords)], " ")) // sh -c "python server.py"
	before := ""
	for _, word := range words[:min(len(words), maxHintWords)] {
		for _, name := range filesOf(before, word) {
			if filepath.IsAbs(name) || !isFile(filepath.Join(here, name)) {
				continue
			}
			if _, err := os.Stat(filepath.Join(there, name)); errors.Is(err, fs.ErrNotExist) {
				return word
			}
		}
		before = word
	}
	return ""
}

// filesOf returns the files that a word may name.
func filesOf(before, word string) []string {
	if before == "-m" { // a module of Python
		path := strings.ReplaceAll(word, ".", "/")
		return []string{path + ".py", path + "/__main__.py"}
	}
	if _, value, ok := strings.Cut(word, "="); ok { // --config=server.toml
		return []string{value}
	}
	return []string{word}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
