package plainjson

import (
	"fmt"
	"strings"
	"testing"
)

func TestFilesAreBounded(t *testing.T) {
	commented := func(values int) string { return "// c\n[1" + strings.Repeat(",1", values-1) + "]" }
	merged := func(depth int) string { return strings.Repeat("{<<: ", depth) + "{}" + strings.Repeat("}", depth) }
	for name, tt := range map[string]struct{ path, most, becomes, more, want string }{
		"values of JSON with comments": {
			"a.json", commented(maxCommented), "[1" + strings.Repeat(",1", maxCommented-1) + "]",
			commented(maxCommented + 1), fmt.Sprintf("is not JSON without comments, and has more than %d values", maxCommented),
		},
		"mappings that YAML merges": {
			"a.yaml", merged(maxDepth), "{}",
			merged(maxDepth + 1), "its aliases stand for too much",
		},
	} {
		if got, err := Convert(tt.path, []byte(tt.most)); err != nil || strings.TrimSpace(string(got)) != tt.becomes {
			t.Errorf("%s: %.100s, %v", name, got, err)
		}
		if got, err := Convert(tt.path, []byte(tt.more)); err == nil || !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%s: one more: %.100s, %v, want %s", name, got, err, tt.want)
		}
	}
}
