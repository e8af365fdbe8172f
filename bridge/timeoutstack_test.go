package bridge

import (
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/run"
)

// TestForgedStacksAreBounded: what comes once the time is up may be anything.
func TestForgedStacksAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many Pythons")
	}
	for name, forged := range map[string]string{
		"text without end":  "'Stack' + 'x' * 100_000_000",
		"lines without end": "'Stack\\n' + '  File \"<run_python>\", line 1 in f\\n' * 1_000_000",
		"lines of controls": "'Stack\\n' + '  File \"<run_python>\", line 999999999 in \\x1b[31m\\x07\\n' * 9",
		"a frame of none":   "'\\0\\0\\0\\x20' + '{\"type\":\"where\",\"frames\":[1,2,3]}'",
		"many frames":       "(lambda b: len(b).to_bytes(4, 'big').decode('latin1') + b)('{\"type\":\"where\",\"frames\":[' + '{},' * 100_000 + '{}]}')",
		"half a frame":      "'\\0\\0\\1\\0{'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, nil, nil)
			start := time.Now()
			r := s.runs.Do(t.Context(), run.Request{Timeout: 3 * time.Second, Code: `
import os, signal, time
data = (` + forged + `).encode('latin1')
def forge(*_):
    global data
    while data: data = data[os.write(3, data):]
signal.signal(signal.SIGURG, forge)
time.sleep(60)`})
			text := Text(r, OutputCompact)
			if r.Status != run.StatusTimeout || len(text) > 4000 || strings.ContainsAny(text, "\x1b\x07") || time.Since(start) > 45*time.Second {
				t.Errorf("status %s after %s, %d bytes: %.500s", r.Status, time.Since(start), len(text), text)
			}
		})
	}
}
