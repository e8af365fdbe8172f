package installer

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/toolcell/toolcell/mcpproxy/install"
)

// Uninstall undoes install's changes to a file. If the file has not changed
// since, its original is restored to the byte; otherwise the entry is removed
// from the text, and moved servers are put back.
func (i *Installer) Uninstall() error {
	record, known, err := i.installs.Of(i.target.File)
	if err != nil {
		return err
	}
	u := &undoing{Installer: i, record: record}
	if len(record.Moved) > 0 {
		if u.moved, err = openEdited(record.MovedTo); err != nil {
			return err
		}
	}
	if err := u.plan(known); err != nil {
		return fmt.Errorf("%s: %w", i.target.File, err)
	}
	if !i.file.changed() && !u.absent && u.moved == nil {
		fmt.Fprintf(i.Streams.Out, "nothing to do: toolcell is not in %s\n", i.target.File)
		return i.installs.Forget(i.target.File)
	}
	if i.DryRun {
		return (&change{Installer: i, moved: u.moved}).show(i.Streams.Out)
	}
	return u.write()
}

// undoing is the change that uninstall is about to make.
type undoing struct {
	*Installer
	record install.Record
	moved  *editedFile // the file with servers that were moved; nil if none were
	absent bool        // the client's file was not there before
	exact  bool
}

func (u *undoing) plan(known bool) (err error) {
	if u.moved != nil {
		u.file.after, u.moved.after, err = u.target.MoveBack(u.file.after, u.moved.before, u.record.Moved)
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
	if err := u.installs.Forget(u.target.File); err != nil {
		return err
	}
	switch {
	case u.absent:
		fmt.Fprintf(u.Streams.Out, "removed: %s, which was not there before\n", u.target.File)
	case u.exact:
		fmt.Fprintf(u.Streams.Out, "restored as it was before: %s\n", u.target.File)
		_ = os.Remove(u.record.Backup) // the file now has the same content
	default:
		fmt.Fprintf(u.Streams.Out, "taken out of %s; the rest of it is as it is now\n", u.target.File)
		if u.record.Backup != "" {
			fmt.Fprintf(u.Streams.Out, "  before: %s\n", u.record.Backup)
		}
	}
	if u.moved != nil {
		fmt.Fprintf(u.Streams.Out, "put back: %d server%s\n", len(u.record.Moved), plural(len(u.record.Moved)))
	}
	return nil
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
	if u.moved.mode == 0 {
		return nil
	}
	return u.moved.remove()
}
