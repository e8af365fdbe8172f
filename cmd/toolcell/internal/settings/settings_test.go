package settings

import (
	"os"
	"regexp"
	"testing"
)

// TestSettingsDocumentHasAllSettings compares the tables of docs/settings.md
// with the settings: names, flags and defaults.
func TestSettingsDocumentHasAllSettings(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `([A-Z_<>]+)` \\| (?:`--([a-z-]+)`|–) \\| `?([^|`]+?)`? \\| ")
	rows := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		rows[m[1]] = m
	}
	for _, k := range All {
		m := rows[k.Env]
		if m == nil || m[2] != k.Name {
			t.Errorf("docs/settings.md has no row of %s and --%s", k.Env, k.Name)
			continue
		}
		delete(rows, k.Env)
		if k.Value != "" && m[3] != k.Value {
			t.Errorf("docs/settings.md says that the default of %s is %s; it is %s", k.Env, m[3], k.Value)
		}
	}
	for _, other := range []string{"MCP_BRIDGE_INPUT_<ID>", "NO_COLOR"} { // no flags of ours
		delete(rows, other)
	}
	for name := range rows {
		t.Errorf("docs/settings.md has a row of %s, which is no setting", name)
	}
}
