package clientconfig

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// A syntax is a set of the ways to write a variable in a value.
type syntax int

const (
	braces     syntax = 1 << iota // ${NAME}
	defaults                      // ${NAME:-otherwise}
	dollar                        // $NAME
	envColon                      // ${env:NAME}
	fileRefs                      // ${file:PATH}
	folders                       // ${workspaceFolder}, ${userHome} and their like
	inputRefs                     // ${input:ID}
	curly                         // {env:NAME} and {file:PATH}
	secretRefs                    // ${{ secrets.NAME }}
	commands                      // $(COMMAND), which is never run
)

// reference finds everything that is a variable in one syntax or another:
// 1 secret, 2 in ${}, 3 and 4 kind and name in {}, 5 after a bare dollar. The opening of
// a command has no group.
var reference = text.Pattern(`\$\{\{\s*([^{}]*?)\s*\}\}|\$\{([^}]*)\}|\{(env|file):([^{}]*)\}|\$\(|\$([A-Za-z_][A-Za-z0-9_]*)`)

var (
	variableName = text.Pattern(`^[A-Za-z_][A-Za-z0-9_]*$`)
	inputName    = text.Pattern(`^[^\x00-\x1f{}]{1,128}$`)
)

// An expander replaces the variables in the values of one entry.
type expander struct {
	from   *File // nil if raw
	syntax syntax
	raw    bool // leave everything as it is written
	shell  bool // the value is for a shell, which has ${NAME} itself

	names   []config.Input // all that were asked for
	missing []config.Input // and those of them that have no value
}

// home resolves a leading ~/.
func (x *expander) home(path string) string {
	if x.raw {
		return path
	}
	return x.from.options.expandHome(path)
}

// expand replaces the variables in s. One without a value is noted in
// x.missing. A variable of another dialect is an error: a server that gets the
// literal text "${TOKEN}" fails later, far from the cause, or sends it on.
func (x *expander) expand(s string) (string, error) {
	if x.raw || !strings.ContainsAny(s, "${") {
		return s, nil
	}
	return text.Expand(s, reference(), x.value)
}

// value gives the value of a match of reference.
func (x *expander) value(match []string) (string, error) {
	whole := match[0]
	switch {
	case x.shell && strings.HasPrefix(whole, "${"):
		return whole, nil
	case strings.HasPrefix(whole, "${{") && strings.HasSuffix(whole, "}}"):
		return x.secret(match[1])
	case strings.HasPrefix(whole, "${"):
		return x.braced(match[2])
	case match[3] == "env" && x.syntax&curly != 0:
		return x.named(strings.TrimSpace(match[4]))
	case match[3] == "file" && x.syntax&curly != 0:
		return x.file(match[4])
	case whole == "$(" && x.syntax&commands != 0:
		return "", errors.New("$(…) would run a command, which is never done for a config file; put its output into a variable")
	case match[5] != "" && x.syntax&dollar != 0:
		return x.named(match[5])
	}
	return whole, nil // no variable in this dialect, nor taken for one by people
}

// braced gives the value of ${text}.
func (x *expander) braced(txt string) (string, error) {
	kind, rest, colon := strings.Cut(txt, ":")
	name, fallback, hasFallback := strings.Cut(txt, ":-")
	switch {
	case colon && kind == "env" && x.syntax&envColon != 0:
		return x.named(rest)
	case colon && kind == "file" && x.syntax&fileRefs != 0:
		return x.file(rest)
	case colon && kind == "input" && x.syntax&inputRefs != 0:
		return x.input(rest)
	case x.syntax&folders != 0 && x.folder(txt) != "":
		return x.folder(txt), nil
	case x.syntax&braces != 0 && hasFallback && x.syntax&defaults != 0 && variableName().MatchString(name):
		if strings.Contains(fallback, "${") {
			return "", fmt.Errorf("the default of ${%s} has a variable in it, which is not supported", name)
		}
		return x.otherwise(name, fallback), nil
	case x.syntax&braces != 0 && variableName().MatchString(txt):
		return x.named(txt)
	}
	return "", fmt.Errorf("${%s} is not supported here, only %s", text.Printable(txt, 64), x.syntax)
}

