package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCleanRemovesInvisibleCharacters(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"plain":                       {"Lists files.\n\tSorted.", "Lists files.\n\tSorted."},
		"other scripts stay":          {"Ärger 日本語 ўзбек עברית العربية ١٢٣ हिन्दी", "Ärger 日本語 ўзбек עברית العربية ١٢٣ हिन्दी"},
		"emoji stay":                  {"👩\u200d👩\u200d👧 ❤\ufe0f 🇩🇪", "👩\u200d👩\u200d👧 ❤\ufe0f 🇩🇪"},
		"Persian joiner stays":        {"می\u200cخواهم", "می\u200cخواهم"},
		"colours":                     {"a \x1b[31;1mred\x1b[0m b", "a red b"},
		"eight-bit colours":           {"a \u009b31mred", "a red"},
		"title of the terminal":       {"a\x1b]0;owned\x07b", "ab"},
		"clipboard, never ended":      {"a\x1b]52;c;Zm9v", "a52;c;Zm9v"},
		"cursor":                      {"a\x1bcb\x1b", "ab"},
		"escape before a character":   {"a\x1b日", "a日"},
		"a sequence that breaks off":  {"a\x1b[3é m", "a3é m"},
		"bell, backspace, NUL":        {"a\a\b\x00b\x7f", "ab"},
		"overwritten line":            {"safe\rrm -rf", "safe\nrm -rf"},
		"line ends of Windows":        {"a\r\nb", "a\nb"},
		"line and paragraph ends":     {"a\u2028b\u2029c", "a\nb\nc"},
		"direction":                   {"a\u202egpj.exe\u202c\u2066b\u2069\u200f\u061c", "agpj.exeb"},
		"zero width":                  {"pass\u200bword\ufeff\u2060\u00ad", "password"},
		"tags":                        {"Adds.\U000e0049\U000e0067\U000e006e", "Adds."},
		"bytes in variation selector": {"x\ufe00\ufe01\ufe0d\U000e0100\U000e01ef", "x"},
		"bits in joiners":             {"x" + strings.Repeat("\u200c\u200d", 500), "x\u200c\u200d"},
		"fillers":                     {"a\u3164\u115f\uffa0\u034fb", "ab"},
		"no UTF-8":                    {"a\xffb", "a\ufffdb"},
	} {
		if got := Clean(tt.in); got != tt.want {
			t.Errorf("%s: Clean(%q) = %q, want %q", name, tt.in, got, tt.want)
		}
	}
}

func TestCharactersThatShowAsNothing(t *testing.T) {
	for _, r := range "\x00\x1b\x7f\u0085\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180e\u180f\u200b\u200e\u202e\u2060\u2065\u2069\u3164\ufe00\ufe0d\ufeff\uffa0\ufff0\ufff8\ufffb\U000e0000\U000e0041\U000e0100\U000e0fff" {
		if !IsInvisible(r) {
			t.Errorf("%U is visible", r)
		}
	}
	for _, r := range "a é\n\t日\u0300\u0600\u0605\u06dd\u08e2\u0900\u180a\u1810\u200c\u200d\u20e3\ufe0e\ufe0f\uffef\ufffd\U0001f469\U000e1000" {
		if IsInvisible(r) {
			t.Errorf("%U is invisible", r)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[31mb\u202e\U000e0041")
	f.Add("\x1b]0;")
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, IsInvisible) {
			t.Errorf("Clean(%q) = %q", s, got)
		}
		if again := Clean(got); again != got {
			t.Errorf("cleaning %q twice gives %q", got, again)
		}
		if sum := Summary(got); utf8.RuneCountInString(sum) > maxSummary+4 {
			t.Errorf("a summary of %d characters", utf8.RuneCountInString(sum))
		}
	})
}

func TestSummaryIsWholeSentences(t *testing.T) {
	long := strings.Repeat("many words ", 60)
	for name, tt := range map[string]struct{ in, want string }{
		"short stays whole":      {"One. Two.\nThree", "One. Two.\nThree"},
		"first sentence":         {"Gets e.mail of v1.2 now. " + long, "Gets e.mail of v1.2 now. […]"},
		"sentences":              {"One! Two? Three. " + long, "One! Two? Three. […]"},
		"paragraph":              {"A heading\n\n" + long, "A heading […]"},
		"no sentence":            {long, strings.TrimSpace(long[:395]) + " […]"},
		"no space":               {strings.Repeat("日", 500), strings.Repeat("日", 400) + " […]"},
		"sentence of ideographs": {"終。" + strings.Repeat("日", 500), "終。 […]"},
	} {
		if got := Summary(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestACutTextSaysHowMuchIsGone(t *testing.T) {
	if got := CutAfter("äöüß", 4); got != "äöüß" {
		t.Errorf("got %q", got)
	}
	if got, want := CutAfter("äöüß and more", 4), "äöüß\n[… 9 more characters were cut]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

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
