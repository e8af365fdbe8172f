package oauth

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// loopback is the port of this host that the browser comes back to.
type loopback struct {
	url      string
	listener net.Listener
	server   *http.Server
	served   chan struct{}
	state    string
	came     chan *auth.AuthorizationResult
	refused  chan error
}

func newLoopback() (*loopback, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening a port for the browser to come back to: %w", err)
	}
	return &loopback{
		url: "http://" + l.Addr().String() + "/callback", listener: l, served: make(chan struct{}),
		came: make(chan *auth.AuthorizationResult, 1), refused: make(chan error, 1),
	}, nil
}

// fetch shows the address and waits for the browser.
func (b *loopback) fetch(ctx context.Context, address string, show func(string)) (*auth.AuthorizationResult, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the authorization server's address makes no sense: %w", err)
	}
	b.state = u.Query().Get("state")
	b.server = &http.Server{Handler: http.HandlerFunc(b.receive), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	go func() {
		defer close(b.served)
		_ = b.server.Serve(b.listener)
	}()
	show(address)
	select {
	case got := <-b.came:
		return got, nil
	case err := <-b.refused:
		return nil, err
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the browser: %w", context.Cause(ctx))
	}
}

// receive takes what the browser brings. Any program of this host can connect
// here: a request without the state is refused, and ends nothing.
func (b *loopback) receive(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if req.URL.Path != "/callback" || req.Method != http.MethodGet {
		http.NotFound(w, req)
		return
	}
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(b.state)) != 1 {
		http.Error(w, "This does not belong to the login in progress.", http.StatusBadRequest)
		return
	}
	if code := q.Get("error"); code != "" || q.Get("code") == "" {
		err := fmt.Errorf("the authorization server refused: %s", text.Printable(strings.TrimSpace(code+" "+q.Get("error_description")), 200))
		select {
		case b.refused <- err:
		default:
		}
		fmt.Fprintln(w, "The login was refused. The terminal says why; you can close this page.")
		return
	}
	select {
	case b.came <- &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}:
	default:
	}
	fmt.Fprintln(w, "toolcell has what it needs. The terminal says whether the login worked; you can close this page.")
}

// close lets the page that is being answered get out, and ends the port.
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
