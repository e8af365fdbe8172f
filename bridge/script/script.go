// Package script reads the header by which a script says which packages it needs
// (PEP 723, inline script metadata).
//
// It promises that what it returns names packages of an index by name and version, and
// nothing else: a header that names addresses, paths, or another index is an error
// that says so.
package script

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
	"github.com/toolcell/toolcell/mcpproxy/requirement"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// A Header is what a script says about itself. A nil *Header says nothing.
type Header struct {
	Python       requirement.Specifier // of the Pythons that it runs on
	Dependencies []requirement.Requirement
}

// maxDependencies bounds the dependencies of one header.
const maxDependencies = 200

// block is the regular expression of PEP 723.
var block = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^# /// ([a-zA-Z0-9-]+)$\s((?:^#(?:| .*)$\s)+)^# ///$`)
})

// opening is how the block that is about packages begins.
// With other space in it, it would be a comment like others, and the packages missing.
var opening = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^#[ \t]*///[ \t]*script[ \t]*$`) })

// Parse returns the header of a script, nil if it has none.
func Parse(code string) (*Header, error) {
	if !strings.Contains(code, "///") {
		return nil, nil
	}
	code = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(code)
	var content string
	found := false
	for _, m := range block().FindAllStringSubmatch(code, -1) {
		if m[1] != "script" {
			continue
		}
		if found {
			return nil, errMoreThanOne
		}
		content, found = m[2], true
	}
	if !found {
		if opening().MatchString(code) {
			return nil, errors.New(`the # /// script header is not complete: its first line is "# /// script", each further one begins with "# ", and "# ///" ends it`)
		}
		return nil, nil
	}
	if opening().MatchString(content) { // no line that is not a comment lies between two
		return nil, errMoreThanOne
	}
	h, err := parseContent(uncomment(content))
	if err != nil {
		return nil, fmt.Errorf("the # /// script header: %w", err)
	}
	return h, nil
}

var errMoreThanOne = errors.New("the code has more than one # /// script header")

// uncomment takes away the comment signs.
func uncomment(content string) string {
	lines := strings.Split(content, "\n")
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(line, "# "); ok {
			lines[i] = rest
		} else {
			lines[i] = strings.TrimPrefix(line, "#")
		}
	}
	return strings.Join(lines, "\n")
}

func parseContent(content string) (*Header, error) {
	var top map[string]any
	_, err := toml.Decode(content, &top)
	var syntax toml.ParseError
	if errors.As(err, &syntax) {
		return nil, fmt.Errorf("line %d of its TOML: %s", syntax.Position.Line, syntax.Message)
	}
	if err != nil {
		return nil, err
	}
	h := &Header{}
	for key, v := range top {
		switch key {
		case "requires-python":
			h.Python, err = parsePython(v)
		case "dependencies":
			h.Dependencies, err = parseDependencies(v)
		case "tool":
			err = checkTools(v)
		default:
			err = fmt.Errorf("there is no key %q; the keys are requires-python, dependencies and tool", text.Bound(key, 80))
		}
		if err != nil {
			return nil, err
		}
	}
	return h, nil
}

func parsePython(v any) (requirement.Specifier, error) {
	s, ok := v.(string)
	if !ok {
		return requirement.Specifier{}, errors.New(`requires-python must be a string, as in ">=3.11"`)
	}
	python, err := requirement.ParseSpecifier(s)
	if err != nil {
		return python, fmt.Errorf("requires-python: %w", err)
	}
	return python, nil
}

func parseDependencies(v any) ([]requirement.Requirement, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, errors.New(`dependencies must be a list of strings, as in ["pandas>=2"]`)
	}
	if len(list) > maxDependencies {
		return nil, fmt.Errorf("it has %d dependencies; the most is %d", len(list), maxDependencies)
	}
	all := make([]requirement.Requirement, 0, len(list))
	for _, v := range list {
		line, ok := v.(string)
		if !ok {
			return nil, errors.New(`dependencies must be a list of strings, as in ["pandas>=2"]`)
		}
		r, err := requirement.Parse(line)
		if err != nil {
			return nil, fmt.Errorf("the dependency %q: %w", text.Bound(line, 120), err)
		}
		all = append(all, r)
	}
	return all, nil
}

// uvSources are the settings of uv by which packages would come from elsewhere, or
// others would come.
var uvSources = []string{
	"index", "index-url", "default-index", "extra-index-url", "find-links", "no-index", "sources", "override-dependencies",
	"constraint-dependencies", "exclude-dependencies", "build-constraint-dependencies", "dependency-metadata", "index-strategy",
	"keyring-provider", "allow-insecure-host", "pip",
}

// checkTools refuses settings of uv that would change which packages come. Settings of
// other tools are none of ours.
func checkTools(v any) error {
	tools, ok := v.(map[string]any)
	if !ok {
		return errors.New("tool must be a table")
	}
	uv, _ := tools["uv"].(map[string]any)
	for _, key := range uvSources {
		if _, there := uv[key]; there {
			return fmt.Errorf("[tool.uv] %s is not supported: the user's policy says where packages come from", key)
		}
	}
	return nil
}
