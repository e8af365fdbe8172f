//go:build wheels

package packages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackagesPinOfUV fetches uv for each architecture from the real index, this host's and
// others, and looks at the machine that its program is for.
func TestPackagesPinOfUV(t *testing.T) {
	s := newStore(t)
	r := Request{Index: "https://pypi.org/simple", Files: []string{"files.pythonhosted.org"}}
	j, err := s.begin(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	machines := map[string]string{"amd64": "\x3e\x00", "arm64": "\xb7\x00"} // e_machine (elf.h)
	for arch, wheel := range uvWheels {
		dir := t.TempDir()
		if err := j.fetchUV(t.Context(), wheel, dir); err != nil {
			t.Errorf("%s: %v", arch, err)
			continue
		}
		program, err := os.ReadFile(filepath.Join(dir, "uv"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(program), "\x7fELF") || string(program[18:20]) != machines[arch] || !strings.Contains(string(program), uvVersion) {
			t.Errorf("%s: it is another program: % x", arch, program[:20])
		}
	}
}
