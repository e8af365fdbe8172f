package bridge

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/toolcell/toolcell/bridge/endings"
	"github.com/toolcell/toolcell/bridge/hostapi"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
)

// maxCode bounds the code of one run, in bytes.
const maxCode = 4 << 20

// A plan is a request that has been validated.
type plan struct {
	timeout time.Duration
	servers []mcpproxy.ServerStatus // that can be used, as they are at the start
	granted map[string]bool         // names of those that may be called
	order   []string                // the same names, as the request has them
	policy  *policy.Run             // the rules, as they are at the start
	network *hosts.Grant            // what may be reached; nil is nothing
	needs   *Needs                  // of the header; nil if there is none
	lowered bool                    // the request asked for a longer timeout
	notes   []string                // for the caller
}

// validate looks at everything in a request that can be wrong.
func validate(req Request, o Options) (plan, error) {
	p := plan{timeout: o.Timeout}
	err := errors.Join(checkCode(req.Code), endings.CheckName(req.Session))
	switch {
	case err != nil:
	case req.Timeout < 0:
		err = errors.New("timeout must be more than 0 seconds")
	case req.Timeout > o.MaxTimeout:
		p.timeout, p.lowered = o.MaxTimeout, true
		p.notes = append(p.notes, fmt.Sprintf("the timeout was lowered to the maximum of %s", seconds(p.timeout)))
	case req.Timeout > 0:
		p.timeout = req.Timeout
	}
	p.policy = o.Policy.NewRun()
	if err == nil {
		names, targets := splitTargets(req.Servers)
		if req.Plan && len(targets) > 0 {
			err = fmt.Errorf("a dry run reaches no hosts: leave %s out", text.Bound(targets[0], 300))
		}
		p.servers = hostapi.UsableServers(o.Upstreams)
		if err == nil {
			p.order, err = grant(names, p.servers, o.Upstreams)
		}
		if err == nil {
			p.network, err = p.policy.GrantNetwork(targets)
		}
		if err == nil {
			p.needs, err = needsOf(req, p.policy)
		}
	}
	p.granted = make(map[string]bool, len(p.order))
	for _, name := range p.order {
		p.granted[name] = true
	}
	return p, withStatus(StatusValidation, err)
}

// result is what every result of the request has.
func (p plan) result() *Result {
	r := &Result{Notes: p.notes, Servers: p.order}
	if p.lowered {
		r.TimeoutSeconds = wholeSeconds(p.timeout)
	}
	return r
}

// fail is the result of a request that could not be carried out.
func (p plan) fail(err error) *Result { return p.result().fail(err) }

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

var fenceOpening = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("^( {0,3})(`{3,}|~{3,}) *(?i:(?:python|py|ipython)?[0-9.]*|\\{\\.?python\\})(?: [^`]*)?$")
})

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

// grant resolves the names of the servers that a run may call. It keeps their order.
func grant(names []string, all []mcpproxy.ServerStatus, up hostapi.Upstreams) ([]string, error) {
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
