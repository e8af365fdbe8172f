package egress

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"golang.org/x/net/dns/dnsmessage"
)

const (
	// maxQuery bounds a query, in bytes. One question has less than 300.
	maxQuery = 4096
	// answerLife is how many seconds an answer may be kept: an address follows from its name.
	answerLife = 60
	// perSecond is how many questions of a run are answered in a second, and at once. Code that
	// asks more often waits: answers take time of toolcell, which the limits of the sandbox do
	// not count.
	perSecond = 1000
	// pause is how long a socket that fails rests before it is tried again.
	pause = 100 * time.Millisecond
)

// ownNames are of the sandbox itself (spec.New), and no names of the network.
var ownNames = map[string]bool{localhost: true, "toolcell": true}

// serveNames answers datagrams, one after another: an answer takes no waiting.
func (b *Broker) serveNames(c net.PacketConn) {
	query := make([]byte, maxQuery)
	for {
		n, from, err := c.ReadFrom(query)
		switch {
		case err == nil:
			if b.questions.Wait(b.life) != nil {
				return
			}
			if reply := b.answer(query[:n]); reply != nil {
				_, _ = c.WriteTo(reply, from)
			}
		case errors.Is(err, net.ErrClosed) || !b.rest():
			return
		}
	}
}

// serveNameStream answers queries on a connection (RFC 7766).
func (b *Broker) serveNameStream(c net.Conn) {
	for {
		_ = c.SetDeadline(time.Now().Add(headerTimeout))
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if len(query) > maxQuery {
			return
		}
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		if b.questions.Wait(b.life) != nil {
			return
		}
		reply := b.answer(query)
		if reply == nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

// rest waits before a socket is tried again, and reports whether the run still goes on.
func (b *Broker) rest() bool {
	select {
	case <-b.life.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// answer returns the reply to a query, nil if there is none to send. No other name server is
// asked, so a name carries nothing out.
func (b *Broker) answer(query []byte) (reply []byte) {
	defer contain.Recover("answering a question about a name", func(error) { reply = nil })
	reply, missing := b.o.Names.answer(query)
	if missing != "" {
		b.recordName(missing)
	}
	return reply
}

// recordName records that a name has no address.
func (b *Broker) recordName(host string) {
	host, err := b.o.Rules.CanonicalHost(host)
	if err != nil || ownNames[host] {
		return
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return
	}
	rule, err := b.o.Rules.ExplainName(host)
	if err == nil {
		err = errors.New(host + " is reached through the proxy only")
	}
	b.record(target{host: host}, &refusal{http.StatusForbidden, rule, err.Error()})
}

// answer returns the reply to a query, and the name if the query asks for the address of one that
// has none. What is not a query has no reply.
func (t *NameTable) answer(query []byte) (reply []byte, missing string) {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response {
		return nil, ""
	}
	h = dnsmessage.Header{ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired, RecursionAvailable: true}
	if h.OpCode != 0 { // RFC 1035, 4.1.1: not a standard query
		h.RCode = dnsmessage.RCodeNotImplemented
		return pack(h, nil, netip.Addr{}), ""
	}
	q, err := p.Question()
	if err == nil {
		_, err = p.Question()
	}
	if !errors.Is(err, dnsmessage.ErrSectionDone) || q.Name.Length == 0 { // RFC 9619: there is one question
		h.RCode = dnsmessage.RCodeFormatError
		return pack(h, nil, netip.Addr{}), ""
	}
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	addr, ok := t.addrs[name]
	switch {
	case !ok:
		h.RCode = dnsmessage.RCodeNameError
		if q.Type == dnsmessage.TypeA {
			missing = name
		}
	case q.Type != dnsmessage.TypeA || q.Class != dnsmessage.ClassINET:
		addr = netip.Addr{} // the name is there, without such a record
	}
	return pack(h, &q, addr), missing
}

// pack returns a reply, with the address if there is one; nil if it cannot be written.
func pack(h dnsmessage.Header, q *dnsmessage.Question, addr netip.Addr) []byte {
	m := dnsmessage.Message{Header: h}
	if q != nil {
		m.Questions = []dnsmessage.Question{*q}
	}
	if q != nil && addr.IsValid() {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: answerLife},
			Body:   &dnsmessage.AResource{A: addr.As4()},
		}}
	}
	reply, err := m.Pack()
	if err != nil {
		return nil
	}
	return reply
}
