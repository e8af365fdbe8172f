package rules

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// maxKinds bounds the lines of a Tally about calls.
const maxKinds = 200

// A Count is how many calls were decided in each way.
type Count struct{ Allowed, Asked, Denied int }

func (c *Count) add(d Decision) {
	switch d {
	case Allowed:
		c.Allowed++
	case Asked:
		c.Asked++
	case Denied:
		c.Denied++
	}
}

// A Tally is what the policy as it is now would decide of the calls of the last runs.
type Tally struct {
	Past
	Sections []Section
	Free     int    // calls that are allowed since no rule is about them
	Unknown  int    // that cannot be judged
	Kinds    []Kind // calls of the same tool for which the same was decided
	More     int    // calls that are in no line of Kinds, since there are too many
}

// A Section is one of the policy.
type Section struct {
	policy.Section
	Rules []Rule
}

// A Rule has what it decided, together with others or alone.
type Rule struct {
	policy.Rule
	Count
}

// A Kind is calls of one tool that had the same decision, and have the same now, by the same rules.
type Kind struct {
	Name    string
	Was     Decision // by the policy of the run
	Now     Decision
	Rules   []string
	N       int
	Newest  *Call
	Changed bool // the policy of the run decided another way
}

// Count judges the calls of the last runs by the policy as it is now. Of a file with an error it has
// nothing. Values of which shown says so are not looked at.
func (f File) Count(ctx context.Context, from *history.Record, shown timeline.Options) (t Tally, err error) {
	if f.Policy.Err() != nil {
		return t, nil
	}
	j := newJudge(f.Policy, f.Named)
	for _, sec := range f.Policy.Sections() {
		s := Section{Section: sec}
		for _, r := range sec.Rules {
			s.Rules = append(s.Rules, Rule{Rule: r})
		}
		t.Sections = append(t.Sections, s)
	}
	if t.Past, err = read(ctx, from, shown, j.looksAtArguments); err != nil {
		return t, err
	}
	ctx, cancel := context.WithTimeout(ctx, judgeTime)
	defer cancel()
	kinds := map[string]int{}
	for _, c := range t.Calls {
		if ctx.Err() != nil {
			t.Bounds = append(t.Bounds, tooLongJudged)
			break
		}
		t.add(c, j.of(ctx, c), kinds)
	}
	slices.SortStableFunc(t.Kinds, func(a, b Kind) int { return cmp.Compare(b.N, a.N) })
	return t, nil
}

// add counts a call.
func (t *Tally) add(c *Call, now Judgement, kinds map[string]int) {
	var rules []string
	for i := range t.Sections {
		for k := range t.Sections[i].Rules {
			if r := &t.Sections[i].Rules[k]; slices.ContainsFunc(now.Reasons, r.Gives) {
				r.add(now.Decision)
				rules = append(rules, t.Sections[i].Name+" "+r.Text)
			}
		}
	}
	switch {
	case now.Decision == Unknown:
		t.Unknown++
	case now.Decision == Allowed && len(now.Reasons) == 0:
		t.Free++
	}
	key := strings.Join(append([]string{c.Name(), c.Then, string(now.Decision)}, now.Reasons...), "\x00")
	if at, ok := kinds[key]; ok {
		t.Kinds[at].N++
		return
	}
	if len(t.Kinds) == maxKinds {
		t.More++
		return
	}
	kinds[key] = len(t.Kinds)
	t.Kinds = append(t.Kinds, Kind{Name: c.Name(), Was: then(c), Now: now.Decision, Rules: rules, N: 1, Newest: c, Changed: now.Decision != Unknown && now.Decision != then(c)})
}

// then is what the policy of the run decided.
func then(c *Call) Decision {
	switch c.Then {
	case "ask":
		return Asked
	case "deny":
		return Denied
	}
	return Allowed
}
