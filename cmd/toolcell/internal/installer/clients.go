package installer

import (
	"github.com/toolcell/toolcell/mcpproxy/discovery"
	"github.com/toolcell/toolcell/mcpproxy/install"
)

// ClientNames returns the clients that toolcell can be installed in.
func ClientNames() (names []string) {
	for _, p := range install.Targets(discovery.Options{Home: "/", Dir: "/"}) {
		names = append(names, p.Client)
	}
	return names
}

// A Client describes whether toolcell is installed in a client.
type Client struct {
	Client  string `json:"client"`
	Title   string `json:"title"`
	File    string `json:"file"`
	Status  string `json:"status"` // installed, not installed, no file, or unreadable
	Servers int    `json:"servers"`
	Error   string `json:"error,omitempty"`
}

// Clients returns a row for each known client.
func Clients(o discovery.Options) (rows []Client) {
	for _, t := range install.Targets(o) {
		rows = append(rows, rowOf(t))
	}
	return rows
}

func rowOf(t install.Target) Client {
	r := Client{Client: t.Client, Title: t.Title, File: t.File, Status: "not installed"}
	file, err := openEdited(t.File)
	var name string
	if err == nil {
		name, r.Servers, err = t.Others(file.before)
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
