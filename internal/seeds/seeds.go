// Package seeds has real material with which fuzzing begins: seeds that were made up
// missed what one line of a real schema found.
package seeds

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	mostBytes = 8 << 10 // of one seed: mutations of a longer one find little
	mostTools = 60
)

// Tools returns definitions of tools as public servers sent them: the first and the
// longest that is short enough, of each server.
func Tools(f *testing.F) (all [][]byte) {
	f.Helper()
	for _, file := range glob(f, "mcpproxy/mcptest/testdata/servers/*.json") {
		var list struct {
			Tools []json.RawMessage `json:"tools"`
		}
		if err := json.Unmarshal(read(f, file), &list); err != nil {
			f.Fatalf("%s: %v", file, err)
		}
		list.Tools = slices.DeleteFunc(list.Tools, func(t json.RawMessage) bool { return len(t) > mostBytes })
		if len(list.Tools) == 0 {
			continue
		}
		longest := slices.MaxFunc(list.Tools, func(a, b json.RawMessage) int { return len(a) - len(b) })
		all = append(all, list.Tools[0], longest)
	}
	return all[:min(mostTools, len(all))]
}

// Files returns the files of this tree that a pattern of package filepath finds, those
// that are short enough.
func Files(f *testing.F, patterns ...string) (all [][]byte) {
	f.Helper()
	for _, p := range patterns {
		for _, file := range glob(f, p) {
			if text := read(f, file); len(text) <= mostBytes {
				all = append(all, text)
			}
		}
	}
	return all
}

// Configs returns the config files of clients that tests of this tree have.
func Configs(f *testing.F) (all [][]byte) {
	f.Helper()
	for _, top := range []string{"cmd/toolcell/e2e/testdata/written", "mcpproxy/clientconfig/testdata/clients"} {
		err := filepath.WalkDir(filepath.Join(root(f), top), func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() && d.Name() != "want.json" {
				if text := read(f, path); len(text) <= mostBytes {
					all = append(all, text)
				}
			}
			return err
		})
		if err != nil {
			f.Fatal(err)
		}
	}
	return all
}

// Blocks returns the blocks of a language in the documentation.
func Blocks(f *testing.F, language string) (all []string) {
	f.Helper()
	for _, file := range append(glob(f, "docs/*.md"), glob(f, "*.md")...) {
		for _, part := range strings.Split(string(read(f, file)), "\n```"+language+"\n")[1:] {
			if text, _, ok := strings.Cut(part, "\n```"); ok && len(text) <= mostBytes {
				all = append(all, text)
			}
		}
	}
	if len(all) == 0 {
		f.Fatalf("the documentation has no block of %s", language)
	}
	return all
}

func glob(f *testing.F, pattern string) []string {
	f.Helper()
	files, err := filepath.Glob(filepath.Join(root(f), pattern))
	if err != nil || len(files) == 0 {
		f.Fatalf("no file is like %s: %v", pattern, err)
	}
	return files
}

func read(f *testing.F, file string) []byte {
	f.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	return text
}

// root is the folder of this tree.
func root(f *testing.F) string {
	f.Helper()
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	f.Fatalf("no folder around has a go.mod: %v", err)
	return ""
}
