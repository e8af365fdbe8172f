package repl

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/state"
)

// Bounds on the history.
const (
	maxHistory     = 1000    // lines
	maxHistoryLine = 4 << 10 // bytes
	maxHistoryFile = 1 << 20 // bytes that are read
	historyMode    = 0o600   // for the user alone
)

// A history is the lines that were typed at the prompt, in a file of the state
// folder, oldest first. Each is kept when it is typed, and all that fails is to
// be kept: the prompt continues.
type history struct {
	path  string // nothing is kept if empty
	lines []string
}

// openHistory reads the file, and drops the oldest lines if there are too many.
func openHistory(path string) *history {
	h := &history{path: path}
	if path == "" {
		return h
	}
	f, err := h.open(unix.O_RDONLY)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			h.path = "" // a link, or not ours to read
		}
		return h
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxHistoryFile))
	lines.Buffer(nil, maxHistoryFile)
	for lines.Scan() {
		if line := console.Plain(lines.Text()); line != "" && len(line) <= maxHistoryLine {
			h.lines = append(h.lines, line)
		}
	}
	if len(h.lines) > maxHistory {
		h.lines = h.lines[len(h.lines)-maxHistory:]
		_ = state.Replace(path, []byte(strings.Join(h.lines, "\n")+"\n"), state.Options{Mode: historyMode, Unsynced: true})
	}
	return h
}

// open opens the file, which no link may stand for.
func (h *history) open(flags int) (*os.File, error) {
	return os.OpenFile(h.path, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, historyMode)
}

// add keeps one more line, unless it is the last one again.
func (h *history) add(line string) {
	if len(line) > maxHistoryLine || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	if h.path == "" || os.MkdirAll(filepath.Dir(h.path), 0o700) != nil {
		return
	}
	f, err := h.open(unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT)
	if err != nil {
		return
	}
	defer f.Close()
	if f.Chmod(historyMode) == nil { // one that others could read was not made by us
		_, _ = f.WriteString(line + "\n")
	}
}
