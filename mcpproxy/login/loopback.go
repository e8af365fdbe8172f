package login

import (
	"cmp"
	"context"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
)

// loopback is the port of this host that the browser comes back to.
type loopback struct {
	url      string
	path     string
	listener net.Listener
	server   *http.Server
	served   chan struct{}
	state    string
	came     chan authorization
}

// authorization is what the browser brings back.
type authorization struct {
	code, issuer string
	err          error // in their place
}

// newLoopback opens the port of an address at which a client was registered, or any.
func newLoopback(address string) (*loopback, error) {
	b := &loopback{
		url: address, path: "/callback", served: make(chan struct{}), came: make(chan authorization, 1),
	}
	port := "0"
	if address != "" {
		u, err := url.Parse(address)
		if err != nil {
			return nil, err
		}
		port, b.path = u.Port(), cmp.Or(u.Path, "/")
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return nil, fmt.Errorf("opening a port for the browser to come back to: %w", err)
	}
	b.listener = l
	if address == "" {
		b.url = "http://" + l.Addr().String() + b.path
	}
	return b, nil
}

// serve waits for a browser with this state, until close.
func (b *loopback) serve(state string) {
	b.state = state
	b.server = &http.Server{Handler: contain.Handler("answering the browser", http.HandlerFunc(b.receive)), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	go func() {
		defer close(b.served)
		defer contain.Recover("waiting for the browser", b.refuse)
		_ = b.server.Serve(b.listener)
	}()
}

// wait returns what the browser brought.
func (b *loopback) wait(ctx context.Context) (authorization, error) {
	select {
	case got := <-b.came:
		return got, got.err
	case <-ctx.Done():
		return authorization{}, fmt.Errorf("waiting for the browser: %w", context.Cause(ctx))
	}
}

// receive handles the request of the browser. Any program of this host can connect here, so a
// request without the state is refused and does not end the login.
func (b *loopback) receive(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if req.URL.Path != b.path || req.Method != http.MethodGet {
		http.NotFound(w, req)
		return
	}
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(b.state)) != 1 {
		http.Error(w, "This does not belong to the login in progress.", http.StatusBadRequest)
		return
	}
	defer contain.Recover("taking what the browser brings", b.refuse)
	if code := q.Get("error"); code != "" || q.Get("code") == "" {
		err := fmt.Errorf("the authorization server refused: %s", text.Printable(strings.TrimSpace(code+" "+q.Get("error_description")), 200))
		b.refuse(err)
		fmt.Fprintln(w, "The login was refused. The terminal says why; you can close this page.")
		return
	}
	b.end(authorization{code: q.Get("code"), issuer: q.Get("iss")})
	fmt.Fprintln(w, "toolcell has what it needs. The terminal says whether the login worked; you can close this page.")
}

// refuse ends the login with an error.
func (b *loopback) refuse(err error) { b.end(authorization{err: err}) }

// end ends the login, once.
func (b *loopback) end(a authorization) {
	select {
	case b.came <- a:
	default:
	}
}

// close finishes the response in flight and closes the port.
func (b *loopback) close() {
	if b.server == nil {
		b.listener.Close()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if b.server.Shutdown(ctx) != nil {
		b.server.Close()
	}
	<-b.served
}
