package bridge

import (
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
)

// A connection is that of one client.
type connection struct {
	client     consent.Client
	told       sync.Map   // what first was called with
	unanswered unanswered // when it was asked for its folder
}

// first reports whether this connection has not been sent a text before.
func (c *connection) first(text string) bool {
	_, known := c.told.LoadOrStore(text, true)
	return !known
}

// connections are those that are open.
type connections struct {
	mu   sync.Mutex
	open map[*mcp.ServerSession]*connection

	ended func(*consent.Client) // is told of each that has
}

// of returns the connection of the session of a request that came with extra. It is forgotten when the
// session ends, which the calls of the session do not outlive.
func (c *connections) of(session *mcp.ServerSession, extra *mcp.RequestExtra) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.open[session]; known != nil {
		return known
	}
	conn := &connection{client: clientOf(session)}
	conn.client.Lasting = lasts(session, extra)
	c.open[session] = conn
	if session != nil {
		go func() {
			defer contain.Recover("waiting for the end of a connection", func(error) { c.ended(&conn.client) })
			_ = session.Wait() // why it has ended is said where it is served
			c.ended(&conn.client)
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.open, session)
		}()
	}
	return conn
}

// lasts reports whether a session outlives its request. One over HTTP without an ID does not: the SDK
// makes it for that request (MCP specification 2026-07-28 has no sessions there).
func lasts(session *mcp.ServerSession, extra *mcp.RequestExtra) bool {
	overHTTP := extra != nil && extra.Header != nil
	return session != nil && (!overHTTP || session.ID() != "")
}

// clientOf returns a client as it describes itself.
func clientOf(session *mcp.ServerSession) consent.Client {
	c := consent.Client{Taint: &consent.Taint{}}
	if session == nil || session.InitializeParams() == nil {
		return c
	}
	c.Protocol = text.Printable(session.InitializeParams().ProtocolVersion, 20)
	if info := session.InitializeParams().ClientInfo; info != nil {
		c.Program, c.Version = text.Printable(info.Name, 80), text.Printable(info.Version, 40)
		c.Name = strings.TrimSpace(c.Program + " " + c.Version)
	}
	return c
}
