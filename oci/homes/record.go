package homes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/toolcell/toolcell/internal/state"
)

// A record is what is noted beside a folder.
type record struct {
	Name   string `json:"name"`   // of the server
	UID    int64  `json:"uid"`    // Home.UID
	GID    int64  `json:"gid"`    // of the files
	Before int64  `json:"before"` // UID that it had before that, -1 if none

	Installed string `json:"installed,omitempty"` // digest of what is installed there; empty is a HOME
	Complete  bool   `json:"complete,omitempty"`  // and that has ended well
}

// folder returns the folder that the record is for.
func (r record) folder() string {
	if r.Installed != "" {
		return installedFolder(r.Name, r.Installed)
	}
	return FolderOf(r.Name)
}

// recordName is the record's file.
const recordName = "home.json"

// maxRecord bounds it in bytes.
const maxRecord = 64 << 10

// An entry is what there is of a server.
type entry struct {
	folder string
	noted  bool // there is a record
	record record
	owner  int64 // of the folder, -1 if there is none
	group  int64
}

// entry reads what there is in a folder of the store. A record that cannot be read counts as none: the
// owner of the folder is known without.
func (s *Store) entry(folder string) (entry, error) {
	e := entry{folder: folder, owner: -1, group: -1, record: record{UID: -1, GID: -1, Before: -1}}
	dir := filepath.Join(s.dir, folder)
	data, err := state.ReadRegular(filepath.Join(dir, recordName), maxRecord)
	if err == nil {
		var r record
		if err := json.Unmarshal(data, &r); err == nil && r.folder() == folder {
			e.record, e.noted = r, true
		}
	}
	path := filepath.Join(dir, homeName)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return e, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() {
		return e, fmt.Errorf("%s is not a folder", path)
	}
	e.owner, e.group = int64(st.Uid), int64(st.Gid)
	return e, nil
}

// entries returns those of all folders. What has another name, or is no folder, is not of this store. A
// home that is no folder is as none: it is said when that server needs it.
func (s *Store) entries() (all []entry, err error) {
	names, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, n := range names {
		if n.IsDir() && isFolder(n.Name()) {
			e, _ := s.entry(n.Name())
			all = append(all, e)
		}
	}
	return all, err
}

// entryAt returns the entry of a Home at a path.
func (s *Store) entryAt(path string) (entry, error) {
	above := filepath.Dir(path)
	if folder := filepath.Base(above); filepath.Dir(above) == s.dir && filepath.Base(path) == homeName && isFolder(folder) {
		return s.entry(folder)
	}
	return entry{}, fmt.Errorf("%s is not the home folder of a server", path)
}

// note writes a record.
func (s *Store) note(folder string, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return state.Replace(filepath.Join(s.dir, folder, recordName), append(data, '\n'), state.Options{Locked: true})
}
