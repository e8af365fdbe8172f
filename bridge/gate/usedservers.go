package gate

import (
	"slices"
	"sync"
)

// usedServers are the servers whose tools the code has called or read about.
type usedServers struct {
	mu    sync.Mutex
	names []string
}

func (u *usedServers) add(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !slices.Contains(u.names, name) {
		u.names = append(u.names, name)
	}
}

func (u *usedServers) list() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.names)
}

// NoteUsed notes that the code reads about the tools of a server.
func (g *Gate) NoteUsed(server string) { g.used.add(server) }

// Used returns the servers whose tools the code has called or read about.
func (g *Gate) Used() []string { return g.used.list() }