// String names the syntaxes for an error.
func (s syntax) String() string {
	var all []string
	for _, f := range []struct {
		bit  syntax
		text string
	}{
		{braces, "${NAME}"},
		{defaults, "${NAME:-default}"},
		{dollar, "$NAME"},
		{envColon, "${env:NAME}"},
		{fileRefs, "${file:PATH}"},
		{folders, "${workspaceFolder} and ${userHome}"},
		{inputRefs, "${input:ID}"},
		{curly, "{env:NAME} and {file:PATH}"},
		{secretRefs, "${{ secrets.NAME }}"},
	} {
		if s&f.bit != 0 {
			all = append(all, f.text)
		}
	}
	if len(all) == 0 {
		return `the names of variables, in fields such as "env_vars"`
	}
	return strings.Join(all, ", ")
}

func (x *expander) otherwise(name, fallback string) string {
	if v := x.from.options.Variable(name); v != "" {
		return v
	}
	if v, ok := x.from.values[name]; ok {
		return v
	}
	return fallback
}

// named gives the value of a variable of the environment, or what the user set
// in its place.
func (x *expander) named(name string) (string, error) {
	if !variableName().MatchString(name) {
		return "", fmt.Errorf("%q is no name for a variable", text.Printable(name, 64))
	}
	return x.ask(config.Input{ID: name, Secret: true}), nil
}

// input gives what the client would ask its user for.
func (x *expander) input(id string) (string, error) {
	if !inputName().MatchString(id) {
		return "", fmt.Errorf("%q is no name for an input", text.Printable(id, 64))
	}
	in, ok := x.from.inputs[id]
	if !ok {
		in = config.Input{ID: id, Secret: true}
	}
	in.Asked = true
	names := in.Variables()
	ours, old := x.from.options.Variable(names[0]), x.from.options.Variable(names[1])
	if ours != "" && old != "" && ours != old {
		return "", fmt.Errorf("the variables %s and %s, its old name, have different values: unset one of them", names[0], names[1])
	}
	return x.ask(in), nil
}

func (x *expander) secret(txt string) (string, error) {
	name, ok := strings.CutPrefix(txt, "secrets.")
	if x.syntax&secretRefs == 0 || !ok {
		return "", fmt.Errorf("${{ %s }} is not supported here, only %s", text.Printable(txt, 64), x.syntax)
	}
	return x.named(name)
}

func (x *expander) ask(in config.Input) string {
	v := ""
	for _, name := range in.Variables() {
		v = cmp.Or(v, x.from.options.Variable(name))
	}
	if v == "" {
		v, in.Set = x.from.values[in.ID], x.from.values[in.ID] != ""
	}
	in.Set = in.Set || v != ""
	if !slices.ContainsFunc(x.names, func(o config.Input) bool { return o.ID == in.ID }) {
		x.names = append(x.names, in)
		if !in.Set {
			x.missing = append(x.missing, in)
		}
	}
	return v
}

// folder returns the folder of a name, or "".
func (x *expander) folder(name string) string {
	switch o := x.from.options; name {
	case "workspaceFolder", "workspaceRoot", "cwd":
		return o.Dir
	case "userHome":
		return o.Home
	case "workspaceFolderBasename":
		return filepath.Base(o.Dir)
	case "/", "pathSeparator":
		return string(filepath.Separator)
	}
	return ""
}

// file gives the text of a file without its last newline.
func (x *expander) file(path string) (string, error) {
	path = strings.TrimSpace(path)
	if path == "" {
		return "", errors.New("names no file")
	}
	if path = x.home(path); !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(x.from.Location.Path), path)
	}
	data, err := x.from.read(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("the file %s is not there", text.Printable(path, 300))
	case err != nil:
		return "", fmt.Errorf("the file %s: %s", text.Printable(path, 300), state.Reason(err))
	case !utf8.Valid(data):
		return "", fmt.Errorf("the file %s is not text", text.Printable(path, 300))
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}
