package packages

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

const (
	maxPage = 64 << 20  // of an index, in bytes
	maxTag  = 256 << 10 // a tag of such a page, or a text in it
	maxText = 1 << 20   // a name, text or number in JSON
)

// findFile returns the address of a file on a page of a project. The page is read as it
// comes, up to the file: some have tens of thousands of others.
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
		return nil, fmt.Errorf("%w: %s is not there", errContent, file)
	}
	to, err := resp.Request.URL.Parse(link)
	if err != nil {
		return nil, fmt.Errorf("%w: the address of %s is not understood", errContent, file)
	}
	to.Fragment = ""
	return to, nil
}

// findInJSON finds the address of a file on a page of PEP 691.
func findInJSON(in io.Reader, file string) (link string, err error) {
	bounded := &tokenReader{inner: in}
	page := jsontext.NewDecoder(bounded, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	bounded.read = page.InputOffset
	err = members(page, func(name string) error {
		if name != "files" || page.PeekKind() != '[' {
			return page.SkipValue()
		}
		if _, err := page.ReadToken(); err != nil {
			return err
		}
		for page.PeekKind() != ']' {
			var filename, address string
			err := members(page, func(name string) (err error) {
				switch name {
				case "filename":
					filename, err = textValue(page)
				case "url":
					address, err = textValue(page)
				default:
					err = page.SkipValue()
				}
				return err
			})
			if err != nil {
				return err
			}
			if filename == file {
				link = address
				return errFound
			}
		}
		_, err := page.ReadToken()
		return err
	})
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, errFound):
		return link, nil
	case errors.As(err, &syntax), errors.Is(err, io.EOF), errors.Is(err, errText), errors.Is(err, errKind):
		return "", fmt.Errorf("%w: its page is not the JSON of an index", errContent)
	}
	return "", err
}

// A tokenReader fails at a token that is too long: the decoder holds each of them whole.
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
	errKind  = errors.New("a value of another kind")
)

// members calls member with each name of an object, for it to read the value.
func members(d *jsontext.Decoder, member func(name string) error) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return errors.Join(err, errKind)
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

func textValue(d *jsontext.Decoder) (string, error) {
	t, err := d.ReadToken()
	if err != nil {
		return "", err
	}
	if t.Kind() != '"' {
		return "", errKind
	}
	return t.String(), nil
}

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
				return "", fmt.Errorf("%w: its page is not that of an index", errContent)
			}
			return "", err
		case html.StartTagToken, html.SelfClosingTagToken:
			if link := hrefOf(page); link != "" && isLinkTo(link, file) {
				return link, nil
			}
		}
	}
}

// hrefOf returns where the tag that was read leads to, if it is a link.
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

// isLinkTo reports whether the last part of an address is a file's name.
func isLinkTo(link, file string) bool {
	if at := strings.IndexAny(link, "?#"); at >= 0 {
		link = link[:at]
	}
	name, err := url.PathUnescape(link[strings.LastIndexByte(link, '/')+1:])
	return err == nil && strings.TrimSpace(name) == file
}
