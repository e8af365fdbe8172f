package artifacts

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestNamesAreMadePlain(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, want := range map[string]string{
		"chart.png":                    "chart.png",
		"Zürich 2024.csv":              "Zürich 2024.csv",
		"":                             "_",
		".":                            "_",
		"..":                           "_.",
		".bashrc":                      "_bashrc",
		"-rf":                          "_rf",
		"../../etc/passwd":             "_._.._etc_passwd",
		`..\..\x`:                      `_._.._x`,
		`C:\x`:                         "C:_x",
		"\xff\xfe.txt":                 "__.txt",
		"a\ufffdb":                     "a_b",
		"a\x00b\nc\x1b[31m":            "a_b_c_[31m",
		"\u202egpj.exe":                "_gpj.exe",
		long:                           long[:200],
		long + ".csv":                  long[:196] + ".csv",
		strings.Repeat("ä", 150):       strings.Repeat("ä", 100),
		"x" + strings.Repeat("ä", 150): "x" + strings.Repeat("ä", 99),
		"a." + long:                    "a." + long[:198],
		long + "." + long[:19]:         long[:180] + "." + long[:19],
		long + "." + long[:20]:         long[:200],
	} {
		if got := plainName(name); got != want {
			t.Errorf("%q became %q, want %q", name, got, want)
		}
	}
}

// TestNumberedNamesFit, so that clients can read the files under them.
func TestNumberedNamesFit(t *testing.T) {
	long, ext := strings.Repeat("x", 300), "."+strings.Repeat("e", 150)
	for name, want := range map[string][]string{
		"a.csv":                  {"a.csv", "a-2.csv", "a-3.csv"},
		"a":                      {"a", "a-2"},
		long:                     {long[:200], long[:198] + "-2"},
		long + ".csv":            {long[:196] + ".csv", long[:194] + "-2.csv"},
		long[:48] + ext:          {long[:48] + ext, long[:48] + ext[:150] + "-2"},
		strings.Repeat("ä", 150): {strings.Repeat("ä", 100), strings.Repeat("ä", 99) + "-2"},
	} {
		taken := map[string]int{}
		for _, want := range want {
			if got := freeName(name, taken); got != want || plainName(got) != got {
				t.Errorf("%q became %q, want %q", name, got, want)
			}
		}
	}
}

// TestTypeOfAFileThatIsGone claims nothing: another server may have removed its run.
func TestTypeOfAFileThatIsGone(t *testing.T) {
	if got := typeOf(filepath.Join(t.TempDir(), "gone")); got != "application/octet-stream" {
		t.Error(got)
	}
}
