package pypi

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs/packages"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// A script is a console script: a function that a package declares as a program
// (packaging.python.org, "Entry points specification").
type script struct{ name, module, function string }

// What is read of a package's entry points. Real ones have a few lines.
const (
	maxEntryPoints = 256 << 10 // bytes
	maxEntryLine   = 4 << 10
	maxScripts     = 1000
	maxShown       = 20 // of scripts, in an error
)

// findScript returns the script of a name among packages in a folder: of the wanted ones,
// or else of one that they need, as installed programs are found.
func findScript(dir string, wanted []requirement.Requirement, name string) (*script, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	infos, err := distInfos(root, wanted)
	if err != nil {
		return nil, err
	}
	var there []string
	for _, info := range infos {
		scripts, err := readScripts(root, info.folder)
		if err != nil {
			return nil, fmt.Errorf("the package %s: %w", info.name, err)
		}
		for _, s := range scripts {
			if s.name == name {
				return &s, nil
			}
			if info.rank < len(wanted) {
				there = append(there, s.name)
			}
		}
	}
	return nil, missingScript(wanted, name, there)
}

// missingScript says what there is in place of a script.
func missingScript(wanted []requirement.Requirement, name string, there []string) error {
	of := wanted[0].Name
	if len(wanted) > 1 {
		of = fmt.Sprintf("%s and %s", of, text.Plural(len(wanted)-1, "other package"))
	}
	if len(there) == 0 {
		return fmt.Errorf("there is no program %q: %s has no programs of Python", text.OneLine(name, 100), of)
	}
	slices.Sort(there)
	return fmt.Errorf("there is no program %q: %s has %s", text.OneLine(name, 100), of, text.QuoteList(slices.Compact(there), maxShown))
}

// A distInfo is the folder of a package's metadata.
type distInfo struct {
	name, folder string
	rank         int // its place among the wanted packages, or behind them
}

// distInfos returns those in a folder, the wanted ones first.
func distInfos(root *os.Root, wanted []requirement.Requirement) (all []distInfo, err error) {
	top, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer top.Close()
	for {
		entries, err := top.ReadDir(1000)
		for _, e := range entries {
			base, is := strings.CutSuffix(e.Name(), ".dist-info")
			spelled, _, _ := strings.Cut(base, "-")
			name, nameErr := requirement.Name(spelled)
			if !is || nameErr != nil {
				continue
			}
			rank := slices.IndexFunc(wanted, func(r requirement.Requirement) bool { return r.Name == name })
			if rank < 0 {
				rank = len(wanted)
			}
			all = append(all, distInfo{name, e.Name(), rank})
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b distInfo) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.name, b.name)) })
	return all, nil
}

// readScripts returns the scripts that a package declares.
func readScripts(root *os.Root, info string) ([]script, error) {
	name := info + "/entry_points.txt"
	stat, err := root.Lstat(name)
	if rootdir.IsMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !stat.Mode().IsRegular() {
		return nil, errors.New("its entry_points.txt is no regular file")
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseScripts(f)
}

var (
	scriptName     = text.Pattern(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$`)
	scriptFunction = text.Pattern(`^([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\s*:\s*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\s*(?:\[[^\]]*\])?$`)
)

// parseScripts reads the section console_scripts of entry_points.txt. It passes over scripts
// that it does not understand: they cannot be started.
func parseScripts(in io.Reader) (all []script, err error) {
	limited := &io.LimitedReader{R: in, N: maxEntryPoints + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(nil, maxEntryLine)
	inside := false
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
			continue
		case line[0] == '[':
			inside = line == "[console_scripts]"
			continue
		case !inside:
			continue
		}
		name, object, _ := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		found := scriptFunction().FindStringSubmatch(strings.TrimSpace(object))
		if found == nil || !scriptName().MatchString(name) {
			continue
		}
		if all = append(all, script{name, found[1], found[2]}); len(all) > maxScripts {
			return nil, fmt.Errorf("its entry_points.txt has more than %d programs", maxScripts)
		}
	}
	switch {
	case errors.Is(lines.Err(), bufio.ErrTooLong):
		return nil, fmt.Errorf("its entry_points.txt has a line of more than %d bytes", maxEntryLine)
	case lines.Err() != nil:
		return nil, lines.Err()
	case limited.N == 0:
		return nil, fmt.Errorf("its entry_points.txt has more than %d bytes", maxEntryPoints)
	}
	return all, nil
}

// startScript calls a function as an installed program does. Modules come from the standard
// library, from what PYTHONPATH names and from the server's packages, in an environment's
// order: not from the working directory, which -c puts first, and not from the image's
// packages. Programs that the server starts find its packages too.
const startScript = `import sys, os
_, name, module, function = sys.argv[:4]
sys.argv[:4] = [name]
packages = "` + packages.Target + `"
sys.path = [d for d in sys.path if d and not d.rstrip("/").endswith(("site-packages", "dist-packages"))] + [packages]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [packages, os.environ.get("PYTHONPATH")]))
import functools, importlib
sys.exit(functools.reduce(getattr, function.split("."), importlib.import_module(module))())
`

// Command returns the command line that starts the server in a sandbox, with a Python of the
// image and the arguments of its entry.
func (i *Installed) Command(python string, args []string) []string {
	if i.script == nil {
		return append([]string{python}, args...)
	}
	return append([]string{python, "-c", startScript, i.script.name, i.script.module, i.script.function}, args...)
}

// PythonPath is what the variable PYTHONPATH must have first when the server starts; "" is
// nothing.
func (i *Installed) PythonPath() string {
	if i.script == nil {
		return packages.Target
	}
	return ""
}
