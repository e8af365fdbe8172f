// Package egress is a sandbox's only access to the network: an HTTP proxy on the host,
// behind a listener that was made inside the sandbox's network namespace. For clients that use
// no proxy there are a name server and listeners at the addresses of names (names.go), also made
// in there.
//
// It promises that only what its Rules allow is reached: it resolves names itself,
// dials only addresses that it has checked, and lets TLS through only to the host
// that the client named. It adds credentials outside the sandbox. It bounds
// connections, bytes and time. It does not decrypt TLS to a host that is allowed as a whole,
// so it cannot tell what is exchanged there, or with which of the sites behind that address.
package egress

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/toolcell/toolcell/internal/contain"
)

// Rules decide what may be reached. Their errors are shown to the code. Hosts are in the
// form that CanonicalHost returns.
type Rules interface {
	// CanonicalHost returns the canonical form of a host's name or address.
	CanonicalHost(host string) (string, error)
	// AllowHost checks whether anything at a host and port may be reached, and returns the
	// rule that decides. The scheme is https, http, or tcp for whatever the client sends.
	AllowHost(scheme, host string, port uint16) (rule string, err error)
	// ExplainName explains why a host that code looks up may not be reached, and returns the
	// rule that decides, if one does.
	ExplainName(host string) (rule string, err error)
	// AllowRequest checks one request. The path is decoded.
	AllowRequest(method, scheme, host string, port uint16, path string) (rule string, err error)
	// Inspected reports whether requests must be checked one by one.
	Inspected(scheme, host string, port uint16) bool
	// AllowPrivate reports whether a host may have an address that is not public.
	AllowPrivate(host string, addr netip.Addr) bool
}

// A Credential is a header for requests to a host, which replaces what the code sends. It
// never enters the sandbox.
type Credential struct {
	Host, Header, Value string
	// Secrets are the parts of Value that responses must not show. Placeholder replaces
	// them.
	Secrets     []string
	Placeholder string
	Plain       bool // also without TLS, since the host is this one
}

// Options configure a Broker. Without Rules it does not start.
type Options struct {
	Rules       Rules
	Owner       Owner    // Run if empty
	Inspect     []string // hosts whose TLS ends here: the certificates that are made are good for no others
	Credentials []Credential
	// Proxy returns the proxy for a request, or nil. A proxy resolves names itself, so that
	// addresses are not checked. Proxy may be nil.
	Proxy       func(*http.Request) (*url.URL, error)
	Roots       *x509.CertPool // the host's if nil
	Resolve     func(ctx context.Context, host string) ([]netip.Addr, error)
	Names       *NameTable       // hosts that are reached by name as well; nil is none
	NameServers []net.PacketConn // sockets in the sandbox at Names.UDP
	Named       []net.Listener   // and at Names.TCP
	MaxBytes    int64            // sent and received by all connections: of a run in all, of a server in any hour; 1 GiB if 0
	DialTimeout time.Duration    // to look up a name and connect; 30 s if 0

	now func() time.Time // time.Now if nil
}

const (
	maxConns      = 64
	headerTimeout = 30 * time.Second
	maxHeader     = 32 << 10 // bytes of a request's or an answer's; Node.js takes 16 KiB, nginx 32
)

// A Broker serves one run or one server. It is safe for concurrent use, except for Serve.
type Broker struct {
	o         Options
	authority *authority // nil if nothing is inspected
	transport *http.Transport
	proxy     *http.Server
	inspector *http.Server
	handed    chan net.Conn // to the inspector
	free      chan struct{} // room for connections of the code
	usage     *usage
	questions *rate.Limiter // about names

	throughProxy atomic.Bool
	large        struct{ clients, servers, tunnels slots } // see socketbuffers.go

	life  context.Context // ends with Close
	end   context.CancelFunc
	tasks sync.WaitGroup
	mu    sync.Mutex
	conns map[net.Conn]struct{} // all that are open
}

