package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// launchers call a function of ours where no caller of ours can recover its panic, or
// keep it as done though it panicked. Beside them there is the go statement.
var launchers = []string{
	"(*sync.WaitGroup).Go",
	"(*sync.Once).Do", "sync.OnceFunc", "sync.OnceValue", "sync.OnceValues",
	"time.AfterFunc", "context.AfterFunc",
	"(*golang.org/x/sync/errgroup.Group).Go", "(*golang.org/x/sync/errgroup.Group).TryGo",
	"(*golang.org/x/sync/singleflight.Group).Do", "(*golang.org/x/sync/singleflight.Group).DoChan",
	"net/http.HandleFunc", "(*net/http.ServeMux).HandleFunc", "(*net/http.ServeMux).Handle",
}

// uncontained are the functions that need no containment, and why.
var uncontained = map[string]string{
	"oci/container.endWithHost": "it runs in the process that becomes pid 1 of a sandbox, which is to end if it panics",
}

// notShipped are packages that no binary of a release has.
var notShipped = []string{"examples/...", "cmd/toolcell/e2e", "cmd/toolcell/internal/terminaltest", "rootfs/internal/mkimage"}

// TestPanicsAreContained where a goroutine begins, a timer fires, a group runs, a
// handler answers: the function itself must have the recover, as its first act. What
// text.Pattern compiles is a constant of a package, so that tests find one that is none.
//
//test:alone
func TestPanicsAreContained(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command, and the source")
	}
	w := newSourceWalk(t)
	for _, p := range w.packages {
		for _, f := range p.files {
			w.check(t, p, f)
		}
	}
	if w.seen < 100 {
		t.Errorf("%d functions were looked at: the walk sees no source", w.seen)
	}
}

// TestWalkFindsWhatIsNotContained, so that the test above can fail.
//
//test:alone
func TestWalkFindsWhatIsNotContained(t *testing.T) {
	for source, found := range map[string]bool{
		"go func() {}()": true,
		"go work()":      true,
		"go func() { defer contain.Recover(`x`, nil); work() }()":                 false,
		"go func() { defer close(c); defer contain.Recover(`x`, nil); work() }()": false,
		"go func() { work(); defer contain.Recover(`x`, nil) }()":                 true,
		"go func() { defer work(); defer contain.Recover(`x`, nil) }()":           true,
		"go func() { defer func() { contain.Recover(`x`, nil) }(); work() }()":    true,
		"go contained()":                                                           false,
		"go work2.work()":                                                          true,
		"var g sync.WaitGroup; g.Go(work)":                                         true,
		"var g sync.WaitGroup; g.Go(contained)":                                    false,
		"var g sync.WaitGroup; g.Go(param)":                                        true,
		"var g sync.WaitGroup; g.Go(contain.Func(`x`, param))":                     false,
		"var o sync.Once; o.Do(work)":                                              true,
		"var o sync.Once; o.Do(func() { close(c) })":                               false,
		"var o sync.Once; o.Do(func() { close(c); work() })":                       true,
		"f := time.AfterFunc; f(0, work)":                                          true,
		"time.AfterFunc(0, func() { work() })":                                     true,
		"_ = &http.Server{Handler: h}":                                             true,
		"_ = &http.Server{Handler: contain.Handler(`x`, h)}":                       false,
		"_ = sync.OnceValue(func() bool { return contain.Call(`x`, nil) == nil })": false,
	} {
		w := newSourceWalk(t, `package p
import ("context"; "net"; "net/http"; "sync"; "time"; "github.com/toolcell/toolcell/internal/contain")
type worker struct{}
func (worker) work() {}
var work2 worker
var c chan int
var h http.Handler
var _ sync.Mutex; var _ time.Time; var _ = contain.Point
func work() {}
func dial(context.Context, string, string) (net.Conn, error) { return nil, nil }
func contained() { defer contain.Recover("x", nil) }
func f(param func()) { `+source+` }`)
		got := &collector{}
		w.check(got, w.packages[0], w.packages[0].files[0])
		if (got.errors > 0) != found {
			t.Errorf("%s: found = %t", source, got.errors > 0)
		}
	}
}

