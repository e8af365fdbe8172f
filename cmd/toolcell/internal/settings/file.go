package settings

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/internal/toml"
)

// ProjectFile is the name of the file with which a project lowers limits.
const ProjectFile = ".toolcell.toml"

// Bounds on the files, in bytes. Anyone may have written a project's.
const (
	maxUserFile    = 1 << 20
	maxProjectFile = 64 << 10
)

// A File is a file of settings: the user's config.toml, or a project's .toolcell.toml.
type File struct {
	name    string // as people write it
	entries map[string]entry
}

// An entry is the value of one setting in a file.
type entry struct {
	text string // as a variable would have it
	line int
}

// A FileError is an error in a file of settings.
type FileError struct {
	Name string // of the file, as people write it, perhaps with the line
	Line int    // 0 if Name has it, or for all of the file
	Err  error
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.Name, e.Line, e.Err)
}

// Unwrap returns the error without the place.
func (e *FileError) Unwrap() error { return e.Err }

// place is where an entry is.
func (f *File) place(e entry) string { return fmt.Sprintf("%s:%d", f.name, e.line) }

func (f *File) refuse(e entry, name string, err error) error {
	return console.Invalidf("%w", &FileError{f.name, e.line, fmt.Errorf("%s: %w", name, err)})
}

// UserFile returns the path of the user's file, or "" if there is no folder for it.
func UserFile() string {
	dir := ConfigDir()
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "config.toml")
}

// UserFileName returns the user's file as people write it.
func UserFileName() string {
	if path := UserFile(); path != "" {
		return FromHome(path)
	}
	return "config.toml"
}

// CheckFile returns what is wrong with the user's file, nil if it can be used or is not there.
func CheckFile() error {
	user, err := readUserFile()
	if err != nil || user == nil {
		return err
	}
	for _, k := range All {
		if e, ok := user.entries[k.Name]; ok {
			if err := k.check(clean(e.text)); err != nil {
				return user.refuse(e, k.Name, err)
			}
		}
	}
	return nil
}

// readUserFile returns the user's file, or nil if there is none.
func readUserFile() (*File, error) {
	path := UserFile()
	if path == "" {
		return nil, nil
	}
	data, err := state.ReadRegular(path, maxUserFile)
	return parseFile(data, err, FromHome(path), userMay)
}

// readProjectFile returns the file of a project's folder, or nil if there is none.
func readProjectFile(dir string) (*File, error) {
	path := projectFile(dir)
	if path == "" {
		return nil, nil
	}
	name := FromHome(path)
	if here, err := os.Getwd(); err == nil && state.SameFile(here, dir) {
		name = ProjectFile
	}
	data, err := state.ReadUnlinked(path, maxProjectFile)
	return parseFile(data, err, name, projectMay)
}

// projectFile returns the path of the file in a project's folder, "" outside of one.
func projectFile(dir string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, ProjectFile)
}

// FromHome writes a path as people do.
func FromHome(path string) string {
	home, err := os.UserHomeDir()
	if rest, inside := strings.CutPrefix(path, home+"/"); err == nil && home != "" && home != "/" && inside {
		return "~/" + rest
	}
	return path
}

// parseFile returns the settings of a text that was read. All of them have to be allowed. Its
// errors name the file and the line.
func parseFile(data []byte, err error, name string, allowed func(Setting) error) (*File, error) {
	fail := func(line int, err error) error {
		return console.Invalidf("%w", &FileError{name, line, err})
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fail(0, errors.New(state.Reason(err)))
	}
	lines, err := toml.Lines(data)
	if wrong, ok := errors.AsType[*toml.Error](err); ok {
		return nil, fail(wrong.Line, errors.New(wrong.Message))
	}
	var written toml.Table[string, jsontext.Value]
	if err := toml.Unmarshal(context.Background(), data, &written); err != nil { // it has been read before
		return nil, fail(0, err)
	}
	f := &File{name: name, entries: map[string]entry{}}
	for _, m := range written {
		for key, value := range inSection(m.Key, m.Value) {
			text, err := valueOf(key, value, allowed)
			if _, twice := f.entries[key]; twice && err == nil {
				err = fmt.Errorf("%s is set twice", key)
			}
			if err != nil {
				return nil, fail(lines[m.Key], err)
			}
			f.entries[key] = entry{text, lines[m.Key]}
		}
	}
	return f, nil
}

// inSection returns a setting, or those of a section whose name is the beginning of theirs:
// values in [record] is record-values.
func inSection(key string, value jsontext.Value) iter.Seq2[string, jsontext.Value] {
	var members toml.Table[string, jsontext.Value]
	unknown := func(m toml.Member[string, jsontext.Value]) bool { return settingOf(Groups, key+"-"+m.Key) == nil }
	if value.Kind() != jsontext.KindBeginObject || json.Unmarshal(value, &members) != nil || len(members) == 0 || slices.ContainsFunc(members, unknown) {
		return func(yield func(string, jsontext.Value) bool) { yield(key, value) }
	}
	return func(yield func(string, jsontext.Value) bool) {
		for _, m := range members {
			if !yield(key+"-"+m.Key, m.Value) {
				return
			}
		}
	}
}

// valueOf returns the value of a key as a variable would have it.
func valueOf(key string, value jsontext.Value, allowed func(Setting) error) (string, error) {
	k, err := ofKey(key)
	// A date is an object as well, with a member that has no name.
	if err != nil && value.Kind() == jsontext.KindBeginObject && !bytes.HasPrefix(value, []byte(`{"":`)) {
		return "", fmt.Errorf("settings go at the top level: remove the [%s] header", shownKey(key))
	}
	if err != nil {
		return "", err
	}
	if err := allowed(*k); err != nil {
		return "", err
	}
	text, err := textOf(*k, value)
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	return text, nil
}