// Start serves connections from l and the sockets of the options, which it takes over, until
// Close.
func Start(l net.Listener, o Options) (*Broker, error) {
	b, err := New(o)
	if err != nil {
		l.Close()
		o.closeSockets()
		return nil, err
	}
	b.Serve(l, o.NameServers, o.Named)
	return b, nil
}

// New returns a Broker that serves nothing yet. Its Certificate is known, so that it can be put
// where a process finds it that is still to be started. The sockets of the options are ignored.
func New(o Options) (*Broker, error) {
	o.Owner, o.NameServers, o.Named = cmp.Or(o.Owner, Run), nil, nil
	if o.Rules == nil {
		return nil, fmt.Errorf("there are no rules for the network of a %s", o.Owner)
	}
	if o.now == nil {
		o.now = time.Now
	}
	o.MaxBytes, o.DialTimeout = cmp.Or(o.MaxBytes, 1<<30), cmp.Or(o.DialTimeout, 30*time.Second)
	if o.Resolve == nil {
		o.Resolve = resolve
	}
	b := &Broker{
		o: o, handed: make(chan net.Conn), free: make(chan struct{}, maxConns), conns: map[net.Conn]struct{}{},
		usage: newUsage(o.Owner, o.MaxBytes, o.now), questions: rate.NewLimiter(perSecond, perSecond),
	}
	if len(o.Inspect) > 0 {
		var err error
		if b.authority, err = newAuthority(o.Inspect, o.Owner, o.now); err != nil {
			return nil, fmt.Errorf("making the certificate authority of a %s: %w", o.Owner, err)
		}
	}
	b.large.clients, b.large.servers, b.large.tunnels = newSlots(), newSlots(), newSlots()
	b.life, b.end = context.WithCancel(context.Background())
	b.transport = b.newTransport()
	b.proxy, b.inspector = b.newServer(b.serveProxy), b.newServer(b.serveHanded)
	return b, nil
}

// Serve serves connections from l and to names in the background, until Close. It takes the sockets
// over, and is called once at most, not at the same time as Close; after Close it closes them.
func (b *Broker) Serve(l net.Listener, nameServers []net.PacketConn, named []net.Listener) {
	b.o.NameServers, b.o.Named = nameServers, named
	if b.life.Err() != nil {
		l.Close()
		b.o.closeSockets()
		return
	}
	b.goServe(func() { _ = b.proxy.Serve(&limitedListener{l, b}) }, l)
	b.goServe(func() { _ = b.inspector.Serve(&handedConns{b}) }, l)
	for _, c := range nameServers {
		b.goServe(func() { b.serveNames(c) }, c)
	}
	for _, l := range named {
		b.goServe(func() { b.serveNamed(l) }, l)
	}
}

// goServe serves in the background, and ends all of the network if that panics.
func (b *Broker) goServe(serve func(), from io.Closer) {
	b.tasks.Go(func() {
		defer contain.Recover("serving the network of a "+string(b.o.Owner), func(error) { b.end(); from.Close() })
		serve()
	})
}

func (o *Options) closeSockets() {
	for _, c := range o.NameServers {
		c.Close()
	}
	for _, l := range o.Named {
		l.Close()
	}
}

// newServer returns a server whose handlers Close waits for.
func (b *Broker) newServer(h http.HandlerFunc) *http.Server {
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if leave, ok := b.enter(); ok {
			defer leave()
			h(w, r)
		}
	})
	return &http.Server{
		Handler: contain.Handler("answering a request to a host", counted), ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeader, MaxHeaderValueCount: maxHeaderLines,
		IdleTimeout: 2 * time.Minute, Protocols: http1(), ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return b.life },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if in, ok := c.(*handedConn); ok {
				return context.WithValue(ctx, handedKey{}, in.to)
			}
			return ctx
		},
	}
}

func http1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

