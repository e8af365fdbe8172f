package packages

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/toolcell/toolcell/rootfs/fetch"
	"golang.org/x/net/html"
)

const (
	maxPage = 64 << 20  // of an index, in bytes
	maxTag  = 256 << 10 // a tag of such a page, or a text in it
	maxText = 1 << 20   // a name, text or number in JSON
)

// findFile returns the URL of a file on a project's page. It reads the page as it arrives,
// up to the file: some pages list tens of thousands.
func findFile(resp *http.Response, file string) (*url.URL, error) {
	in := io.LimitReader(resp.Body, maxPage)
	find := findInHTML
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); strings.HasSuffix(kind, "json") {
		find = findInJSON
	}
	link, err := find(in, file)
	if err != nil {
		return nil, err
	}
	if link == "" {
		return nil, fmt.Errorf("%w: %s is not there", fetch.ErrContent, file)
	}
	to, err := resp.Request.URL.Parse(link)
	if err != nil {
		return nil, fmt.Errorf("%w: the address of %s is not understood", fetch.ErrContent, file)
	}
	to.Fragment = ""
	return to, nil
}

// findInJSON finds the address of a file on a page of PEP 691.
func findInJSON(in io.Reader, file string) (link string, err error) {
	bounded := &tokenReader{inner: in}
	d := jsontext.NewDecoder(bounded, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	bounded.read = d.InputOffset
	page := struct {
		Files wantedFile `json:"files"`
	}{wantedFile{name: file}}
	err = json.UnmarshalDecode(d, &page)
	var syntax *jsontext.SyntacticError
	var kind *json.SemanticError
	switch {
	case errors.Is(err, errFound):
		return page.Files.link, nil
	case errors.As(err, &syntax), errors.Is(err, io.EOF), errors.Is(err, errText), errors.As(err, &kind):
		return "", fmt.Errorf("%w: its page is not the JSON of an index", fetch.ErrContent)
	}
	return "", err
}

// A wantedFile is one of a page's list of files.
type wantedFile struct{ name, link string }

// UnmarshalJSONFrom reads the list up to the file.
func (w *wantedFile) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != '[' {
		return d.SkipValue()
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	type entry struct {
		Name string `json:"filename"`
		URL  string `json:"url"`
	}
	for file := new(entry); d.PeekKind() != ']'; *file = (entry{}) {
		if err := json.UnmarshalDecode(d, file); err != nil {
			return err
		}
		if file.Name == w.name {
			w.link = file.URL
			return errFound
		}
	}
	_, err := d.ReadToken()
	return err
}

// A tokenReader fails at a token that is too long: the decoder keeps each token in memory.
type tokenReader struct {
	inner io.Reader
	given int64
	read  func() int64 // how much of that the decoder has done with
}

func (t *tokenReader) Read(p []byte) (int, error) {
	if t.given-t.read() > maxText {
		return 0, errText
	}
	n, err := t.inner.Read(p)
	t.given += int64(n)
	return n, err
}

var (
	errText  = fmt.Errorf("a text of more than %d bytes", maxText)
	errFound = errors.New("found")
)

// findInHTML finds the address of a file on a page of PEP 503.
func findInHTML(in io.Reader, file string) (string, error) {
	page := html.NewTokenizer(in)
	page.SetMaxBuf(maxTag)
	for {
		switch page.Next() {
		case html.ErrorToken:
			err := page.Err()
			switch {
			case errors.Is(err, io.EOF):
				return "", nil
			case errors.Is(err, html.ErrBufferExceeded):
				return "", fmt.Errorf("%w: its page is not that of an index", fetch.ErrContent)
			}
			return "", err
		case html.StartTagToken, html.SelfClosingTagToken:
			if link := hrefOf(page); link != "" && isLinkTo(link, file) {
				return link, nil
			}
		}
	}
}

// hrefOf returns the target of the tag that was read, if it is a link.
func hrefOf(page *html.Tokenizer) string {
	name, more := page.TagName()
	if string(name) != "a" {
		return ""
	}
	for more {
		var key, value []byte
		if key, value, more = page.TagAttr(); string(key) == "href" {
			return string(value)
		}
	}
	return ""
}

// isLinkTo reports whether a URL ends with the name of a file.
func isLinkTo(link, file string) bool {
	if at := strings.IndexAny(link, "?#"); at >= 0 {
		link = link[:at]
	}
	name, err := url.PathUnescape(link[strings.LastIndexByte(link, '/')+1:])
	return err == nil && strings.TrimSpace(name) == file
}
