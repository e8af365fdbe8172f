package settings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/toml"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/edit"
)

// SetInFile gives a setting a value in the user's file; several are the items of a list. Without a
// value it takes the setting out, as RemoveFromFile does. Comments, order and form of the file stay.
// A value that serve would refuse is an error, and changes nothing.
func SetInFile(ctx context.Context, name string, values []string) error {
	k, err := ofKey(name)
	if err == nil {
		err = userMay(*k)
	}
	if err != nil {
		return console.Invalidf("%w", err)
	}
	if len(values) > 1 && k.kind != aList {
		return console.Invalidf("%s takes one value, got %d", name, len(values))
	}
	if !slices.ContainsFunc(values, func(v string) bool { return clean(v) != "" }) {
		_, err := RemoveFromFile(ctx, name)
		return err
	}
	text, value, err := written(*k, values)
	if err == nil {
		err = k.check(text)
	}
	if err == nil {
		err = checkUsable(*k, text)
	}
	if err != nil {
		return console.Invalidf("%s: %w", name, err)
	}
	return changeUserFile(ctx, func(path string, data []byte) ([]byte, error) { return edit.Set(path, data, value, name) })
}

// files are the settings that name a file which someone else writes.
var files = []string{"registry-ca", "authfile", "uv", "policy", "servers-config"}

// checkUsable refuses a value that can be read but cannot work: a file or image that is not there, an
// image reference that is none, or a folder that code must not see. Clients do not show why serve refuses it.
func checkUsable(k Setting, value string) error {
	switch {
	case k.Name == "image":
		return checkImage(value)
	case k.Name == "mounts":
		return checkMountsInFile(value)
	case slices.Contains(files, k.Name):
		return checkPath(value, false)
	}
	return nil
}

// checkImage refuses what is no image reference, and a layout or archive that is not there.
func checkImage(value string) error {
	ref, err := images.Parse(value)
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "image "))
	}
	if !ref.Local() {
		return nil
	}
	return checkPath(ref.Path, ref.Kind == images.Layout)
}

// checkPath refuses a path that leads nowhere, or to a file instead of a directory and the other way
// round. One that this process cannot look at may be right.
func checkPath(path string, directory bool) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s does not exist", path)
	case err != nil:
		return nil //nolint:nilerr // perhaps only here
	case directory && !info.IsDir():
		return fmt.Errorf("%s is a file, not a directory", path)
	case !directory && info.IsDir():
		return fmt.Errorf("%s is a directory, not a file", path)
	}
	return nil
}

// RemoveFromFile takes a setting, or a key that is none, out of the user's file, and reports whether
// it was there.
func RemoveFromFile(ctx context.Context, name string) (was bool, err error) {
	err = changeUserFile(ctx, func(path string, data []byte) (rest []byte, err error) {
		rest, was, err = edit.Cut(path, data, name)
		return rest, err
	})
	if err == nil && !was {
		if _, err := ofKey(name); err != nil {
			return false, console.Invalidf("%w", err)
		}
	}
	return was, err
}

// written returns a value as a variable has it, and as the file has it.
func written(k Setting, values []string) (text string, value json.RawMessage, err error) {
	var form any
	switch k.kind {
	case aList:
		items := strings.FieldsFunc(strings.Join(values, k.separator()), func(r rune) bool {
			return strings.ContainsRune(k.separators(), r)
		})
		for i := range items {
			items[i] = strings.TrimSpace(items[i])
		}
		form = items
		text, err = joined(k, slices.Clone(items))
	case aNumber, aSwitch, aText:
		given := clean(values[0])
		form = given
		text, err = lasting(k, given)
	}
	if on, wrong := parseBool(text); k.kind == aSwitch && wrong == nil {
		form = on
	}
	if k.kind == aNumber && json.Valid([]byte(text)) { // numbers of JSON are numbers of TOML
		form = json.RawMessage(text)
	}
	if err == nil {
		value, err = json.Marshal(form)
	}
	return text, value, err
}

// changeUserFile is ChangeFile for the user's file of settings.
func changeUserFile(ctx context.Context, change func(path string, data []byte) ([]byte, error)) error {
	path := UserFile()
	if path == "" {
		return console.Invalidf("there is no HOME, and so no folder for config.toml; set HOME, or XDG_CONFIG_HOME")
	}
	return ChangeFile(ctx, path, change)
}

// ChangeFile replaces the text of a TOML file of the user's, or makes the file. A link in its place stays, and what
// it leads to is replaced. Only one process does so at a time, so that no change is lost.
func ChangeFile(ctx context.Context, path string, change func(path string, data []byte) ([]byte, error)) error {
	name := FromHome(path)
	failed := func(err error) error { return fmt.Errorf("changing %s: %s", name, state.Reason(err)) }
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return failed(err)
	}
	lock, err := lockFolder(ctx, filepath.Dir(path))
	if err != nil {
		return failed(err)
	}
	defer lock.Close()
	real, data, o, err := openUserFile(path)
	if err != nil {
		return failed(err)
	}
	if _, err := toml.Lines(data); err != nil { // a mistake has a line
		wrong, _ := errors.AsType[*toml.Error](err)
		return console.Invalidf("%w; correct it first", &FileError{name, wrong.Line, errors.New(wrong.Message)})
	}
	after, err := change(path, data) // the name of the file tells the format
	if err != nil {
		return console.Invalidf("%s: %w", name, err)
	}
	if bytes.Equal(after, data) {
		return nil
	}
	if err := state.Replace(real, after, o); err != nil {
		return failed(err)
	}
	return nil
}

// openUserFile returns the text of the user's file, where it really is, and how to replace it.
func openUserFile(path string) (real string, data []byte, o state.Options, err error) {
	if real, err = filepath.EvalSymlinks(path); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return "", nil, o, errors.New("it is a link that leads nowhere")
		}
		return path, nil, state.Options{Mode: 0o600}, nil
	}
	if err != nil {
		return "", nil, o, err
	}
	data, info, err := state.ReadExact(real, maxUserFile)
	if err != nil {
		return "", nil, o, err
	}
	o = state.Options{Mode: info.Mode().Perm(), Exact: true}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		o.Finish = func(f *os.File) error { return f.Chown(int(st.Uid), int(st.Gid)) }
	}
	return real, data, o, nil
}

// lockFolder locks the folder of the user's file, which gets no lock file into it.
func lockFolder(ctx context.Context, dir string) (*os.File, error) {
	for {
		lock, err := state.TryLock(dir, unix.O_DIRECTORY, state.Exclusive)
		if !errors.Is(err, state.ErrLocked) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TakesEffect says when a change of a setting in a file takes effect.
func TakesEffect(name string) string {
	if slices.Contains(fixed, name) {
		return "takes effect after a restart"
	}
	return "takes effect on the next run"
}
