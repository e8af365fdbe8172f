package sandboxes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/bridge/network"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/egress"
	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/rootfs/packages"
)

// Bounds on the output of a command, in bytes.
const (
	maxStdout = 16 << 20
	maxStderr = 256 << 10
)

// runIn returns a function that runs commands in sandboxes of an image. They have
// nothing of the host but the files that a command names, and one connection to the index.
func runIn(sandboxes run.Sandboxes, root spec.Root, limits spec.Limits) packages.Run {
	return func(ctx context.Context, c packages.Command) (out packages.Output, err error) {
		p := oci.Process{Root: root, Args: c.Args, Env: []string{"HOME=/workspace", "TMPDIR=/tmp", "LANG=C.UTF-8"}, Limits: limits}
		for inside, file := range c.Files {
			p.Binds = append(p.Binds, spec.Bind{Source: file, Target: inside})
		}
		stdin, stdout, stderr, err := openStreams(&p)
		if err != nil {
			return out, err
		}
		defer stdin.Close()
		sb, err := sandboxes.Start(ctx, p)
		if err != nil {
			return out, err
		}
		defer sb.Close()
		if c.Input != nil {
			broker, address, err := openEgress(sb, c)
			if err != nil {
				return out, err
			}
			defer func() {
				broker.Close()
				out.Refused = append(broker.Refusals(), broker.Failures()...)
			}()
			// It fails if the command has ended.
			_, _ = stdin.Write(c.Input(address, append(network.HostRoots(), broker.Certificate()...)))
		}
		stdin.Close()
		exit, err := sb.Wait()
		out.Code, out.Stdout, out.Stderr = exit.Code, stdout(), stderr()
		switch {
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case err == nil && exit.OOM:
			err = errors.New("it needed more memory than a sandbox may have (TOOLCELL_MEMORY)")
		case err == nil && len(out.Stdout) > maxStdout:
			err = fmt.Errorf("it wrote more than %d bytes", maxStdout)
		}
		return out, err
	}
}

// openEgress lets a sandbox reach the hosts of a command, by the proxy at an address inside.
// The user has named them, or the policy's default: they may have any address, and the host's
// proxy leads to them.
func openEgress(sb run.Sandbox, c packages.Command) (broker *egress.Broker, address string, err error) {
	l, err := sb.Listen()
	if err != nil {
		return nil, "", err
	}
	address = "http://" + l.Addr().String()
	o := egress.Options{Rules: hostRules{c.Hosts, c.Plain, ""}, Proxy: http.ProxyFromEnvironment}
	if c.Credential != nil {
		host, _, err := net.SplitHostPort(c.Authorized)
		if err != nil {
			l.Close()
			return nil, "", err
		}
		o.Rules, o.Inspect = hostRules{c.Hosts, c.Plain, c.Authorized}, []string{host}
		o.Credentials = []egress.Credential{{
			Host: host, Header: "Authorization", Value: c.Credential.Authorization, Secrets: c.Credential.Secrets, Placeholder: "…", Plain: c.Plain,
		}}
	}
	broker, err = egress.Start(l, o)
	return broker, address, err
}

// hostRules allow some hosts and nothing else.
type hostRules struct {
	hosts []string // HOST:PORT
	plain bool     // without TLS too

	inspected string // HOST:PORT that gets a credential
}

func (r hostRules) CanonicalHost(host string) (string, error) {
	return strings.ToLower(strings.TrimSuffix(host, ".")), nil
}

func (r hostRules) AllowHost(scheme, host string, port uint16) (string, error) {
	if at := net.JoinHostPort(host, strconv.Itoa(int(port))); !slices.Contains(r.hosts, at) || scheme != "https" && !r.plain {
		return "", fmt.Errorf("%s is not a host of the package index; to allow it, add it to [packages] files", at)
	}
	return "[packages]", nil
}

func (r hostRules) ExplainName(host string) (string, error) { return r.AllowHost("https", host, 443) }

func (r hostRules) AllowRequest(_, scheme, host string, port uint16, _ string) (string, error) {
	return r.AllowHost(scheme, host, port)
}

func (r hostRules) Inspected(_, host string, port uint16) bool {
	return net.JoinHostPort(host, strconv.Itoa(int(port))) == r.inspected
}

func (r hostRules) AllowPrivate(_ string, _ netip.Addr) bool { return true }

// openStreams opens the streams of p, which Start takes over, and returns our side of them:
// standard input, and functions that return the output of a command that has ended.
func openStreams(p *oci.Process) (stdin *os.File, stdout, stderr func() []byte, err error) {
	if p.Stdin, stdin, err = os.Pipe(); err != nil {
		return nil, nil, nil, err
	}
	p.Stdout, stdout, err = capture(maxStdout + 1)
	if err == nil {
		p.Stderr, stderr, err = capture(maxStderr)
	}
	if err != nil {
		stdin.Close()
		p.Streams.Close()
	}
	return stdin, stdout, stderr, err
}

// capture returns a pipe for output, and a function that waits for its end and returns the
// text, up to a limit. The rest is read, so that the writer goes on, and dropped.
func capture(limit int64) (theirs *os.File, written func() []byte, err error) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	var text bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer contain.Recover("reading the output of a sandbox", nil)
		defer ours.Close()
		_, _ = io.Copy(&text, io.LimitReader(ours, limit))
		_, _ = io.Copy(io.Discard, ours)
	}()
	written = func() []byte {
		<-done
		return text.Bytes()
	}
	return theirs, written, nil
}
