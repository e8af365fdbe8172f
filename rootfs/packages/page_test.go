package packages

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/rootfs/fetch"
)

// A repeated is a text that comes again and again.
type repeated struct {
	text string
	left int // bytes that are still to come
	at   int
}

func (r *repeated) Read(p []byte) (n int, err error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	for n < len(p) && r.left > 0 {
		c := copy(p[n:min(len(p), n+r.left)], r.text[r.at:])
		n, r.left, r.at = n+c, r.left-c, (r.at+c)%len(r.text)
	}
	return n, nil
}

func pageOf(kind string, body io.Reader) *http.Response {
	return &http.Response{Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(body), Request: &http.Request{URL: &url.URL{Scheme: "https", Host: "index.example", Path: "/simple/uv/"}}}
}

// TestPagesAreReadAsTheyCome: a page of 36 MB of links took 620 MiB.
//
//test:alone
func TestPagesAreReadAsTheyCome(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads pages of many megabytes")
	}
	const size = 8 << 20
	for name, page := range map[string]struct{ kind, before, text string }{
		"links":             {"text/html", "", `<a href="x-1.whl">x</a>`},
		"tags":              {"text/html", "", "<a>"},
		"attributes":        {"text/html", "", `<a a=b c=d>`},
		"an endless tag":    {"text/html", "<a ", "a=b "},
		"an endless link":   {"text/html", `<a href="`, "x"},
		"a long text":       {"text/html", "", "x"},
		"entities":          {"text/html", "", "&amp;"},
		"a script":          {"text/html", "<script>", "x "},
		"files":             {"application/json", `{"files":[{}`, `,{}`},
		"files of no kind":  {"application/json", `{"files":[`, `[],`},
		"members":           {"application/json", `{"a":1`, `,"a":1`},
		"names":             {"application/json", `{"files":[{"filename":"x"`, `,"url":"y"`},
		"other files":       {"application/json", `{"files":[{"filename":"x","url":"y"}`, `,{"filename":"x","url":"y","hashes":{"sha256":"z"}}`},
		"deep":              {"application/json", `{"a":`, "["},
		"deep in the files": {"application/json", `{"files":[{"x":`, "["},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := findFile(pageOf(page.kind, io.MultiReader(strings.NewReader(page.before), &repeated{text: page.text, left: size})), "uv.whl") //nolint:bodyclose // no connection is behind it
		runtime.ReadMemStats(&after)
		// All that was allocated, also what is free again. Each name and value of an attribute
		// is copied by the tokenizer (golang.org/x/net 0.58), and the copies are free at once.
		limit := uint64(4 * size)
		if name == "attributes" {
			limit = 6 * size
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > limit {
			t.Errorf("%s: %d MiB for %d", name, used>>20, size>>20)
		}
		if !errors.Is(err, fetch.ErrContent) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestPagesAreReadUpToTheFile that is looked for.
func TestPagesAreReadUpToTheFile(t *testing.T) {
	for kind, text := range map[string]string{
		"text/html":        `<a href="/f/uv.whl#sha256=0">`,
		"application/json": `{"meta":{"x":[1]},"files":[{"url":"/no","filename":"x"},{"size":3,"url":"/f/uv.whl","filename":"uv.whl"}`,
	} {
		rest := &repeated{text: " ", left: maxPage}
		to, err := findFile(pageOf(kind, io.MultiReader(strings.NewReader(text), rest)), "uv.whl") //nolint:bodyclose // no connection is behind it
		if err != nil || to.String() != "https://index.example/f/uv.whl" {
			t.Errorf("%s: got %v, %v", kind, to, err)
		}
		if read := maxPage - rest.left; read > 1<<20 {
			t.Errorf("%s: %d bytes more were read", kind, read)
		}
	}
}

// TestTextsInPagesAreBounded: a text, with the colon before it, has this size when the decoder
// asks for the rest of the page.
func TestTextsInPagesAreBounded(t *testing.T) {
	const start, rest = `:"`, `","files":[{"filename":"uv.whl","url":"/f/uv.whl"}]}`
	page := func(size int) *http.Response {
		text := start + strings.Repeat("x", size-len(start))
		return pageOf("application/json", io.MultiReader(strings.NewReader(`{"x"`+text), strings.NewReader(rest)))
	}
	to, err := findFile(page(maxText), "uv.whl") //nolint:bodyclose // no connection is behind it
	if err != nil || to.String() != "https://index.example/f/uv.whl" {
		t.Errorf("the longest: got %v, %v", to, err)
	}
	to, err = findFile(page(maxText+1), "uv.whl") //nolint:bodyclose // no connection is behind it
	want := fetch.ErrContent.Error() + ": its page is not the JSON of an index"
	if !errors.Is(err, fetch.ErrContent) || err.Error() != want {
		t.Errorf("one more: got %v, %v, want %s", to, err, want)
	}
}

// TestPagesWithoutTheFileAreRefused, and are not asked for again.
func TestPagesWithoutTheFileAreRefused(t *testing.T) {
	for _, c := range []struct{ kind, text, want string }{
		{"application/json", "", "its page is not the JSON of an index"},
		{"application/json", `{"files"[]}`, "its page is not the JSON of an index"},
		{"application/json", `{"files":{"filename":"uv.whl","url":"/f/uv.whl"}}`, "uv.whl is not there"},
		{"application/json", `{"files":null}`, "uv.whl is not there"},
		{"application/json", `{"files":[{"filename":"uv.whl","url":"http://[::1/uv.whl"}]}`, "the address of uv.whl is not understood"},
		{"text/html", "", "uv.whl is not there"},
		{"text/html", `<a href="http://[::1/uv.whl">`, "the address of uv.whl is not understood"},
		{"text/html", `<a href="/f/other.whl">uv.whl</a>`, "uv.whl is not there"},
	} {
		to, err := findFile(pageOf(c.kind, strings.NewReader(c.text)), "uv.whl") //nolint:bodyclose // no connection is behind it
		if want := fetch.ErrContent.Error() + ": " + c.want; !errors.Is(err, fetch.ErrContent) || err.Error() != want {
			t.Errorf("%s: got %v, %v; want %s", c.text, to, err, want)
		}
	}
}

func TestOnlyLinksOfAPageLeadToFiles(t *testing.T) {
	const page = `<link href="/no/uv.whl"><base href="/no/uv.whl"><img src="/no/uv.whl"><a href="/f/uv.whl">`
	to, err := findFile(pageOf("text/html", strings.NewReader(page)), "uv.whl") //nolint:bodyclose // no connection is behind it
	if err != nil || to.Path != "/f/uv.whl" {
		t.Errorf("got %v, %v", to, err)
	}
}

func TestPagesThatBreakAreTriedAgain(t *testing.T) {
	broken := errors.New("broken")
	for kind, text := range map[string]string{"text/html": "<a href=x>", "application/json": `{"files":[{"url":"x"`} {
		_, err := findFile(pageOf(kind, io.MultiReader(strings.NewReader(text), brokenReader{broken})), "uv.whl") //nolint:bodyclose // no connection is behind it
		if !errors.Is(err, broken) || errors.Is(err, fetch.ErrContent) {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}

type brokenReader struct{ err error }

func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }
