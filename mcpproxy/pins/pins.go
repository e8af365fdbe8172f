// Package pins remembers how the user's servers define their tools, so that a
// server cannot change them unnoticed after the user has come to trust them.
//
// The tools of a server are pinned when toolcell first learns of them. Later
// definitions are compared with the pins by digest, and kept beside them until the user
// accepts them. A [Store] is a folder of small files, one for each server,
// which several processes share. Pins say nothing about what a tool does.
package pins

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
)

// A Server holds the pins of one server.
type Server struct {
	Name  string           `json:"server"`
	Since time.Time        `json:"since"` // when its tools were first known
	Tools map[string]*Tool `json:"tools"` // by name
}

// A Tool is one tool of a server. At least one of its versions is there.
type Tool struct {
	Pinned *Version  `json:"pinned,omitempty"` // nil for a tool that the server has added
	Seen   *Version  `json:"seen,omitempty"`   // what the server says now, if that is another
	Gone   time.Time `json:"gone,omitzero"`    // when the server no longer had it
	// ReadsOnly: the user takes the server's word that the tool only reads, though its pin
	// does not say so. It ends when the server no longer says it.
	ReadsOnly bool `json:"readsOnly,omitempty"`
}

// A Version is one definition of a tool.
type Version struct {
	Digest string    `json:"sha256"`
	Since  time.Time `json:"since"`            // when it was first seen
	Shown  Shown     `json:"shown,omitzero"`   // nil if there was no room for it
	Hidden []string  `json:"hidden,omitempty"` // where it has hidden characters, and which
	Noted  bool      `json:"noted,omitempty"`  // a run has told of it
	Hints  Hints     `json:"hints,omitzero"`
}

// A Change is how a tool differs from its pin.
type Change string

// Changes of tools.
const (
	Unchanged Change = ""
	Changed   Change = "changed"
	Added     Change = "added"
	Removed   Change = "removed"
)

// Change reports how the tool differs from its pin.
func (t *Tool) Change() Change {
	switch {
	case t.Pinned == nil:
		return Added
	case t.Seen != nil:
		return Changed
	case !t.Gone.IsZero():
		return Removed
	}
	return Unchanged
}

// pinned returns the version that is pinned, the zero value if none is.
func (t *Tool) pinned() Version {
	if t == nil || t.Pinned == nil {
		return Version{}
	}
	return *t.Pinned
}

// Now returns the current or last definition of the tool.
func (t *Tool) Now() *Version {
	if t.Seen != nil {
		return t.Seen
	}
	return t.Pinned
}

// Key identifies the pins of a server by its name, and by its command and directory or its
// address. Secrets in these do not count, nor does the environment: a new token does not
// make another server.
func Key(s config.Server) string {
	secrets := redact.New(config.Server{Env: s.Env, Headers: s.Headers, Args: s.Args, URL: s.URL, OAuth: s.OAuth})
	identity := []string{s.Name, secrets.Text(s.URL)}
	if s.URL == "" {
		identity = append(identity, s.StartDir(), secrets.Text(s.Command))
		for _, arg := range s.Args {
			identity = append(identity, secrets.Text(arg))
		}
	}
	text, err := json.Marshal(identity)
	if err != nil {
		panic("pins: " + err.Error()) // strings alone
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
