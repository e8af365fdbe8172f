package doctor

import (
	"os"
	"strings"
	"testing"
)

// TestPackagedProfileIsDoctors: the packages bring the profile that doctor would print for
// the path at which they install the program, under a name of its own.
func TestPackagedProfileIsDoctors(t *testing.T) {
	file, err := os.ReadFile("../../.ci/nfpm/apparmor")
	if err != nil {
		t.Fatal(err)
	}
	var rules strings.Builder
	for line := range strings.Lines(string(file)) {
		if !strings.HasPrefix(line, "#") {
			rules.WriteString(strings.Replace(line, "profile toolcell-package ", "profile toolcell ", 1))
		}
	}
	f := fakeHost{}.facts()
	f.exe, f.started = "/usr/bin/toolcell", "/usr/bin/toolcell"
	if cure := appArmorCure(f); !strings.Contains(cure, "<<'EOF'\n"+rules.String()+"EOF\n") {
		t.Errorf("doctor says:\n%s\nthe packages have:\n%s", cure, &rules)
	}
}
