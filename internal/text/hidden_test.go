package text

import (
	"strings"
	"testing"
)

func TestHiddenFindsWhatAReaderDoesNotSee(t *testing.T) {
	for name, tt := range map[string]struct{ in, hidden, visible string }{
		"plain":                  {"Lists files.\r\n\tSorted.", "", "Lists files.\\u000d\n\tSorted."},
		"other scripts":          {"Ärger 日本語 עברית ١٢٣ हिन्दी", "", "Ärger 日本語 עברית ١٢٣ हिन्दी"},
		"emoji":                  {"👩\u200d👩\u200d👧 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3 👩🏽\u200d🚀", "", "👩\u200d👩\u200d👧 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3 👩🏽\u200d🚀"},
		"Persian joiner":         {"می\u200cخواهم", "", "می\u200cخواهم"},
		"joiner in Latin":        {"pass\u200dword\u200c", "\u200d\u200c", `pass\u200dword\u200c`},
		"row of joiners":         {"می\u200c\u200c\u200cخ", "\u200c", `می\u200c\u200c\u200cخ`},
		"selectors for letters":  {"x\ufe0f\ufe00\U000e0101", "\ufe0f\ufe00\U000e0101", `x\ufe0f\ufe00\U000e0101`},
		"zero width":             {"a\u200b\u200e\u200f\u2060\ufeff\u00ad", "\u200b\u200e\u200f\u2060\ufeff\u00ad", `a\u200b\u200e\u200f\u2060\ufeff\u00ad`},
		"direction":              {"a\u202egpj\u202c\u2066b\u2069", "\u202e\u202c\u2066\u2069", `a\u202egpj\u202c\u2066b\u2069`},
		"tags, assigned or not":  {"x\U000e0000\U000e0041\U000e007f\U000e0041", "\U000e0000\U000e0041\U000e007f", `x\U000e0000\U000e0041\U000e007f\U000e0041`},
		"what a terminal obeys":  {"a\x1b[31mb\x00\u009bc", "\x1b\x00\u009b", `a\u001b[31mb\u0000\u009bc`},
		"ends of a paragraph":    {"a\u2029b", "\u2029", `a\u2029b`},
		"nothing but a selector": {"\ufe0f", "\ufe0f", `\ufe0f`},
		"no UTF-8":               {"a\xffb", "", "a\ufffdb"},
	} {
		if got := string(Hidden(tt.in)); got != tt.hidden {
			t.Errorf("%s: Hidden = %q, want %q", name, got, tt.hidden)
		}
		if got := Visible(tt.in); got != tt.visible {
			t.Errorf("%s: Visible = %q, want %q", name, got, tt.visible)
		}
	}
	if got := VisibleInJSON("a\r\n\x1b\u202e\u009b"); got != "a\r\n\x1b\\u202e\\u009b" {
		t.Errorf("VisibleInJSON = %q", got)
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("a\x1b[31mb\u202e\U000e0041\u200d")
	f.Fuzz(func(t *testing.T, s string) {
		if got := Visible(s); strings.ContainsFunc(got, IsInvisible) || len(Hidden(got)) > 0 {
			t.Errorf("Visible(%q) = %q", s, got)
		}
	})
}