// shownKey is a key in a message.
func shownKey(key string) string { return toml.Key{text.Bound(key, maxQuoted)}.String() }

// ofKey returns the setting of a key in a file, or an error that says which was meant.
func ofKey(key string) (*Setting, error) {
	if k := settingOf(Groups, key); k != nil {
		return k, nil
	}
	if meant := Meant(key); meant != "" {
		return nil, fmt.Errorf("there is no setting %s; did you mean %s?", shownKey(key), meant)
	}
	return nil, fmt.Errorf("there is no setting %s; toolcell help settings lists them", shownKey(key))
}

// Meant returns the name of the setting that another spelling means: that of a variable, one with
// underscores or capitals, or a misspelled one. It returns "" if there is none.
func Meant(given string) string {
	given = given[:min(len(given), maxQuoted)]
	if k := OfVariable(strings.ToUpper(given)); k != nil {
		return k.Name
	}
	var name strings.Builder
	for i, r := range given {
		if i > 0 && unicode.IsUpper(r) && unicode.IsLower(rune(given[i-1])) { // maxTimeout
			name.WriteByte('-')
		}
		name.WriteRune(unicode.ToLower(r))
	}
	words := strings.TrimLeft(strings.ReplaceAll(name.String(), "_", "-"), "-")
	words = strings.TrimPrefix(strings.TrimPrefix(words, "toolcell-"), "mcp-bridge-")
	var names []string
	for _, k := range All {
		if old := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(k.OldVariable(), oldPrefix)), "_", "-"); old == words {
			return k.Name
		}
		names = append(names, k.Name)
	}
	if slices.Contains(names, words) {
		return words
	}
	return text.Misspelled(words, names)
}

// userMay refuses settings that are of no use in the user's file.
func userMay(k Setting) error {
	if k.Name == "runtime" {
		return errors.New("runtime has no effect; leave it out")
	}
	return nil
}

// lowerable are the limits that a project may lower: those of its own runs.
var lowerable = []string{
	"timeout", "max-timeout", "memory", "pids", "cpus", "sessions", "session-idle-timeout",
	"output-bytes", "pictures", "picture-size", "picture-bytes",
}

// projectMay refuses what a project's file, which comes with a clone, has no say in.
func projectMay(k Setting) error {
	if k.Name == "output" || slices.Contains(lowerable, k.Name) {
		return nil
	}
	return fmt.Errorf("%s cannot be set in %s; set it in %s (a project may only lower limits and choose output)",
		k.Name, ProjectFile, UserFileName())
}

// textOf returns a value of a file as a variable would have it.
func textOf(k Setting, value jsontext.Value) (string, error) {
	wrong := fmt.Errorf("it must be %s", k.kind.form())
	switch value.Kind() {
	case jsontext.KindString:
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return "", err
		}
		return lasting(k, s)
	case jsontext.KindNumber:
		if k.kind == aNumber {
			return strings.TrimSuffix(string(value), ".0"), nil
		}
	case jsontext.KindTrue, jsontext.KindFalse:
		if k.kind == aSwitch {
			return string(value), nil
		}
	case jsontext.KindBeginArray:
		var items []string
		if k.kind != aList || json.Unmarshal(value, &items) != nil {
			return "", wrong
		}
		return joined(k, items)
	}
	return "", wrong
}

// separators are what may stand between the items of a list where it is one text: in a path there
// may be blanks, and a registry may have several mirrors.
func (k Setting) separators() string {
	switch k.Name {
	case "mounts":
		return ",\n"
	case "registry-mirrors":
		return " \t\n"
	case "record-redact":
		return "\n"
	}
	return ", \t\n"
}

func (k Setting) separator() string { return k.separators()[:1] }

// joined returns a list as one text.
func joined(k Setting, items []string) (string, error) {
	for i, item := range items {
		items[i] = strings.TrimSpace(item)
		if at := strings.IndexAny(items[i], k.separators()); at >= 0 {
			return "", fmt.Errorf("%q has %q in it; make it two items", text.Bound(item, maxQuoted), items[i][at])
		}
	}
	return lasting(k, strings.Join(items, k.separator()))
}

// archives begin references of images that are paths.
var archives = []string{"oci:", "oci-archive:", "docker-archive:"}

// lasting returns a value with its paths as they are for every process: those below ~ are whole, and
// relative ones are refused, since toolcell starts in any folder.
func lasting(k Setting, value string) (string, error) {
	switch {
	case slices.Contains(paths, k.Name):
		return wholePath(value)
	case k.Name == "image":
		for _, scheme := range archives {
			if path, ok := strings.CutPrefix(value, scheme); ok {
				path, err := wholePath(path)
				return scheme + path, err
			}
		}
	case k.Name == "mounts":
		return value, checkLasting(value)
	}
	return value, nil
}

func wholePath(path string) (string, error) {
	switch {
	case path == "" || filepath.IsAbs(path):
		return path, nil
	case !strings.HasPrefix(path, "~/"):
		return "", relative(path)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("%q: %w", text.Bound(path, maxQuoted), err)
	}
	return filepath.Join(home, path[2:]), nil
}

// relative is the error of a path that depends on where a client starts this program.
func relative(path string) error {
	return fmt.Errorf("%q is relative, and a client may start toolcell in any folder: write an absolute path", text.Bound(path, maxQuoted))
}
