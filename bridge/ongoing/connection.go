package ongoing

import (
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/bridge/consent"
)

// A Connection is that of one client, with what belongs to it.
type Connection struct {
	// Marks are what was read from private servers, since the model behind the
	// connection carries data from run to run.
	Marks *consent.Marks
	name  string // in tickets
}

// connections are those of all clients.
type connections struct {
	open sync.Map
}

// Connection returns that of a client, by its session. That of nil is the program's own.
func (a *Runs[R]) Connection(session *mcp.ServerSession) *Connection {
	c, _ := a.connections.open.LoadOrStore(session, &Connection{Marks: &consent.Marks{}, name: newName() + newName()})
	return c.(*Connection)
}