type collector struct{ errors int }

func (c *collector) Errorf(string, ...any) { c.errors++ }

type sourcePackage struct {
	name  string // within the module
	files []*ast.File
	info  *types.Info
}

// A sourceWalk looks at all packages of the module with their types.
type sourceWalk struct {
	fset     *token.FileSet
	packages []*sourcePackage
	bodies   map[string]*ast.BlockStmt // of declared functions, by their full name
	seen     int
}

// newSourceWalk reads the module, or the one file that is given.
func newSourceWalk(t *testing.T, source ...string) *sourceWalk {
	t.Helper()
	w := &sourceWalk{fset: token.NewFileSet(), bodies: map[string]*ast.BlockStmt{}}
	const module = "github.com/toolcell/toolcell"
	listed := listOnce(t)
	exports := map[string]string{}
	for _, p := range listed {
		exports[p.ImportPath] = p.Export
	}
	imp := importer.ForCompiler(w.fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %q", path)
		}
		return os.Open(exports[path])
	})
	if len(source) > 0 {
		f, err := parser.ParseFile(w.fset, "p.go", source[0], 0)
		if err != nil {
			t.Fatal(err)
		}
		w.add(t, imp, "p", []*ast.File{f})
		return w
	}
	for _, p := range listed {
		name, ours := strings.CutPrefix(p.ImportPath, module+"/")
		if !ours || anyMatch(notShipped, name) || strings.HasSuffix(name, "test") || name == "internal/contain" {
			continue
		}
		var files []*ast.File
		for _, file := range slices.Concat(p.GoFiles, p.CgoFiles) {
			f, err := parser.ParseFile(w.fset, filepath.Join(p.Dir, file), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		w.add(t, imp, name, files)
	}
	return w
}

type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles, CgoFiles       []string
}

var listing []listedPackage

func listOnce(t *testing.T) []listedPackage {
	t.Helper()
	if listing != nil {
		return listing
	}
	cmd := exec.Command("go", "list", "-tags", buildTags(), "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles", "./...")
	cmd.Dir = "../.."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return listing
		} else if err != nil {
			t.Fatal(err)
		}
		listing = append(listing, p)
	}
}

func (w *sourceWalk) add(t *testing.T, imp types.Importer, name string, files []*ast.File) {
	t.Helper()
	p := &sourcePackage{name, files, &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
	}}
	c := types.Config{Importer: imp, FakeImportC: true, Error: func(err error) { t.Error("reading the source:", err) }}
	_, _ = c.Check("github.com/toolcell/toolcell/"+name, w.fset, files, p.info)
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				w.bodies[p.info.Defs[fn.Name].(*types.Func).FullName()] = fn.Body
			}
		}
	}
	w.packages = append(w.packages, p)
}

