package oci

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReplacedProgram: an upgrade replaces the file we run from, or its folder
// is taken away.
func TestReplacedProgram(t *testing.T) {
	r := openRuntime(t)
	if _, err := r.engine.probe(); err != nil {
		t.Fatal(err)
	}
	r.engine.host.Exe = filepath.Join(t.TempDir(), "another")
	for _, content := range []string{"", "#!/bin/sh\necho the other version\n"} {
		if content != "" {
			if err := os.WriteFile(r.engine.host.Exe, []byte(content), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if got, _ := sh(t.Context(), t, r, Process{}, "echo fine"); got != "fine\n" {
			t.Errorf("got %q", got)
		}
	}
	if !strings.HasPrefix(r.engine.copied, r.engine.dir) {
		t.Errorf("copied to %q, want it among what is swept", r.engine.copied)
	}
}
