// Package scriptheader reads the header by which a script says which packages it needs
// (PEP 723, inline script metadata).
//
// It promises that what it returns names packages of an index by name and version, and
// nothing else: a header that names addresses, paths, or another index is an error
// that says so.
package scriptheader

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/internal/toml"
)

// A Header is what a script says about itself. A nil *Header says nothing.
type Header struct {
	Python       requirement.Specifier // of the Pythons that it runs on
	Dependencies []requirement.Requirement
	// Before is the time from which on uploads do not count ([tool.uv] exclude-newer); zero is
	// none.
	Before time.Time
}

const (
	maxHeader       = 64 << 10 // bytes; 200 dependencies have about ten thousand
	maxDependencies = 200
)

// Parse returns the header of a script, nil if it has none.
func Parse(code string) (*Header, error) {
	if !strings.Contains(code, "///") {
		return nil, nil
	}
	content, found, err := findBlock(code)
	if err != nil || !found {
		return nil, err
	}
	h, err := parseContent(content)
	if err != nil {
		return nil, fmt.Errorf("the # /// script header: %w", err)
	}
	return h, nil
}

var errMoreThanOne = errors.New("the code has more than one # /// script header")

// findBlock returns what the header has, as the regular expression of PEP 723 finds it.
func findBlock(code string) (content string, found bool, err error) {
	opens := false
	for code != "" {
		line, rest := cutLine(code)
		opens = opens || isOpening(line)
		kind, ok := strings.CutPrefix(line, "# /// ")
		if code = rest; !ok || !isKind(kind) {
			continue
		}
		b := blockIn(code)
		code = b.rest
		switch {
		case !b.ends:
			opens = opens || b.opens
		case kind != "script":
		case found || b.opens:
			return "", false, errMoreThanOne // no line that is not a comment lies between two
		default:
			content, found = uncomment(b.content), true
		}
	}
	if opens && !found {
		return "", false, errors.New(`the # /// script header is not complete: its first line is "# /// script", each further one begins with "# ", and "# ///" ends it`)
	}
	return content, found, nil
}

// A block is what follows its first line.
type block struct {
	ends    bool
	content string // before the last line that can end it
	opens   bool   // a line of it is how one begins
	rest    string // after it; if it does not end, no block that begins in it does
}

func blockIn(code string) (b block) {
	opens, at := false, code
	for first := true; at != ""; first = false {
		line, next := cutLine(at)
		if !isContent(line) {
			break
		}
		if line == "# ///" && !first {
			b = block{ends: true, content: code[:len(code)-len(at)], opens: opens, rest: next}
		}
		opens, at = opens || isOpening(line), next
	}
	if !b.ends {
		b.opens, b.rest = opens, at
	}
	return b
}

// cutLine cuts off the first line, which ends as those of Python do. Lines are not split
// all at once, since the headers of slices take more memory than short lines.
func cutLine(code string) (line, rest string) {
	end := strings.IndexAny(code, "\r\n")
	if end < 0 {
		return code, ""
	}
	line, rest = code[:end], code[end+1:]
	if code[end] == '\r' {
		rest = strings.TrimPrefix(rest, "\n")
	}
	return line, rest
}

func isContent(line string) bool { return line == "#" || strings.HasPrefix(line, "# ") }

func isKind(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == ""
}

// isOpening reports whether a line is how the block that is about packages begins. With
// other space in it, it would be a comment like others, and the packages missing.
func isOpening(line string) bool {
	comment, isComment := strings.CutPrefix(line, "#")
	kind, isBlock := strings.CutPrefix(strings.TrimLeft(comment, " \t"), "///")
	return isComment && isBlock && strings.Trim(kind, " \t") == "script"
}

// uncomment takes away the comment signs.
func uncomment(content string) string {
	var b strings.Builder
	for content != "" {
		var line string
		line, content = cutLine(content)
		b.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, "#"), " "))
		b.WriteByte('\n')
		if b.Len() > maxHeader {
			break // it is refused
		}
	}
	return b.String()
}

