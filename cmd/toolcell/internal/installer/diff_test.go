package installer

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestDiffShowsWhatDiffers(t *testing.T) {
	for name, tt := range map[string]struct{ before, after, want string }{
		"nothing":  {"a\n", "a\n", ""},
		"new":      {"", "a\nb\n", "--- f\n+++ f\n@@ -0,0 +1,2 @@\n+a\n+b\n"},
		"a change": {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n", "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"},
	} {
		if got := diff("f", []byte(tt.before), []byte(tt.after)); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

// TestDiffOfALargeFile: clients keep histories of megabytes in their settings.
func TestDiffOfALargeFile(t *testing.T) {
	var lines []string
	for i := range 200_000 {
		lines = append(lines, fmt.Sprintf("  \"%d\": %d,", i, i*i))
	}
	before := strings.Join(lines, "\n")
	after := before
	for _, i := range []int{3, 100_000, 199_998} {
		after = strings.Replace(after, lines[i]+"\n", lines[i]+"\n  new\n", 1)
	}
	start := time.Now()
	if got := diff("f", []byte(before), []byte(after)); strings.Count(got, "\n+") != 3+1 || strings.Count(got, "\n-") != 0 {
		t.Errorf("after %s: %.2000s", time.Since(start), got)
	}
	entirely := strings.ReplaceAll(before, "  ", "\t")
	if got := diff("f", []byte(before), []byte(entirely)); strings.Count(got, "\n+") < len(lines) {
		t.Errorf("after %s: %d bytes", time.Since(start), len(got))
	}
	t.Log(time.Since(start))
}
