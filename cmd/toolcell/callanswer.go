package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/toolvalue"
)

// A dataContent is content of an answer that is data: a picture, a sound, a file.
type dataContent struct {
	Type, MimeType, Data, Blob, URI string
}

// dataOf returns a value as such content, if it is.
func dataOf(value json.RawMessage) (c dataContent, ok bool) {
	if members, err := rawjson.Members(value); err != nil || len(members) == 0 || json.Unmarshal(value, &c) != nil {
		return c, false
	}
	return c, c.Data+c.Blob != "" && c.MimeType != ""
}

// described names content that is no text: its kind and size. It is empty for other values.
func described(value json.RawMessage) string {
	c, ok := dataOf(value)
	if !ok {
		return ""
	}
	return text.Printable(c.MimeType, 60) + " of " + text.Size(int64(len(c.Data+c.Blob)*3/4))
}

// seenValue returns a value for a reader: what is data in it, or in a list, is described,
// since its base64 fills screens.
func seenValue(value json.RawMessage) json.RawMessage {
	items, err := rawjson.Items(value)
	if err != nil || !slices.ContainsFunc(items, func(i json.RawMessage) bool { return described(i) != "" }) {
		return value
	}
	seen := make([][]byte, len(items))
	for n, item := range items {
		if seen[n] = item; described(item) != "" {
			seen[n], _ = jsontext.AppendQuote(nil, placeholderOf(item)) // which is UTF-8
		}
	}
	return slices.Concat([]byte("["), bytes.Join(seen, []byte(",")), []byte("]"))
}

func placeholderOf(value json.RawMessage) string {
	return "<" + described(value) + "; --out FILE keeps it>"
}

// writeAnswer writes the data in an answer to a file, and further data beside it; an answer
// without any is written as it is printed. It says what is where.
func writeAnswer(s *console.Streams, file string, value toolvalue.Value) error {
	all := slices.Concat([]json.RawMessage{value.JSON}, value.Attachments)
	if items, err := rawjson.Items(value.JSON); err == nil {
		all = slices.Concat(items, value.Attachments)
	}
	n := 0
	for _, one := range all {
		c, ok := dataOf(one)
		if !ok {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(c.Data + c.Blob)
		if err != nil {
			return fmt.Errorf("the answer's %s is not base64: %w", text.Printable(c.MimeType, 60), err)
		}
		n++
		if err := writeOut(s, numbered(file, n), data, described(one)); err != nil {
			return err
		}
	}
	if n > 0 {
		return nil
	}
	body, isText := value.Text()
	if !isText {
		var err error
		if body, err = indented(value.JSON); err != nil {
			return err
		}
	}
	return writeOut(s, file, []byte(strings.TrimSuffix(body, "\n")+"\n"), "")
}

// numbered returns the name of the nth file: a.png, a-2.png.
func numbered(file string, n int) string {
	if n == 1 {
		return file
	}
	ext := filepath.Ext(file)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(file, ext), n, ext)
}

func writeOut(s *console.Streams, file string, data []byte, what string) error {
	if err := os.WriteFile(file, data, 0o644); err != nil {
		if path, ok := errors.AsType[*os.PathError](err); ok {
			err = path.Err
		}
		return fmt.Errorf("cannot write %s: %w", file, err)
	}
	if what == "" {
		what = text.Size(int64(len(data)))
	}
	console.Plainly(s.Err, "wrote "+file+" ("+what+")")
	return nil
}
