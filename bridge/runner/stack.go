package runner

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// Bounds on a stack that is shown: the ends count.
const (
	maxShownLines = 12
	maxSourceLine = 160
)

// A stackFrame is one frame of a Python stack.
type stackFrame struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Func string `json:"func"`
	Text string `json:"text"` // of the line, if it is known
	Task string `json:"task"` // the asyncio task that begins with it, if several wait
}

// stackLines writes a stack, outermost first: a line for each frame of the code's
// own, and one for all frames of libraries that follow each other. An import goes
// back and forth between libraries and Python many times.
func stackLines(stack []stackFrame, code, codeFile string) []string {
	source := strings.Split(code, "\n")
	var lines, inside []string // inside are the libraries of the frames since the last line
	count := 0
	flush := func() {
		if count > 0 {
			lines = append(lines, fmt.Sprintf("[%s inside %s]", text.Plural(count, "frame"), libraryList(inside)))
		}
		inside, count = nil, 0
	}
	for _, f := range stack {
		lib := f.library()
		if lib == "" || f.Task != "" {
			flush()
		}
		if f.Task != "" {
			lines = append(lines, "task "+text.OneLine(f.Task, 80)+":")
		}
		if lib != "" {
			inside = append(inside, lib)
			count++
			continue
		}
		if f.Text == "" && f.File == codeFile && f.Line >= 1 && f.Line <= len(source) {
			f.Text = source[f.Line-1]
		}
		lines = append(lines, f.String())
	}
	flush()
	if n := len(lines); n > maxShownLines {
		rest := lines[n-maxShownLines/2:]
		lines = append(lines[:maxShownLines/2:maxShownLines/2], fmt.Sprintf("[%d lines left out]", n-maxShownLines))
		lines = append(lines, rest...)
	}
	return lines
}

// maxLibraries is how many libraries one line names.
const maxLibraries = 3

// libraryList names libraries, each once. Python's own import machinery says nothing
// beside others.
func libraryList(inside []string) string {
	var names []string
	for _, lib := range inside {
		if lib != importMachinery && !slices.Contains(names, lib) {
			names = append(names, lib)
		}
	}
	switch n := len(names); {
	case n == 0:
		return importMachinery
	case n > maxLibraries:
		return strings.Join(names[:maxLibraries], ", ") + fmt.Sprintf(" and %d more", n-maxLibraries)
	case n > 1:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return names[0]
}

// withoutRunner removes from a stack the frames of the runner, of its starter,
// and of the event loop between the runner and the code.
func withoutRunner(stack []stackFrame, hostDir string) []stackFrame {
	ours := func(f stackFrame) bool {
		dir := filepath.Dir(f.File)
		return dir == Dir || dir == hostDir
	}
	if first := slices.IndexFunc(stack, ours); first >= 0 {
		stack = stack[first:]
	}
	stack = slices.DeleteFunc(stack, ours)
	if own := slices.IndexFunc(stack, func(f stackFrame) bool { return f.library() == "" }); own > 0 {
		stack = stack[own:]
	}
	return stack
}

// String writes a frame of the code's own: `line 3, in f: time.sleep(60)`.
func (f stackFrame) String() string {
	s := fmt.Sprintf("line %d, in %s", f.Line, text.OneLine(f.Func, 80))
	if !strings.HasPrefix(f.File, "<run_python") {
		s = strings.Trim(text.OneLine(f.File, 120), "<>") + " " + s
	}
	if source := text.OneLine(f.Text, maxSourceLine); source != "" {
		s += ": " + source
	}
	return s
}

var standardLibrary = regexp.MustCompile(`^/.*/python3\.\d+/(.+)$`)

// importMachinery is what the frozen modules of Python are called.
const importMachinery = "Python"

// library returns the name of the library that a frame is in, "" for the code's
// own.
func (f stackFrame) library() string {
	if strings.HasPrefix(f.File, "<frozen") {
		return importMachinery
	}
	if !strings.HasPrefix(f.File, "/") && strings.Contains(f.File, "/") {
		return libraryName(f.File) // Cython names sources of compiled modules so
	}
	for _, folder := range []string{"/site-packages/", "/dist-packages/"} {
		if _, rest, ok := strings.Cut(f.File, folder); ok {
			return libraryName(rest)
		}
	}
	if found := standardLibrary.FindStringSubmatch(f.File); found != nil {
		return libraryName(found[1])
	}
	return ""
}

func libraryName(file string) string {
	first, _, _ := strings.Cut(file, "/")
	return text.OneLine(strings.TrimSuffix(first, path.Ext(first)), 60)
}