// check reports what is handed to a launcher and not contained.
func (w *sourceWalk) check(t interface{ Errorf(string, ...any) }, p *sourcePackage, f *ast.File) {
	need := func(fn ast.Expr, why string) {
		w.seen++
		if !w.contained(p, fn) {
			t.Errorf("%s: what %s gets has no contain.Recover or contain.Error as its first act", w.fset.Position(fn.Pos()), why)
		}
	}
	var stack []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		switch n := n.(type) {
		case *ast.GoStmt:
			need(n.Call.Fun, "go")
		case *ast.CallExpr:
			if p.info.Types[n.Fun].IsType() {
				return true
			}
			fn := w.function(p, n.Fun)
			if fn != nil && fn.FullName() == patternName && !isConstant(p, n, stack) {
				t.Errorf("%s: what text.Pattern gets is not a constant of the package", w.fset.Position(n.Pos()))
			}
			if fn != nil && slices.Contains(launchers, fn.FullName()) {
				need(n.Args[len(n.Args)-1], fn.FullName())
			}
		case *ast.Ident: // a launcher that is not called here is called where this cannot see it
			if fn, ok := p.info.Uses[n].(*types.Func); ok && slices.Contains(launchers, fn.FullName()) && !called(stack) {
				t.Errorf("%s: %s is not called but used as a value", w.fset.Position(n.Pos()), fn.FullName())
			}
		case *ast.KeyValueExpr:
			if lit, ok := stack[len(stack)-2].(*ast.CompositeLit); ok {
				if key, ok := n.Key.(*ast.Ident); ok && isCallback(p.info.Types[lit].Type, key.Name) {
					need(n.Value, key.Name)
				}
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if sel, ok := to.(*ast.SelectorExpr); ok && len(n.Lhs) == len(n.Rhs) && isCallback(p.info.Types[sel.X].Type, sel.Sel.Name) {
					need(n.Rhs[i], sel.Sel.Name)
				}
			}
		}
		return true
	})
}

// callbacks are fields whose functions libraries call in goroutines of their own.
var callbacks = []string{
	"net/http.Server.Handler", "net/http.Transport.DialContext", "net/http.Transport.DialTLSContext",
	"net.Dialer.Control", "net.Dialer.ControlContext", "os/exec.Cmd.Cancel",
}

func isCallback(of types.Type, field string) bool {
	return of != nil && slices.Contains(callbacks, strings.TrimPrefix(of.String(), "*")+"."+field)
}

// called reports whether the innermost identifier of stack is the function of a call.
func called(stack []ast.Node) bool {
	i := len(stack) - 1
	fun := stack[i]
	for i--; i >= 0; i-- {
		switch n := stack[i].(type) {
		case *ast.SelectorExpr:
			fun = n
		case *ast.CallExpr:
			return n.Fun == fun
		default:
			return false
		}
	}
	return false
}

// function returns the function or method that an expression names, nil if none.
func (w *sourceWalk) function(p *sourcePackage, e ast.Expr) *types.Func {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		fn, _ := p.info.Uses[e].(*types.Func)
		return fn
	case *ast.SelectorExpr:
		fn, _ := p.info.Uses[e.Sel].(*types.Func)
		return fn
	case *ast.IndexExpr:
		return w.function(p, e.X)
	}
	return nil
}

// contained reports whether a function value contains its panics.
func (w *sourceWalk) contained(p *sourcePackage, e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.FuncLit:
		return w.containedBody(p, e.Body)
	case *ast.CallExpr: // contain.Func and its kin
		fn := w.function(p, e.Fun)
		if fn == nil || strings.HasPrefix(fn.FullName(), containPath) {
			return fn != nil
		}
		return w.returnsContained(fn)
	}
	fn := w.function(p, e)
	if fn == nil {
		return false
	}
	if !strings.Contains(fn.Pkg().Path(), ".") {
		return fn.Pkg().Path() == "net" // a Dialer's own
	}
	fn = fn.Origin()
	if _, ok := uncontained[strings.TrimPrefix(fn.FullName(), "github.com/toolcell/toolcell/")]; ok {
		return true
	}
	body := w.bodies[fn.FullName()]
	return body != nil && w.containedBody(w.packageOf(fn), body)
}

// returnsContained reports whether a function of ours ends with returning one that
// contains its panics.
func (w *sourceWalk) returnsContained(fn *types.Func) bool {
	body := w.bodies[fn.FullName()]
	if body == nil || len(body.List) == 0 {
		return false
	}
	ret, ok := body.List[len(body.List)-1].(*ast.ReturnStmt)
	return ok && len(ret.Results) == 1 && w.contained(w.packageOf(fn), ret.Results[0])
}

