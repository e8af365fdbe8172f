// Package config describes the user's MCP servers as config files name them:
// entries, what is wrong with them, and the values they lack. It reads no files.
package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Server is one of the user's MCP servers, as a config file describes it.
type Server struct {
	Name      string
	Alias     string // the Python identifier scripts know it by, unique in one Config
	Transport Transport

	// Of a server over stdio.
	Command string
	Args    []string
	Env     map[string]string // added to the environment of this process
	Dir     string            // "cwd" in the file
	// DefaultDir is where it starts if there is no "cwd"; empty is the directory
	// that this process runs in.
	DefaultDir string

	// Of a remote server.
	URL     string
	Headers map[string]string // sent with every request
	OAuth   *OAuth            // what the file says of it; the rest is found out

	// What the client's file says of the tools: nil allows all.
	AllowTools, DenyTools []string
	StartTimeout          time.Duration // 0 is the program's own
	CallTimeout           time.Duration // 0 is the program's own

	Description string
	Source      string   // the file it came from
	Project     bool     `json:",omitzero"` // that file is a project's; omitzero keeps fingerprints as they are
	Client      string   // the MCP client whose file that is, such as "claude"
	Also        []string // further files that have the same server
}

// A Transport is the way to reach a server.
type Transport string

// The transports. Remote means a URL whose file does not name one: streamable
// HTTP is tried first, then SSE.
const (
	Stdio  Transport = "stdio"
	HTTP   Transport = "http"
	SSE    Transport = "sse"
	Remote Transport = "remote"
)

// OAuth has the settings of an entry for logins. The rest is discovered.
type OAuth struct {
	ClientID, ClientSecret string   // of a client that was registered beforehand
	PrivateKey, KeyID      string   // PEM: the client signs with it in place of a secret
	MetadataURL            string   // of the client's metadata document, its id where the service takes one
	Issuer                 string   // the authorization server that knows the client; empty: the one that the server names first
	Scopes                 []string // what to ask for; empty: what the server says
	RedirectURL            string   // that the client was registered with; empty: any port of this host
	// Machine logs the client in as itself, without a user (client_credentials).
	Machine bool
}

// Fingerprint tells whether two entries are one server that is started or
// reached alike: it is what a warm connection and the catalog on disk are
// kept by. It is a digest, as entries have secrets.
func (s Server) Fingerprint() string {
	s.Alias, s.Description, s.Source, s.Project, s.Client, s.Also = "", "", "", false, "", nil
	text, err := json.Marshal(s) // maps in order of their keys
	if err != nil {
		panic("mcpproxy: " + err.Error() + ": give Server only fields that JSON has")
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// What became of an entry that gave no server: the Status of a Problem, and of
// a ServerStatus.
const (
	StatusSkipped    = "skipped"     // broken, hidden by another of its name, or this program itself
	StatusDisabled   = "disabled"    // switched off in its file
	StatusUntrusted  = "untrusted"   // in a file of the project that the user has not allowed to start commands
	StatusNeedsValue = "needs_value" // names a variable or an input that has no value
	StatusSame       = "same"        // another name of a server that was found already: not listed
)

// Why a server could not be searched, as the Status of a Problem.
const (
	StatusStarting = "starting" // it has not answered yet
	StatusFailed   = "failed"   // it did not start, or ended
)

// Problem is a file or an entry that gave no server, by name and with the
// reason and its cure. Server is empty when the whole file is meant.
type Problem struct {
	Source    string    `json:"source"`
	Server    string    `json:"server,omitempty"`
	Client    string    `json:"client,omitempty"`
	Transport Transport `json:"transport,omitempty"`
	Status    string    `json:"status"`
	Reason    string    `json:"reason"`
	Skipped   bool      `json:"skipped,omitempty"` // left out on purpose (disabled, or this program itself): nothing to mend
}

// String returns the problem as one line for a person.
func (p Problem) String() string {
	if p.Server == "" {
		return fmt.Sprintf("%s: %s", p.Source, p.Reason)
	}
	if p.Source == "" {
		return fmt.Sprintf("server %q: %s", p.Server, p.Reason)
	}
	return fmt.Sprintf("%s: server %q: %s", p.Source, p.Server, p.Reason)
}

// An Input is a value that a file names and does not have: a variable of the
// environment, or something that the client asks the user for.
type Input struct {
	Source, Server string
	ID             string // as the file writes it
	Asked          bool   // the client asks for it, as VS Code for ${input:ID}
	Description    string
	Secret         bool // not to be shown while it is typed
	Default        string
	Options        []string // nil is any text
	Set            bool
}

// Variable is the variable of the environment that gives the input its value.
func (i Input) Variable() string { return i.Variables()[0] }

// Variables are Variable and, for what a client asks for, the name that it had before, which counts
// as well.
func (i Input) Variables() []string {
	if !i.Asked {
		return []string{i.ID}
	}
	return []string{"TOOLCELL_INPUT_" + envName(i.ID), oldInputPrefix + envName(i.ID)}
}

const oldInputPrefix = "MCP_BRIDGE_INPUT_"

// A Project is a config file of the project directory that the user has not
// allowed to start commands.
type Project struct {
	Path, Client string
	Sum          string // of the file, and of the env files that it names
	Changed      bool   // it was trusted once, and is another file now
	Declined     bool   // the user was asked and said no
	Starts       []Start
}

// A Start is what a file would have started, as the file writes it: variables
// are not expanded, since they hold secrets.
type Start struct {
	Server, Command string
	Replaces        string // the user's file that has another server of this name, which this one would go before
}

// Config is what discovery found: the servers, in order of precedence, and
// everything it had to leave out.
type Config struct {
	Servers  []Server
	Problems []Problem
	Projects []Project // not trusted
	Inputs   []Input   // of all entries, whether they have a value or not

	Reads []string `json:"-"` // further files that entries name: a change of one is a change
}
