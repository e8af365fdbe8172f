package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
)

// maxCode bounds the code of one run, in bytes.
const maxCode = 4 << 20

// validate looks at everything in the request that can be wrong.
func (r *Run) validate() error {
	o := r.o
	r.timeout, r.policy = o.Timeout, o.Policy.NewEnforcer()
	err := errors.Join(checkCode(r.req.Code), checkSessionName(r.req.Session))
	switch {
	case err != nil:
	case r.req.Timeout < 0:
		err = errors.New("timeout must be more than 0 seconds")
	case r.req.Timeout > o.MaxTimeout:
		r.timeout, r.lowered = o.MaxTimeout, true
		r.notes = append(r.notes, fmt.Sprintf("the timeout was lowered to the maximum of %s", seconds(r.timeout)))
	case r.req.Timeout > 0:
		r.timeout = r.req.Timeout
	}
	if err == nil {
		err = r.validateGrants()
	}
	r.granted = make(map[string]bool, len(r.order))
	for _, name := range r.order {
		r.granted[name] = true
	}
	return withStatus(StatusValidation, err)
}

// validateGrants finds what the request is granted: servers, hosts and packages.
func (r *Run) validateGrants() (err error) {
	names, targets := splitTargets(r.req.Servers)
	r.servers = r.runs.o.Upstreams.Usable()
	if r.req.Plan && len(targets) > 0 {
		return fmt.Errorf("a dry run reaches no hosts: leave %s out", text.Bound(targets[0], 300))
	}
	if r.order, err = grantedServers(names, r.servers, r.runs.o.Upstreams); err != nil {
		return err
	}
	if r.egress, err = r.policy.GrantNetwork(targets); err != nil {
		return err
	}
	r.needs, err = needsOf(r.req, r.policy)
	return err
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

// withoutFence removes the fence of a Markdown code block that the code as a whole is
// in. Blank lines take its place, so that line numbers are those of what was sent.
func withoutFence(code string) string {
	start := len(code) - len(strings.TrimLeftFunc(code, unicode.IsSpace))
	start = strings.LastIndexByte(code[:start], '\n') + 1
	first, body, more := strings.Cut(code[start:], "\n")
	if len(first) > maxFence {
		return code
	}
	opening := fenceOpening().FindStringSubmatch(strings.TrimRight(first, " \t\r"))
	if opening == nil {
		return code
	}
	indent, fence, after := len(opening[1]), opening[2], ""
	end := strings.LastIndexByte(strings.TrimRightFunc(body, unicode.IsSpace), '\n') + 1
	last, _, _ := strings.Cut(body[end:], "\n")
	closing := strings.TrimSpace(last)
	switch {
	case strings.HasPrefix(closing, fence) && strings.Trim(closing, fence[:1]) == "":
		body, after = body[:end], body[end+len(last):]
	case fence[0] == '~': // it may be an operator
		return code
	}
	if !more {
		return code[:start]
	}
	return code[:start] + "\n" + outdent(body, indent) + after
}

// outdent removes up to n spaces from the beginning of each line: what a fence is indented
// by does not count (CommonMark, Fenced code blocks).
func outdent(s string, n int) string {
	if n == 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for line := range strings.Lines(s) {
		for range n {
			line = strings.TrimPrefix(line, " ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// maxFence bounds the line of a fence that begins code, in bytes.
const maxFence = 1 << 10

var fenceOpening = text.Pattern("^( {0,3})(`{3,}|~{3,}) *(?i:(?:python|py|ipython)?[0-9.]*|\\{\\.?python\\})(?: [^`]*)?$")

// splitTargets tells names of servers from the hosts that a call asks for among them.
func splitTargets(names []string) (servers, targets []string) {
	for _, name := range names {
		if hosts.IsTarget(name) {
			targets = append(targets, name)
		} else {
			servers = append(servers, name)
		}
	}
	return servers, targets
}

// grantedServers resolves the names of the servers that a run may call. It keeps their order.
func grantedServers(names []string, all []mcpproxy.ServerStatus, up *mcpproxy.Proxy) ([]string, error) {
	var granted []string
	add := func(name string) {
		if !slices.Contains(granted, name) {
			granted = append(granted, name)
		}
	}
	for _, name := range names {
		if name == "*" {
			for _, st := range all {
				add(st.Name)
			}
			continue
		}
		server, err := up.Lookup(name)
		if err != nil {
			return nil, err
		}
		add(server.Name)
	}
	return granted, nil
}
