package consent

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// What the user allows for the connection of a client lasts from run to run. It is looked up by
// the digest of all that has to be equal: another entry of the server, another definition of the
// tool or another reason to ask is another question. Nothing is looked up for calls that are asked
// because of their arguments, of private data, or of a definition that is not the pinned one.

// Bounds on what is allowed for connections, and on the questions that are kept for it so that they
// can be shown and revoked. What is beyond them is asked again.
const (
	maxGrants    = 1000         // of one connection
	maxHeldBytes = maxKeptBytes // of the questions of all connections
	callBytes    = 1 << 10      // of a call beside its arguments
)

// connectionChoices are the choices that last as long as the connection.
var connectionChoices = []Choice{ForConnection, SameForConnection, ReadsForConnection}

// LastsForConnection reports whether a choice allows something for as long as the client stays
// connected.
func (c Choice) LastsForConnection() bool { return slices.Contains(connectionChoices, c) }

// A grantKey is the digest of what is allowed.
type grantKey [sha256.Size]byte

// keyFor returns what a call has to have in common with those that a choice allows.
func (c Call) keyFor(choice Choice) grantKey {
	parts := []string{string(choice)}
	if choice != ReadsForConnection {
		parts = append(parts, c.Server, c.Tool, c.Identity)
	}
	if choice == SameForConnection {
		parts = append(parts, string(c.Arguments))
	}
	h := sha256.New()
	for _, part := range append(parts, c.Reasons...) {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part))) // a hash never fails
		h.Write([]byte(part))
	}
	return grantKey(h.Sum(nil))
}

// mayLast reports whether what allows the call may also allow others later.
func (c Call) mayLast() bool { return !c.Once && !c.Unpinned && len(c.Reasons) > 0 }

// offeredForConnection returns those that may be given; whole says that the user sees every call in full.
func (q *Question) offeredForConnection(whole bool) (all []Choice) {
	if !q.lasting || slices.ContainsFunc(q.Calls, func(c Call) bool { return !c.mayLast() }) {
		return nil
	}
	if whole {
		all = append(all, ForConnection)
	}
	all = append(all, SameForConnection)
	if whole && !slices.ContainsFunc(q.Calls, func(c Call) bool { return !c.ReadsOnly }) {
		all = append(all, ReadsForConnection)
	}
	return all
}

// allows returns the ID of the question by which the user allowed a call for the connection, ""
// if none did. The queue's mu is held.
func (c *Client) allows(call Call) (question string) {
	if len(c.granted) == 0 || !call.mayLast() {
		return ""
	}
	for _, choice := range connectionChoices {
		if choice == ReadsForConnection && !call.ReadsOnly {
			continue
		}
		if question = c.granted[call.keyFor(choice)]; question != "" {
			return question
		}
	}
	return ""
}

// mayAllow reports whether something can be allowed for the connection. The queue's mu is held.
func (c *Client) mayAllow() bool { return c.Lasting && !c.ended && len(c.granted) < maxGrants }

// grantForConnection allows what the answer to a question says, unless that would be too much. d.mu
// is held.
func (d *Queue) grantForConnection(q *Question) {
	client := q.run.o.Client
	var keys []grantKey
	for _, c := range q.Calls {
		if key := c.keyFor(q.Answer.Choice); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	held := q.heldBytes()
	for _, other := range d.questions {
		if other != q && other.holds() {
			held += other.heldBytes()
		}
	}
	if !client.mayAllow() || len(client.granted)+len(keys) > maxGrants || held > maxHeldBytes {
		return
	}
	q.grants = keys
	if client.granted == nil {
		client.granted = map[grantKey]string{}
	}
	for _, key := range keys {
		client.granted[key] = q.ID
	}
}

// holds reports whether something is still allowed for the connection by a question. What several
// have allowed, it is by the one that was answered last. The queue's mu is held.
func (q *Question) holds() bool {
	return slices.ContainsFunc(q.grants, func(key grantKey) bool { return q.run.o.Client.granted[key] == q.ID })
}

// release takes back what a question has allowed for the connection, whatever others did. The queue's
// mu is held.
func (q *Question) release() {
	for _, key := range q.grants {
		delete(q.run.o.Client.granted, key)
	}
	q.grants = nil
}

// heldBytes is how much memory a question takes that is kept as long as it holds.
func (q *Question) heldBytes() int {
	n := len(q.Calls)*callBytes + q.keptBytes()
	for _, c := range q.Calls {
		n += len(c.Server) + len(c.Tool)
	}
	for _, line := range q.Effects {
		n += len(line)
	}
	return n
}

// Disconnect ends all that is allowed for the connection of a client, also for those of its runs
// that go on. Nothing can be allowed for it any more.
func (d *Queue) Disconnect(c *Client) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.ended, c.granted = true, nil
	for _, q := range d.questions {
		if q.run != nil && q.run.o.Client == c {
			q.lasting, q.grants = false, nil
		}
	}
	d.dropOld()
	d.signal()
}
