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
		in, err := newStreams(&p)
		if err != nil {
			return out, err
		}
		defer in.close()
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
			in.write(c.Input(address, append(network.HostRoots(), broker.Certificate()...)))
		}
		in.stdin.Close()
		exit, err := sb.Wait()
		out.Code = exit.Code
		out.Stdout, out.Stderr = in.written()
		switch {
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case err == nil && exit.OOM:
			err = errors.New("it needed more memory than a sandbox may have (MCP_BRIDGE_MEMORY)")
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

func (r hostRules) AllowRequest(_, scheme, host string, port uint16, _ string) (string, error) {
	return r.AllowHost(scheme, host, port)
}

func (r hostRules) Inspected(_, host string, port uint16) bool {
	return net.JoinHostPort(host, strconv.Itoa(int(port))) == r.inspected
}

func (r hostRules) AllowPrivate(_ string, _ netip.Addr) bool { return true }

// streams are those of a command, on our side.
type streams struct {
	stdin          *os.File
	stdout, stderr *output
}

// newStreams makes the streams of p, which Start takes over.
func newStreams(p *oci.Process) (*streams, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s := &streams{stdin: ours}
	s.stdout, p.Stdout, err = capture(maxStdout + 1)
	if err == nil {
		s.stderr, p.Stderr, err = capture(maxStderr)
	}
	if err != nil {
		theirs.Close()
		s.close()
		return nil, err
	}
	p.Stdin = theirs
	return s, nil
}

// write gives the command its input. One that has ended takes none.
func (s *streams) write(input []byte) { _, _ = s.stdin.Write(input) }

// written returns the output of a command that has ended.
func (s *streams) written() (stdout, stderr []byte) {
	<-s.stdout.done
	<-s.stderr.done
	return s.stdout.text.Bytes(), s.stderr.text.Bytes()
}

func (s *streams) close() {
	s.stdin.Close()
	for _, o := range []*output{s.stdout, s.stderr} {
		if o != nil {
			o.file.Close()
		}
	}
}

// An output is the text from a pipe, up to a limit. The rest is read, so that the writer goes
// on, and dropped.
type output struct {
	file *os.File
	text bytes.Buffer
	done chan struct{}
}

func capture(limit int64) (*output, *os.File, error) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	o := &output{file: ours, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		defer contain.Recover("reading the output of a sandbox", func(error) { ours.Close() })
		_, _ = io.Copy(&o.text, io.LimitReader(ours, limit))
		_, _ = io.Copy(io.Discard, ours)
	}()
	return o, theirs, nil
}
