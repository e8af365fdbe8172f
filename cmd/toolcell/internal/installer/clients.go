package installer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/edit"
)

// ClientNames returns the clients that toolcell can be installed in.
func ClientNames() (names []string) {
	for _, p := range edit.Targets(clientconfig.Options{Home: "/", Dir: "/"}) {
		names = append(names, p.Client)
	}
	return names
}

// A Client describes whether toolcell is installed in a client.
type Client struct {
	Client  string `json:"client"`
	Title   string `json:"title"`
	File    string `json:"file"`
	Found   bool   `json:"found"`  // the client seems to be on this machine
	Status  string `json:"status"` // installed, not installed, no file, or unreadable
	Servers int    `json:"servers"`
	Error   string `json:"error,omitempty"`
}

// Clients returns a row for each known client.
func Clients(o clientconfig.Options) (rows []Client) {
	for _, t := range edit.Targets(o) {
		rows = append(rows, rowOf(t))
	}
	return rows
}

func rowOf(t edit.Target) Client {
	r := Client{Client: t.Client, Title: t.Title, File: t.File, Status: "not installed", Found: t.Detected()}
	file, err := openEdited(t.File)
	var name string
	if err == nil {
		name, r.Servers, err = othersOf(t, file.before)
	}
	switch {
	case err != nil:
		r.Status, r.Error = "unreadable", err.Error()
	case file.mode == 0:
		r.Status = "no file"
	case name != "":
		r.Status = "installed"
	}
	return r
}

// Has reports whether the client's file, or that of the project, has an entry for toolcell. One that
// cannot be read has none.
func Has(o clientconfig.Options, client string, project bool) bool {
	t, err := edit.TargetOf(o, client, project)
	return err == nil && rowOf(t).Status == "installed"
}

// Look returns what is known of the client's file, or of that of the project, with the entries in it
// that start toolcell. A file that cannot be read has none. The error is that of an unknown client.
func Look(o clientconfig.Options, client string, project bool) (Client, []edit.SelfEntry, error) {
	t, err := edit.TargetOf(o, client, project)
	if err != nil {
		return Client{}, nil, err
	}
	return rowOf(t), selfEntries(t), nil
}

// othersOf finds the name of toolcell in a client's file, and counts the client's other
// servers, with those of its older file.
func othersOf(t edit.Target, data []byte) (name string, others int, err error) {
	name, others, err = t.Others(data)
	if older, ok := t.Older(); ok {
		if file, err := openEdited(older.File); err == nil {
			_, more, _ := older.Others(file.before) // a file that cannot be read has none to move
			others += more
		}
	}
	return name, others, err
}

// Installed returns the clients whose own file has toolcell, or had servers moved
// out of it, and the other files that install changed, such as those of projects.
func Installed(o clientconfig.Options, s settings.Settings) (clients, others []string, err error) {
	changed, err := edit.Journal(s.Dirs.State).Read()
	if err != nil {
		return nil, nil, err
	}
	for _, t := range edit.Targets(o) {
		older, _ := t.Older()
		_, byUs := changed[t.File]
		_, movedOut := changed[older.File]
		if byUs || movedOut || rowOf(t).Status == "installed" {
			clients = append(clients, t.Client)
		}
		delete(changed, t.File)
		delete(changed, older.File)
	}
	for file := range changed {
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			others = append(others, file)
		}
	}
	return clients, others, nil
}

// Detected returns the clients that seem to be on this machine.
func Detected(o clientconfig.Options) (clients []string, err error) {
	for _, row := range Clients(o) {
		if row.Found {
			clients = append(clients, row.Client)
		}
	}
	if len(clients) == 0 {
		return nil, fmt.Errorf("no MCP client was found on this machine; name one")
	}
	return clients, nil
}

// A SelfEntry is an entry for toolcell in a client's own file.
type SelfEntry struct {
	Client, Title, File string
	edit.SelfEntry
}

// SelfEntries returns the entries that start toolcell in the files of all clients.
// Files that cannot be read have none.
func SelfEntries(o clientconfig.Options) (all []SelfEntry) {
	for _, t := range edit.Targets(o) {
		for _, e := range selfEntries(t) {
			all = append(all, SelfEntry{t.Client, t.Title, t.File, e})
		}
	}
	return all
}

// selfEntries returns the entries that start toolcell in one file.
func selfEntries(t edit.Target) []edit.SelfEntry {
	file, err := openEdited(t.File)
	if err != nil {
		return nil
	}
	found, err := t.SelfEntries(file.before)
	if err != nil {
		return nil
	}
	return found
}
