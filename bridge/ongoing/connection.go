package ongoing

import (
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
)

// A Connection is that of one client, with what belongs to it.
type Connection struct {
	// Marks are what was read from private servers, since the model behind the
	// connection carries data from run to run. Runs of it that still wait keep them when it
	// has ended.
	Marks  *consent.Marks
	Client string // what the client calls itself, with its version; often empty

	mu   sync.Mutex
	told map[string]bool // what First was called with
}

// First reports whether this connection has not been sent a text before.
func (c *Connection) First(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.told[text]
	if c.told == nil {
		c.told = map[string]bool{}
	}
	c.told[text] = true
	return !known
}

// connections are those that are open.
type connections struct {
	mu   sync.Mutex
	open map[*mcp.ServerSession]*Connection
}

// Connection returns that of a client, by its session. That of nil is the program's own.
func (rs *Runs[R]) Connection(session *mcp.ServerSession) *Connection {
	return rs.connections.of(session)
}

// clientName returns what a client calls itself.
func clientName(session *mcp.ServerSession) string {
	if session == nil || session.InitializeParams() == nil || session.InitializeParams().ClientInfo == nil {
		return ""
	}
	info := session.InitializeParams().ClientInfo
	return strings.TrimSpace(text.Printable(info.Name, 80) + " " + text.Printable(info.Version, 40))
}

// of returns the connection of a session. It is forgotten when the session ends, which the
// calls of the session do not outlive.
func (c *connections) of(session *mcp.ServerSession) *Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.open[session]; known != nil {
		return known
	}
	conn := &Connection{Marks: &consent.Marks{}, Client: clientName(session)}
	c.open[session] = conn
	if session != nil {
		go func() {
			defer contain.Recover("waiting for the end of a connection", nil)
			_ = session.Wait() // why it has ended is said where it is served
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.open, session)
		}()
	}
	return conn
}
