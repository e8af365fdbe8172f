package bridge

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// maxCode bounds the code of one run, in bytes.
const maxCode = 4 << 20

// A plan is a request that has been checked.
type plan struct {
	timeout time.Duration
	argv    []string
	servers []mcpproxy.ServerStatus // that can be used, as they are at the start
	granted map[string]bool         // names of those that may be called
}

// check looks at everything in the request that can be wrong. What it changes
// on the way it notes in r.
func (s *Server) check(req Request, r *Result) (plan, error) {
	p := plan{timeout: s.o.Timeout, argv: req.Argv}
	if err := checkCode(req.Code); err != nil {
		return p, err
	}
	if err := checkSession(req.Session); err != nil {
		return p, err
	}
	switch {
	case req.Timeout < 0:
		return p, errors.New("timeout must be more than 0 seconds")
	case req.Timeout > s.o.MaxTimeout:
		p.timeout = s.o.MaxTimeout
		r.Notes = append(r.Notes, fmt.Sprintf("the timeout was lowered to the maximum of %s", seconds(p.timeout)))
		r.TimeoutSeconds = int(math.Ceil(p.timeout.Seconds()))
	case req.Timeout > 0:
		p.timeout = req.Timeout
	}
	var err error
	p.servers = s.upstreams()
	p.granted, err = s.grant(req.Servers, p.servers)
	for _, st := range p.servers {
		if p.granted[st.Name] {
			r.Servers = append(r.Servers, st.Name)
		}
	}
	return p, err
}

func checkCode(code string) error {
	if strings.TrimSpace(code) == "" {
		return errors.New("code is empty; give Python source")
	}
	if len(code) > maxCode {
		return fmt.Errorf("code has %d bytes; the most is %d", len(code), maxCode)
	}
	if i := strings.IndexByte(code, 0); i >= 0 {
		return fmt.Errorf("code has a NUL byte at offset %d; give Python source as text, and binary data as base64 in it", i)
	}
	return nil
}

// checkSession bounds the name of a session, which is shown in notes.
func checkSession(name string) error {
	if utf8.RuneCountInString(name) > 64 || !utf8.ValidString(name) || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return fmt.Errorf("session %q is not a name for one: at most 64 characters that can be printed", text.Bound(name, 80))
	}
	return nil
}

// grant resolves the names of servers that a run may call.
func (s *Server) grant(names []string, all []mcpproxy.ServerStatus) (map[string]bool, error) {
	granted := map[string]bool{}
	for _, name := range names {
		if name == "*" {
			for _, st := range all {
				granted[st.Name] = true
			}
			continue
		}
		server, err := s.o.Upstreams.Lookup(name)
		if err != nil {
			return nil, err
		}
		granted[server.Name] = true
	}
	return granted, nil
}

// upstreams gives the servers that can be used: those that discovery had to
// leave out have no alias.
func (s *Server) upstreams() []mcpproxy.ServerStatus {
	return slices.DeleteFunc(s.o.Upstreams.Servers(), func(st mcpproxy.ServerStatus) bool { return st.Alias == "" })
}
