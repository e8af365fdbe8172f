package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// sized opens a new file of so many bytes, all of them one letter.
func sized(t *testing.T, size int) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestWhatIsReadIsBounded: a user may give the wrong file.
func TestWhatIsReadIsBounded(t *testing.T) {
	if text, err := readText(t.Context(), sized(t, maxScript), "a.py"); err != nil || len(text) != maxScript {
		t.Errorf("the longest code: %d bytes, %v", len(text), err)
	}
	if _, err := readText(t.Context(), sized(t, maxScript+1), "a.py"); err == nil || !strings.Contains(err.Error(), "a.py has more than 16 MiB") {
		t.Errorf("longer code: %v", err)
	}
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errors.New("stopped"))
	if _, err := readText(stopped, sized(t, 1), "a.py"); err == nil || err.Error() != "stopped" {
		t.Errorf("a user who does not wait for it: %v", err)
	}
	if value, err := readValue(t.Context(), &console.Streams{In: sized(t, console.MaxTyped)}, config.Input{}); err != nil || len(value) != console.MaxTyped {
		t.Errorf("the longest value: %d bytes, %v", len(value), err)
	}
	if _, err := readValue(t.Context(), &console.Streams{In: sized(t, console.MaxTyped+1)}, config.Input{}); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("a longer value: %v", err)
	}
}
