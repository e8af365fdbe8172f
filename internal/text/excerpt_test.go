package text

import (
	"strings"
	"testing"
)

// TestExcerptOfPages: their titles, or their text without markup, however broken it is.
func TestExcerptOfPages(t *testing.T) {
	for page, want := range map[string]string{
		"<html><head><title>Not\n found</title></head><body>x</body></html>": "Not found",
		"<TITLE lang=en>Sign in</TITLE>":                                     "Sign in",
		"<titles>x</titles>":                                                 "x",
		"<title></title><p>Text</p>":                                         "Text",
		"<title>never ends":                                                  "never ends",
		"<p>a<script>var x = 1 < 2;</script>b<STYLE>p{}</Style>c":            "a b c",
		"<p>a<script>never ends":                                             "a",
		"<p>a<headers>b</headers>":                                           "a b",
		"<p>1 < 2":                                                           "1 < 2",
		"<":                                                                  "<",
		"<p>" + strings.Repeat("<script>", 20) + "x":                         "",
		"plain <b>text</b>":                                                  "plain <b>text</b>",
		strings.Repeat("x", maxExcerpt):                                      strings.Repeat("x", maxExcerpt),
		strings.Repeat("x", maxExcerpt+1):                                    strings.Repeat("x", maxExcerpt) + "…",
		" null ":                                                             "",
		"<p>" + strings.Repeat(" ", maxPage) + "x":                           "",
		"<p>İİ<title>ẞ</title>":                                              "ẞ",
	} {
		if got := Excerpt([]byte(page)); got != want {
			t.Errorf("%.60q: %q, want %q", page, got, want)
		}
	}
}