// Certificate returns the certificate that the code has to trust, in PEM, or nil if
// nothing is inspected.
func (b *Broker) Certificate() []byte {
	if b.authority == nil {
		return nil
	}
	return b.authority.pem
}

// Close closes the listener and all connections, and waits for their end. It may be
// called more than once.
func (b *Broker) Close() {
	b.end()
	b.proxy.Close()
	b.inspector.Close()
	b.o.closeSockets()
	b.mu.Lock()
	open := slices.Collect(maps.Keys(b.conns))
	b.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
	b.tasks.Wait()
	b.transport.CloseIdleConnections()
}

// Uses returns what was reached and what was refused, in the order of the first requests.
func (b *Broker) Uses() []Use { return b.usage.list() }

// Contacts returns the hosts and ports that something was requested of or refused for, the latest
// first. There are at most 50 for a server, and those that were dropped share a last one, whose
// host is "others" and whose port is 0.
func (b *Broker) Contacts() []Contact { return b.usage.contacts() }

// RefusedSince returns why requests were refused since t or failed on their way, the latest first,
// each reason once for a host and port: for a server at most 100. Their counts may include
// earlier requests. Requests of calls that go on at the same time cannot be told apart.
func (b *Broker) RefusedSince(t time.Time) []Refusal { return b.usage.since(t) }

// Refusals returns why requests were refused, each reason once.
func (b *Broker) Refusals() []string { return b.usage.reasons(&b.usage.refused) }

// Failures returns why allowed requests did not reach their host, each reason once.
func (b *Broker) Failures() []string { return b.usage.reasons(&b.usage.failed) }

// ThroughProxy reports whether connections went through Options.Proxy, so that their
// addresses were not checked.
func (b *Broker) ThroughProxy() bool { return b.throughProxy.Load() }

// enter makes Close wait for a handler until leave is called. ok is false if Close was
// already called.
func (b *Broker) enter() (leave func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.life.Err() != nil {
		return nil, false
	}
	b.tasks.Add(1)
	return b.tasks.Done, true
}

// keep makes Close close a connection, until forget is called.
func (b *Broker) keep(c net.Conn) (forget func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.life.Err() != nil {
		c.Close()
	}
	b.conns[c] = struct{}{}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.conns, c)
	}
}

// A limitedListener accepts no connection while as many are open as fit into Broker.free.
type limitedListener struct {
	net.Listener
	b *Broker
}

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		l.b.free <- struct{}{}
		c, err := l.Listener.Accept()
		if err != nil {
			<-l.b.free
			return nil, err
		}
		if c, err = l.b.admit(c); err == nil {
			return c, nil
		} // a panic: other connections continue
	}
}

// admit prepares a connection of the code, which has its place in free until it is closed. It
// closes the connection if that panics.
func (b *Broker) admit(c net.Conn) (_ net.Conn, err error) {
	leave, ok := b.large.clients.take()
	release := func() { leave(); <-b.free }
	defer func() {
		if err != nil {
			c.Close()
			release()
		}
	}()
	defer contain.Error("accepting a connection of a "+string(b.o.Owner), &err)
	tcp := c.(*net.TCPConn)
	if ok {
		enlarge(tcp)
	} else {
		shrink(tcp)
	}
	forget := b.keep(c)
	return &slotConn{tcp, sync.OnceFunc(func() {
		defer contain.Recover("closing a connection of a "+string(b.o.Owner), nil)
		defer release()
		forget()
	})}, nil
}

// handedConns are the connections whose requests are checked one by one, as a listener: those
// whose TLS ends here, and those to a name without TLS.
type handedConns struct{ b *Broker }

func (h *handedConns) Accept() (net.Conn, error) {
	select {
	case c := <-h.b.handed:
		return c, nil
	case <-h.b.life.Done():
		return nil, net.ErrClosed
	}
}

func (h *handedConns) Close() error   { return nil }
func (h *handedConns) Addr() net.Addr { return &net.TCPAddr{} }
