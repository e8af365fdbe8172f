package plainjson

import (
	"fmt"
	"strings"
	"testing"
)

func TestFilesAreBounded(t *testing.T) {
	commented := func(values int) string { return "// c\n[1" + strings.Repeat(",1", values-1) + "]" }
	objects := func(n int) string { return "// c\n[{}" + strings.Repeat(",{}", n-1) + "]" }
	nested := func(depth int) string { return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) }
	merged := func(depth int) string { return strings.Repeat("{<<: ", depth) + "{}" + strings.Repeat("}", depth) }
	for name, tt := range map[string]struct{ path, most, becomes, more, want string }{
		"values of JSON with comments": {
			"a.json", commented(maxCommented), "[1" + strings.Repeat(",1", maxCommented-1) + "]",
			commented(maxCommented + 1), fmt.Sprintf("is not JSON without comments, and has more than %d values", maxCommented),
		},
		"objects of JSON with comments": {
			"a.json", objects(maxCommented / 2), "[{}" + strings.Repeat(",{}", maxCommented/2-1) + "]",
			objects(maxCommented/2 + 1), fmt.Sprintf("is not JSON without comments, and has more than %d values", maxCommented),
		},
		"objects in objects of JSON": {
			"a.json", nested(maxDepth), nested(maxDepth), nested(maxDepth + 1), fmt.Sprintf("nested more than %d deep", maxDepth),
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
