package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/elicitation"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
)

// sandboxed is a server of the SDK in a sandbox that is this test.
type sandboxed struct {
	ended  chan struct{}
	end    func()
	stdout *io.PipeWriter
}

func (s *sandboxed) Await()             { <-s.ended }
func (s *sandboxed) Signal(unix.Signal) { s.end() }
func (s *sandboxed) Reap() string       { return "exit status 0" }

// sandbox launches such a server, which ends with its input.
func sandbox() (*stdio.Launched, error) {
	input, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s := &sandboxed{ended: make(chan struct{})}
	l := &stdio.Launched{Child: s, Stdin: stdin}
	l.Stdout, s.stdout = io.Pipe()
	var log *io.PipeWriter
	l.Stderr, log = io.Pipe()
	s.end = sync.OnceFunc(func() {
		close(s.ended)
		input.Close()
		s.stdout.Close()
		log.Close()
	})
	go func() {
		defer s.end()
		server := mcp.NewServer(&mcp.Implementation{Name: "sandboxed"}, nil)
		_ = server.Run(context.Background(), &mcp.IOTransport{Reader: input, Writer: s.stdout})
	}()
	return l, nil
}

// TestPreparingIsNotStarting: a server has the whole StartTimeout once it runs, and a launcher
// that hangs ends all the same.
func TestPreparingIsNotStarting(t *testing.T) {
	for _, tt := range []struct {
		name   string
		takes  time.Duration
		want   string
		waited time.Duration
		giveUp time.Duration
	}{
		{"longer than the server may take", 10 * time.Minute, "", 10 * time.Minute, 0},
		{"for ever", time.Hour, `starting server "s": was not prepared within 30m`, maxLaunch, 0},
		{"until the start is given up", time.Hour, `starting server "s": the proxy ends`, time.Minute, time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := filled(config.Server{Name: "s", Transport: config.Stdio}, Dialer{})
				d.Launch = func(ctx context.Context, _ config.Server) (*stdio.Launched, error) {
					select {
					case <-time.After(tt.takes):
						return sandbox()
					case <-ctx.Done():
						return nil, fmt.Errorf("pulling an image: %w", ctx.Err())
					}
				}
				ctx, end := context.WithCancelCause(t.Context())
				defer end(nil)
				if tt.giveUp > 0 {
					time.AfterFunc(tt.giveUp, func() { end(errors.New("the proxy ends")) })
				}
				began := time.Now()
				s, _, err := d.Dial(ctx, Handshake{}, elicitation.Capabilities{})
				if waited := time.Since(began); waited != tt.waited {
					t.Errorf("it took %v, want %v", waited, tt.waited)
				}
				if tt.want != "" {
					if err == nil || err.Error() != tt.want || Curable(err) {
						t.Errorf("%v, want %s", err, tt.want)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if said := s.InitializeResult(); said.ServerInfo.Name != "sandboxed" {
					t.Errorf("it talks with %+v", said)
				}
			})
		})
	}
}

// TestAFailedLaunchReachesTheUser in its own words, and can be tried again at once if it is
// the user who cures it.
func TestAFailedLaunchReachesTheUser(t *testing.T) {
	noHost := errors.New("pulling an image: no such host")
	for _, tt := range []struct {
		err     error
		curable bool
	}{{noHost, false}, {&stdio.CommandError{Err: noHost}, true}} {
		d := filled(config.Server{Name: "s", Transport: config.Stdio}, Dialer{})
		launches := 0
		d.Launch = func(context.Context, config.Server) (*stdio.Launched, error) {
			launches++
			return nil, tt.err
		}
		_, _, err := d.Dial(t.Context(), Handshake{}, elicitation.Capabilities{})
		if err == nil || err.Error() != `starting server "s": pulling an image: no such host` || !errors.Is(err, noHost) || Curable(err) != tt.curable || launches != 1 {
			t.Errorf("after %d launches: %v, curable: %v", launches, err, Curable(err))
		}
	}
}
