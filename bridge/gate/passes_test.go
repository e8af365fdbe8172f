package gate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// methods are what code can ask of the host, as the switches of hostapi and runner have it: an
// effect, which passes Do, or why it is none.
var methods = map[string]string{
	"call_tool": "effect", "read_resource": "effect", "get_prompt": "effect",
	"list_resources": "effect", "list_resource_templates": "effect", "list_prompts": "effect",
	"saved_source": "effect: AskSaved",
	"save_tool":    "a file of the user's project, with a mark of what was read", "remove_tool": "such a file", "saved_failed": "a note",
	"display": "a picture", "read_printed": "what the session itself has printed",
	"list_servers": "documentation", "describe_servers": "documentation", "describe_server": "documentation", "tool_signature": "documentation",
	"list_tools": "documentation", "query_tool_docs": "documentation", "search_tool_docs": "documentation",
	"saved_tools": "documentation", "export_tools": "documentation; private sources are left to saved_source",
}

// TestEveryMethodOfTheHostIsKnown: a new one is an effect, or has a reason why it is none.
func TestEveryMethodOfTheHostIsKnown(t *testing.T) {
	found := map[string]bool{}
	note := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			name, _ := strconv.Unquote(lit.Value)
			found[name] = true
		}
	}
	files, err := filepath.Glob("../hostapi/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	files = append(files, "../runner/call.go")
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SwitchStmt:
				if !isMethod(n.Tag) {
					return true
				}
				for _, clause := range n.Body.List {
					for _, e := range clause.(*ast.CaseClause).List {
						note(e)
					}
				}
			case *ast.BinaryExpr:
				if isMethod(n.X) {
					note(n.Y)
				}
			case *ast.ValueSpec:
				if n.Names[0].Name != "effects" {
					return true
				}
				for _, e := range n.Values[0].(*ast.CompositeLit).Elts {
					pair := e.(*ast.KeyValueExpr)
					note(pair.Key)
					if name, _ := strconv.Unquote(pair.Key.(*ast.BasicLit).Value); methods[name] != "effect" {
						t.Errorf("%s gets to servers and is no effect here", name)
					}
				}
			}
			return true
		})
	}
	for name := range found {
		if methods[name] == "" {
			t.Errorf("the method %s is neither an effect nor said to be none", name)
		}
	}
	for name := range methods {
		if !found[name] {
			t.Errorf("%s is in the table, and no method", name)
		}
	}
}

// isMethod reports whether an expression is the method of a host call.
func isMethod(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "method"
	case *ast.SelectorExpr:
		return e.Sel.Name == "Method"
	}
	return false
}

// openings are the calls that send something to a server, count it, or grant something, and
// the other packages that may make them, each with the reason.
var openings = map[*regexp.Regexp]map[string]string{
	regexp.MustCompile(`\.Send\(ctx`):                          {},
	regexp.MustCompile(`mcpproxy\.Want\{`):                     {},
	regexp.MustCompile(`\.(Reserve|AllowedUnasked)\(`):         {},
	regexp.MustCompile(`\.(AskBefore|AskForm)\(`):              {},
	regexp.MustCompile(`\.Check\(ctx, (policy\.Call|e\.call)`): {},
	regexp.MustCompile(`\.GrantNetwork\(`): {
		"bridge/run": "decides; Grant asks before the code starts", "bridge/network": "says which section of the policy would allow a host",
	},
	regexp.MustCompile(`\.GrantPackages\(`): {
		"bridge/run": "decides; Grant asks before the code starts", "cmd/toolcell": "packages add and lock: the user has typed it",
		"cmd/toolcell/internal/sandboxes": "for the command of a server's entry, which is the user's",
	},
	regexp.MustCompile(`\.GrantNPM\(`): {"cmd/toolcell/internal/sandboxes": "the same"},
}

// TestNothingPassesBesideTheGate: only this package makes such calls, except for reasons.
func TestNothingPassesBesideTheGate(t *testing.T) {
	used := map[string]bool{}
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		dir := filepath.Dir(path)
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "examples/") || dir == "bridge/gate" {
			return err
		}
		source, err := fs.ReadFile(root, path)
		for opening, may := range openings {
			if found := opening.Find(source); found != nil {
				used[opening.String()+dir] = true
				if may[dir] == "" {
					t.Errorf("%s calls %s beside the gate", path, found)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for opening, may := range openings {
		for dir := range may {
			if !used[opening.String()+dir] {
				t.Errorf("%s is said to call %s, and does not", dir, opening)
			}
		}
	}
}
