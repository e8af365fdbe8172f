package policy

import (
	"fmt"
	"slices"
	"time"
)

// A limitKey is what calls are counted by: each server that a section is
// about, and each tool, has a count of its own.
type limitKey struct {
	section, server, tool string
	perMinute             bool
}

// A limit is one that applies to a call.
type limit struct {
	limitKey
	max int
}

func (l limit) rule() string {
	if l.perMinute {
		return fmt.Sprintf("callsPerMinute = %d", l.max)
	}
	return fmt.Sprintf("callsPerRun = %d", l.max)
}

func (l limit) what() string {
	if l.tool == "" {
		return fmt.Sprintf("server %q", l.server)
	}
	return fmt.Sprintf("%q of server %q", l.tool, l.server)
}

// addTo adds the limits of a section to those that were found, unless one of the kind is
// among them: the section that says most comes first.
func (l limits) addTo(found []limit, k limitKey) []limit {
	for i, most := range []callCount{l.PerRun, l.PerMinute} {
		k.perMinute = i == 1
		if most > 0 && !slices.ContainsFunc(found, func(f limit) bool { return f.perMinute == k.perMinute }) {
			found = append(found, limit{k, int(most)})
		}
	}
	return found
}

// wait returns how long it takes until there is room for one more call within the minute, 0
// if there is. p.mu is held.
func (p *Policy) wait(k limitKey, now time.Time, limit int) time.Duration {
	calls := p.minutes[k]
	for len(calls) > 0 && now.Sub(calls[0]) >= time.Minute {
		calls = calls[1:]
	}
	p.minutes[k] = calls
	if len(calls) < limit {
		return 0
	}
	return time.Minute - now.Sub(calls[len(calls)-limit])
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
