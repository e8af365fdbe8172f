package runner

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/mcpproxy/text"
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
// own, and one for all frames of a library that follow each other.
func stackLines(stack []stackFrame, code, codeFile string) []string {
	source := strings.Split(code, "\n")
	var lines []string
	inside, count := "", 0 // a library, and how many frames of it
	flush := func() {
		if count > 0 {
			lines = append(lines, fmt.Sprintf("[%s inside %s]", text.Plural(count, "frame"), inside))
		}
		count = 0
	}
	for _, f := range stack {
		lib := f.library()
		if lib != inside || f.Task != "" {
			flush()
		}
		if f.Task != "" {
			lines = append(lines, "task "+text.OneLine(f.Task, 80)+":")
		}
		if inside = lib; lib != "" {
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

// library returns the name of the library that a frame is in, "" for the code's
// own.
func (f stackFrame) library() string {
	if strings.HasPrefix(f.File, "<frozen") {
		return "Python"
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
