// Command count measures the source of this module, so that two states of it can be
// compared: lines of code and of comments for each language, and what makes the way
// through the Go code long.
//
//	go run ./.ci/count [DIR]      # one tree; the one that it stands in by default
//	go run ./.ci/count OLD NEW    # two, with the difference in percent
//
// A line of code has something on it that is no comment; a Python docstring is a comment.
// Product is what a user gets, with the scripts that run inside; tests are files that only
// tests use, with their scripts (txtar) but without data. Left out: what .gitignore names, data, documents.
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const module = "github.com/toolcell/toolcell/"

// counts are numbers by what they count, in the order of names.
type counts map[string]int

// names are the rows of the table.
var names = []string{
	"product Go, code", "product Go, comments", "product Python, code", "product Python, comments", "product C, code",
	"tests Go, code", "tests Python, code", "tests txtar, code",
	"packages", "product files over 450 lines", "product functions over 90 lines", "product lines over 120 characters",
	// Hand-overs.
	"exported names", "imports of one package of ours by another", "uses of a name of another package of ours",
	"parameters of function type", "fields of function type", "interfaces", "types that are another name of one", "generic functions and types",
}

func main() {
	dirs := os.Args[1:]
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	var all []counts
	for _, dir := range dirs[:min(2, len(dirs))] {
		c, err := count(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, "count:", err)
			os.Exit(1)
		}
		all = append(all, c)
	}
	for _, name := range names {
		fmt.Printf("%-45s", name)
		for _, c := range all {
			fmt.Printf("%9d", c[name])
		}
		if len(all) == 2 && all[0][name] > 0 {
			fmt.Printf("%+8.1f %%", 100*(float64(all[1][name])/float64(all[0][name])-1))
		}
		fmt.Println()
	}
}

// count measures the tracked files below dir.
func count(dir string) (counts, error) {
	list := exec.Command("git", "-C", dir, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	c, packages, exported := counts{}, map[string]bool{}, map[string]bool{}
	edges := map[string]bool{}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if os.IsNotExist(err) || strings.Contains(name, "testdata/") && !strings.HasSuffix(name, ".txtar") || strings.HasPrefix(name, ".ci/") || strings.HasPrefix(name, "examples/") {
			continue
		}
		if err != nil {
			return nil, err
		}
		kind := "product"
		if isTest(name) {
			kind = "tests"
		}
		switch filepath.Ext(name) {
		case ".go":
			if err := countGo(c, kind, name, text, edges, exported); err != nil {
				return nil, err
			}
			if kind == "product" {
				packages[filepath.Dir(name)] = true
			}
		case ".py":
			countPython(c, kind, string(text))
		case ".c", ".h":
			countC(c, string(text))
		case ".txtar":
			for line := range strings.Lines(string(text)) {
				if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
					c["tests txtar, code"]++
				}
			}
		}
	}
	c["packages"], c["exported names"], c["imports of one package of ours by another"] = len(packages), len(exported), len(edges)
	return c, nil
}

// isTest reports whether only tests use a file.
func isTest(name string) bool {
	dir := filepath.Base(filepath.Dir(name))
	return strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/tests/") || strings.Contains(name, "testdata/") ||
		strings.HasSuffix(dir, "test") || dir == "mkimage" || dir == "seeds" || dir == "e2e"
}

func countGo(c counts, kind, name string, text []byte, edges, exported map[string]bool) error {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, text, parser.ParseComments)
	if err != nil {
		return err
	}
	code, comments := map[int]bool{}, map[int]bool{}
	var s scanner.Scanner
	file := token.NewFileSet().AddFile(name, -1, len(text))
	s.Init(file, text, nil, scanner.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		lines := code
		if tok == token.COMMENT {
			lines = comments
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		for i := range strings.Count(lit, "\n") + 1 {
			lines[file.Line(pos)+i] = true
		}
	}
	maps.DeleteFunc(comments, func(line int, _ bool) bool { return code[line] })
	c[kind+" Go, code"] += len(code)
	c[kind+" Go, comments"] += len(comments)
	if kind == "product" {
		countShape(c, files, f, name, text)
		countHandOvers(c, f, filepath.Dir(name), edges, exported)
	}
	return nil
}

func countShape(c counts, files *token.FileSet, f *ast.File, name string, text []byte) {
	lines := 0
	for line := range strings.Lines(string(text)) {
		lines++
		if len([]rune(strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    "))) > 120 {
			c["product lines over 120 characters"]++
		}
	}
	if lines > 450 {
		c["product files over 450 lines"]++
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && files.Position(fn.End()).Line-files.Position(fn.Pos()).Line+1 > 90 {
			c["product functions over 90 lines"]++
		}
	}
}

// countHandOvers counts what one has to follow when one reads: names of other packages,
// functions that are passed on, interfaces.
func countHandOvers(c counts, f *ast.File, dir string, edges, exported map[string]bool) {
	ours := map[string]bool{}
	for _, spec := range f.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if rest, ok := strings.CutPrefix(path, module); ok {
			local := filepath.Base(rest)
			if spec.Name != nil {
				local = spec.Name.Name
			}
			ours[local] = true
			edges[dir+" "+rest] = true
		}
	}
	note := func(name string) {
		if ast.IsExported(name) {
			exported[dir+"."+name] = true
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				note(d.Name.Name)
			}
			if d.Type.TypeParams != nil {
				c["generic functions and types"]++
			}
			c["parameters of function type"] += functions(d.Type.Params)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					note(spec.Name.Name)
					if spec.Assign.IsValid() {
						c["types that are another name of one"]++
					}
					if spec.TypeParams != nil {
						c["generic functions and types"]++
					}
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						note(n.Name)
					}
				}
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			c["fields of function type"] += functions(n.Fields)
		case *ast.InterfaceType:
			if n.Methods.NumFields() > 0 {
				c["interfaces"]++
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && ours[x.Name] {
				c["uses of a name of another package of ours"]++
			}
		}
		return true
	})
}

// functions counts the fields or parameters whose type is a function.
func functions(list *ast.FieldList) (n int) {
	for _, field := range list.List {
		if _, ok := field.Type.(*ast.FuncType); ok {
			n += max(1, len(field.Names))
		}
	}
	return n
}

// countPython takes a string in triple quotes at the beginning of a line for a docstring.
func countPython(c counts, kind, text string) {
	doc := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case doc != "":
			c[kind+" Python, comments"]++
			if strings.Contains(line, doc) {
				doc = ""
			}
		case line == "":
		case strings.HasPrefix(line, `"""`), strings.HasPrefix(line, `r"""`):
			c[kind+" Python, comments"]++
			if strings.Count(line, `"""`) == 1 {
				doc = `"""`
			}
		case line[0] == '#':
			c[kind+" Python, comments"]++
		default:
			c[kind+" Python, code"]++
		}
	}
}

func countC(c counts, text string) {
	in := false
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		switch {
		case in:
			in = !strings.Contains(line, "*/")
		case strings.HasPrefix(line, "/*"):
			in = !strings.Contains(line, "*/")
		case line != "" && !strings.HasPrefix(line, "//"):
			c["product C, code"]++
		}
	}
}
