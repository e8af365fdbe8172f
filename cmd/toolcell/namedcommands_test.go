package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// namedCommand finds commands of ours in texts for users: "toolcell images pull", and
// " images pull " behind the path of this program.
var namedCommand = regexp.MustCompile(`(?:\btoolcell|^) ([a-z]+(?: (?:--?)?[A-Za-z][a-z-]*)*)`)

// TestMessagesNameCommandsThatExist: what an error, a hint or a cure tells the user to
// type has subcommands and flags that there are.
func TestMessagesNameCommandsThatExist(t *testing.T) {
	app := testApp()
	checked := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				return true
			}
			for _, m := range namedCommand.FindAllStringSubmatch(text, -1) {
				words := strings.Fields(m[1])
				if !slices.ContainsFunc(app.Commands, func(c *cli.Command) bool { return c.HasName(words[0]) }) {
					continue // "toolcell keeps its files in"
				}
				checked++
				typed := findCommand(app, append([]string{"toolcell"}, words...))
				if subs := typed.parsed.Subcommands; len(subs) > 0 && len(words) > 1 && !strings.HasPrefix(words[1], "-") {
					t.Errorf("%s: %q has no command %q", path, m[0], words[1])
				}
				for _, word := range words {
					if strings.HasPrefix(word, "-") && typed.flag(word) == nil {
						t.Errorf("%s: %q has no flag %s", path, m[0], word)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 20 {
		t.Errorf("only %d commands were found", checked)
	}
}
