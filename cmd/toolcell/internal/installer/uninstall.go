package installer

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig/edit"
)

// Uninstall undoes install's changes to a file. If the file has not changed
// since, its original is restored to the byte; otherwise the entry is removed
// from the text, and moved servers are put back.
// It prints what it does, or would do in a dry run. The report is nil if nothing was
// moved out of an older file.
func (i *Installer) Uninstall() (*Report, error) {
	record, known, err := i.record(i.target.File)
	if err != nil {
		return nil, err
	}
	if i.older && !known {
		return nil, nil
	}
	u := &undoing{Installer: i, record: record}
	if len(record.ByDir()) > 0 {
		if u.moved, err = openEdited(record.MovedTo); err != nil {
			return nil, err
		}
	}
	if err := u.plan(known); err != nil {
		return nil, fmt.Errorf("%s: %w", i.target.File, err)
	}
	report := u.summary()
	switch {
	case report.Status == notInstalled:
		i.print(report)
		if i.DryRun {
			return report, nil
		}
		return report, i.forget()
	case i.DryRun:
		c := &change{Installer: i, moved: u.moved}
		if report.Diff = c.diff(); !i.JSON {
			err = c.show(i.Streams.Out)
		}
		return report, err
	}
	if err := u.write(); err != nil {
		return nil, err
	}
	i.print(report)
	return report, nil
}

// undoing is the change that uninstall is about to make.
type undoing struct {
	*Installer
	record edit.Record
	moved  *editedFile // the file with servers that were moved; nil if none were
	lost   int         // moved servers that are in neither file any more
	absent bool        // the client's file was not there before
	exact  bool
}

func (u *undoing) plan(known bool) (err error) {
	if u.moved != nil {
		if u.lost, err = u.target.Lost(u.file.after, u.moved.after, u.record.ByDir()); err != nil {
			return err
		}
		u.file.after, u.moved.after, err = u.target.MoveBack(u.file.after, u.moved.after, u.record.ByDir())
		if err != nil {
			return err
		}
	}
	untouched := known && u.record.Sum == checksum(u.file.before) && (u.moved == nil || u.record.MovedSum == checksum(u.moved.before))
	if untouched && u.record.Backup == "" {
		u.absent, u.exact, u.file.after = true, true, nil
		return nil
	}
	if untouched {
		if backup, err := openEdited(u.record.Backup); err == nil && backup.mode != 0 {
			// A backup that has an entry was made by an update: restoring it
			// would not uninstall.
			if name, _, err := u.target.Others(backup.before); err == nil && name == "" {
				u.exact, u.file.after = true, backup.before
				return nil
			}
		}
	}
	if u.older {
		return nil
	}
	name := u.Name
	if name == "" {
		name = u.record.Name
	}
	text, was, err := u.target.Uninstall(u.file.after, name, u.record.MadeKey)
	if err == nil && was == "" && u.Name == "" { // it was renamed by hand
		text, _, err = u.target.Uninstall(u.file.after, "", u.record.MadeKey)
	}
	u.file.after = text
	return err
}

// write writes the client's file first: a server that is in both files counts
// once.
func (u *undoing) write() error {
	if err := u.checkWritable(u.file, u.moved); err != nil {
		return err
	}
	if u.absent {
		if err := u.file.remove(); err != nil {
			return err
		}
	} else if err := u.file.write(); err != nil {
		return err
	}
	if u.moved != nil {
		if err := u.writeMoved(); err != nil {
			return err
		}
	}
	if u.exact && !u.absent {
		_ = os.Remove(u.record.Backup) // the file now has the same content
	}
	for _, dir := range slices.SortedFunc(slices.Values(u.record.MadeDirs), func(a, b string) int { return len(b) - len(a) }) {
		_ = os.Remove(dir) // unless something is in it
	}
	return u.forget()
}

// summary returns the report of the change that is about to be made.
func (u *undoing) summary() *Report {
	r := u.newReport(takenOut)
	switch {
	case !u.file.changed() && !u.absent && u.moved == nil:
		r.Status = notInstalled
		return r
	case u.absent:
		r.Status = removed
	case u.exact:
		r.Status = restored
	default:
		if u.older {
			r.Status = serversPutBack
		}
		if _, err := os.Stat(u.record.Backup); err == nil {
			r.Backup = u.record.Backup
		}
	}
	r.Name = u.record.Name
	for _, names := range u.record.ByDir() {
		r.PutBack += len(names)
	}
	if !u.exact {
		r.Lost = u.lost
		r.PutBack -= u.lost
	}
	return r
}

// writeMoved removes the file of moved servers if none are left, with the values
// that were set for them.
func (u *undoing) writeMoved() error {
	if u.target.HasServers(u.moved.after) {
		return u.moved.write()
	}
	values := u.Values
	for _, id := range slices.Sorted(maps.Keys(values.Of(u.moved.path))) {
		if _, err := values.Forget(u.moved.path, id); err != nil {
			return err
		}
	}
	if u.moved.isNew {
		return nil
	}
	if err := u.moved.remove(); err != nil {
		return err
	}
	// The install of another client may have made these folders, which are ours.
	servers := filepath.Dir(u.moved.path)
	for _, dir := range []string{servers, filepath.Dir(servers)} {
		_ = os.Remove(dir) // unless something is in it
	}
	return nil
}
