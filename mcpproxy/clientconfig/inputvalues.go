package clientconfig

import (
	"path/filepath"

	"github.com/toolcell/toolcell/internal/state"
)

// Values keeps the values that the user set for inputs of config files. Most are tokens, so
// only the user may read the file.
type Values struct {
	file state.File[map[string]string]
}

// NewValues keeps its file in dir.
func NewValues(dir string) Values {
	return Values{state.File[map[string]string]{Path: filepath.Join(dir, "values.json")}}
}

// File is where it is kept.
func (v Values) File() string { return v.file.Path }

// Of is for Options.Values. When the record cannot be read, nothing is
// set.
func (v Values) Of(file string) map[string]string {
	all, err := v.file.Read()
	if err != nil {
		return nil
	}
	return all[file]
}

// Set gives an input of a file its value.
func (v Values) Set(file, id, value string) error {
	return v.file.Change(func(all map[string]map[string]string) {
		if all[file] == nil {
			all[file] = map[string]string{}
		}
		all[file][id] = value
	})
}

// Forget removes a value. It reports whether there was one.
func (v Values) Forget(file, id string) (was bool, err error) {
	err = v.file.Change(func(all map[string]map[string]string) {
		_, was = all[file][id]
		delete(all[file], id)
		if len(all[file]) == 0 {
			delete(all, file)
		}
	})
	return was, err
}