func (w *sourceWalk) packageOf(fn *types.Func) *sourcePackage {
	i := slices.IndexFunc(w.packages, func(p *sourcePackage) bool {
		return strings.HasSuffix(fn.Pkg().Path(), "/"+p.name)
	})
	return w.packages[i]
}

const containPath = "github.com/toolcell/toolcell/internal/contain."

// containedBody reports whether a function recovers before anything else in it can
// panic: only the release of what it holds may be deferred earlier, to run later.
// A body that only closes a channel or receives, or only calls contain, needs nothing.
func (w *sourceWalk) containedBody(p *sourcePackage, body *ast.BlockStmt) bool {
	for _, s := range body.List {
		if d, ok := s.(*ast.DeclStmt); ok && d.Decl.(*ast.GenDecl).Tok == token.VAR && !hasValues(d) {
			continue
		}
		d, ok := s.(*ast.DeferStmt)
		if !ok {
			break
		}
		if fn := w.function(p, d.Call.Fun); fn != nil {
			switch fn.FullName() {
			case containPath + "Recover", containPath + "Error":
				return true
			}
		}
		if !releasesOf(w, p, d.Call) {
			return false
		}
	}
	return len(body.List) == 1 && w.containedStatement(p, body.List[0])
}

func hasValues(d *ast.DeclStmt) bool {
	return slices.ContainsFunc(d.Decl.(*ast.GenDecl).Specs, func(s ast.Spec) bool { return len(s.(*ast.ValueSpec).Values) > 0 })
}

// releases reports whether a deferred call does no more than give something back.
func releasesOf(w *sourceWalk, p *sourcePackage, call *ast.CallExpr) bool {
	if id, ok := call.Fun.(*ast.Ident); ok {
		_, builtin := p.info.Uses[id].(*types.Builtin)
		return builtin || p.info.Types[call.Fun].Type.String() == "context.CancelFunc"
	}
	if fn := w.function(p, call.Fun); fn != nil && fn.Pkg() != nil {
		return slices.Contains([]string{"sync", "context", "time"}, fn.Pkg().Path())
	}
	lit, ok := call.Fun.(*ast.FuncLit)
	if !ok {
		return false
	}
	for _, s := range lit.Body.List { // only channel operations and such calls
		switch s := s.(type) {
		case *ast.SendStmt:
		case *ast.ExprStmt:
			switch x := s.X.(type) {
			case *ast.UnaryExpr:
			case *ast.CallExpr:
				if !releasesOf(w, p, x) {
					return false
				}
			default:
				return false
			}
		default:
			return false
		}
	}
	return true
}

// containedStatement reports whether the only statement of a function cannot panic, or
// is contained by what it calls.
func (w *sourceWalk) containedStatement(p *sourcePackage, s ast.Stmt) bool {
	var e ast.Expr
	switch s := s.(type) {
	case *ast.ReturnStmt:
		if len(s.Results) == 1 {
			e = s.Results[0]
		}
	case *ast.ExprStmt:
		e = s.X
	case *ast.AssignStmt:
		if len(s.Rhs) == 1 {
			e = s.Rhs[0]
		}
	}
	if b, ok := e.(*ast.BinaryExpr); ok {
		e = b.X
	}
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.ARROW {
		return true
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "close" {
		_, builtin := p.info.Uses[id].(*types.Builtin)
		return builtin
	}
	fn := w.function(p, call.Fun)
	return fn != nil && strings.HasPrefix(fn.FullName(), containPath)
}

const patternName = "github.com/toolcell/toolcell/internal/text.Pattern"

// isConstant reports whether a call outside of functions has a constant as its only argument.
func isConstant(p *sourcePackage, call *ast.CallExpr, stack []ast.Node) bool {
	inFunction := slices.ContainsFunc(stack, func(n ast.Node) bool { _, in := n.(*ast.FuncDecl); return in })
	return !inFunction && p.info.Types[call.Args[0]].Value != nil
}