func parseContent(content string) (*Header, error) {
	if len(content) > maxHeader {
		return nil, fmt.Errorf("it has more than %d KiB", maxHeader>>10)
	}
	var top struct {
		Python       requirement.Specifier `json:"requires-python"`
		Dependencies dependencies          `json:"dependencies"`
		Tool         struct {
			UV     uvSettings     `json:"uv"`
			Others jsontext.Value `json:",embed"` // settings of other tools are none of ours
		} `json:"tool"`
	}
	err := toml.Unmarshal(context.Background(), []byte(content), &top)
	if wrong, ok := errors.AsType[*toml.Error](err); ok {
		return nil, fmt.Errorf("line %d of its TOML: %s", wrong.Line, wrong.Message)
	}
	if err != nil {
		return nil, err
	}
	return &Header{Python: top.Python, Dependencies: top.Dependencies, Before: time.Time(top.Tool.UV.ExcludeNewer)}, nil
}

type dependencies []requirement.Requirement

// UnmarshalJSONFrom takes a list of requirements.
func (all *dependencies) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != jsontext.KindBeginArray {
		return toml.KindError(`a list of strings, such as ["pandas>=2"]`)
	}
	if err := json.UnmarshalDecode(d, (*[]requirement.Requirement)(all)); err != nil {
		return err
	}
	if len(*all) > maxDependencies {
		return fmt.Errorf("it has %d dependencies; the most is %d", len(*all), maxDependencies)
	}
	return nil
}

// harmless are the settings of uv that do not change which packages come: its cache, how
// it links and compiles, the Python that it would fetch, and how packages are built, since
// none are (uv 0.13.9, settings and project metadata). All others are refused, also those
// of later versions: their effect would go unnoticed.
var harmless = map[string]bool{
	"add-bounds": true, "build-backend": true, "cache-dir": true, "cache-keys": true, "check-url": true, "compile-bytecode": true,
	"concurrent-builds": true, "concurrent-downloads": true, "concurrent-installs": true, "config-settings": true,
	"config-settings-package": true, "extra-build-dependencies": true, "extra-build-variables": true, "link-mode": true,
	"managed": true, "native-tls": true, "no-build": true, "no-build-isolation": true, "no-build-isolation-package": true,
	"no-build-package": true, "no-cache": true, "package": true, "publish-url": true, "pypy-install-mirror": true,
	"python-downloads": true, "python-downloads-json-url": true, "python-install-mirror": true, "python-preference": true,
	"reinstall": true, "reinstall-package": true, "required-version": true, "system-certs": true, "trusted-publishing": true,
}

// uvSettings are the one setting of uv that is obeyed, and others.
type uvSettings struct {
	ExcludeNewer uploadTime                `json:"exclude-newer"`
	Others       map[string]jsontext.Value `json:",embed"`
}

// UnmarshalJSONFrom refuses settings that would change which packages come.
func (uv *uvSettings) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	type fields uvSettings
	if err := json.UnmarshalDecode(d, (*fields)(uv)); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(uv.Others)) {
		if !harmless[key] {
			return toml.KeyError(d, key, errors.New("it is not supported, since it may change which packages come: leave it out; "+
				"the user's policy says where packages come from"))
		}
	}
	return nil
}

// An uploadTime is the time from which on uploads do not count.
type uploadTime time.Time

// UnmarshalJSONFrom takes the time that uv takes. With a date alone, the whole day counts.
func (u *uploadTime) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var s string
	err := json.UnmarshalDecode(d, &s)
	t, wrong := time.Parse(time.RFC3339, s)
	if wrong != nil {
		t, wrong = time.Parse(time.DateOnly, s)
		t = t.AddDate(0, 0, 1)
	}
	if t = t.UTC(); err == nil && wrong == nil && t.Year() >= 0 && t.Year() <= 9999 { // what JSON can hold
		*u = uploadTime(t)
		return nil
	}
	return errors.New(`it must be a string with a date or a time, such as "2026-01-31" or "2026-01-31T12:00:00Z"`)
}
