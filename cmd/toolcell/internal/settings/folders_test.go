package settings

import (
	"os"
	"testing"
)

func TestPathGetsTheStandardFoldersItLacks(t *testing.T) {
	const all = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for path, want := range map[string]string{
		"":                             all, // and no empty element, which would be the current folder
		all:                            all,
		"/usr/bin:/bin":                "/usr/bin:/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin",
		"/home/ann/bin:/usr/bin/:/opt": "/home/ann/bin:/usr/bin/:/opt:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin",
		"usr/bin":                      "usr/bin:" + all,
		":/bin":                        ":/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin",
	} {
		t.Setenv("PATH", path)
		CompletePath()
		if got := os.Getenv("PATH"); got != want {
			t.Errorf("PATH=%q became %q, want %q", path, got, want)
		}
	}
}
