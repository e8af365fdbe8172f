package rules

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/policy/rule"
)

// Bounds on what is offered.
const (
	maxConditions = 8   // arguments of a call
	maxDepth      = 3   // of objects in them
	maxValue      = 200 // bytes of an argument
	maxExamples   = 20
)

// Offers are the rules that are offered for a call.
type Offers struct {
	Past
	Call   *Call
	Now    Judgement
	All    []Offer
	None   []string // why others are not offered
	Hidden bool     // the call has arguments that are not kept whole, or not shown
}

// An Offer is a change of the file. It was made and checked: the policy is understood then, and decides the
// call as the title says.
type Offer struct {
	Title    string // such as Ask about bank.pay
	Diff     string // unified, of the whole file; a line end of Windows is shown in it
	Lines    string // those that are new, as they can be copied; "" if adding lines is not enough
	Command  string // that makes the change, "" if the diff has what a page cannot show as it is
	Differs  int    // calls of the last runs that would be decided in another way
	Unknown  int    // calls of the tool for which that cannot be said
	Examples []*Call
	after    *policy.Policy // with it
	text     []byte         // of the file with it
}

// ForCall returns the rules that are offered for a call of a tool. The run may be the beginning of its ID.
// An error is that of the policy, ErrNoCall, or one of the record.
func (f File) ForCall(ctx context.Context, from *history.Record, shown timeline.Options, run string, number int) (*Offers, error) {
	if err := f.Policy.Err(); err != nil {
		return nil, err
	}
	call, err := find(from, shown, run, number)
	if err != nil {
		return nil, err
	}
	j := newJudge(f.Policy, f.Named)
	o := &Offers{Call: call, Now: j.of(ctx, call), Hidden: call.Arguments == nil}
	section, why := f.sectionFor(j, call)
	if why != "" {
		o.None = append(o.None, why)
		return o, nil
	}
	f.offer(ctx, j, o, section)
	about := func(c *Call) bool { // names count in any case
		server, g := j.call(c).Server, rule.Glob(section[1])
		return g.Matches(server.Name) || g.Matches(server.Alias)
	}
	o.Past, err = read(ctx, from, shown, func(c *Call) bool { return about(c) && (strings.EqualFold(c.Tool, call.Tool) || j.looksAtArguments(c)) })
	if err != nil {
		return nil, err
	}
	o.compare(ctx, j, about)
	return o, nil
}

// offer makes the offers for a call, in a section about its server.
func (f File) offer(ctx context.Context, j *judge, o *Offers, section []string) {
	add := func(title string, want Decision, e edit) {
		offer, why := f.made(ctx, j, o.Call, title, want, e)
		if why != "" {
			o.None = append(o.None, title+": "+why)
			return
		}
		o.All = append(o.All, *offer)
	}
	name := o.Call.Name()
	switch o.Now.Decision {
	case Denied:
		o.None = append(o.None, "It is denied already. No rule that is added allows it: change the one that denies it by hand.")
		return
	case Asked:
		edits, why := f.unasked(o, section)
		if why != "" {
			o.None = append(o.None, why)
		} else {
			add("Allow "+name, Allowed, edits)
		}
	default:
		add("Ask about "+name, Asked, listed(section, "ask", o.Call.Tool))
	}
	add("Deny "+name, Denied, listed(section, "deny", o.Call.Tool))
	if o.Now.Decision != Allowed {
		return
	}
	for _, a := range argumentsOf(o.Call.Arguments) {
		title := fmt.Sprintf("Ask about %s if %s %s %s", name, strings.Join(a.path, "."), a.op, a.value)
		add(title, Asked, asked(section, o.Call.Tool, a.path, a.op, a.value))
	}
}

// sectionFor returns the key of the section about the server of a call, which may not be there yet.
func (f File) sectionFor(j *judge, c *Call) (key []string, why string) {
	for _, name := range []string{c.Server, c.Tool} {
		if g, err := rule.ParseGlob(name); err != nil || !g.IsName() || c.Partial {
			return nil, fmt.Sprintf("No rule can be about %q alone: the name has characters that mean something else in a policy, or is not on record whole.", c.Name())
		}
	}
	server := j.call(c).Server
	key = []string{"servers", c.Server}
	top, err := says(f.Text)
	if err != nil {
		return key, ""
	}
	servers, _ := top["servers"].(map[string]any)
	if _, ok := servers[c.Server]; ok {
		return key, ""
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if strings.EqualFold(name, c.Server) || strings.EqualFold(name, server.Alias) {
			key = []string{"servers", name}
		}
	}
	return key, ""
}

// unasked takes a tool out of the list by which the user is asked about it, if it is there by its name.
func (f File) unasked(o *Offers, section []string) (e edit, why string) {
	for _, reason := range o.Now.Reasons {
		found := false
		for _, sec := range f.Policy.Sections() {
			for _, r := range sec.Rules {
				if r.Gives(reason) && r.Key == "ask" && slices.Equal(r.Section, section) && strings.EqualFold(r.Glob, o.Call.Tool) {
					e, found = unlisted(section, "ask", r.Glob), true
				}
			}
		}
		if !found {
			return e, "No rule that is added takes back a question. This asks: " + reason
		}
	}
	return e, ""
}

// made makes an offer, or says why it cannot be made.
func (f File) made(ctx context.Context, j *judge, c *Call, title string, want Decision, e edit) (*Offer, string) {
	after, err := e.apply(f.Text)
	if err != nil {
		return nil, err.Error()
	}
	p := policy.Parse(after, f.Path)
	if err := p.Err(); err != nil {
		return nil, "it would not be understood: " + err.Error()
	}
	if got := newJudge(p, j.named).of(ctx, c).Decision; got != want {
		return nil, fmt.Sprintf("beside the other rules, the call would be %s all the same", got)
	}
	o := &Offer{Title: title, after: p, text: after}
	o.Diff, o.Lines = f.diff(after)
	if console.PlainText(o.Lines) != o.Lines {
		return nil, "the file has characters there that do not show"
	}
	o.Command = f.patch(o.Diff)
	return o, ""
}

// carriageReturn shows one in a diff: browsers and terminals lose it when a text is copied.
const carriageReturn = "\u240d"

// Windows reports whether the diff has line ends of Windows.
func (o *Offer) Windows() bool { return strings.Contains(o.Diff, carriageReturn) }

// diff returns the unified diff of the file and another text, and the lines that are new if it takes away none.
func (f File) diff(after []byte) (shown, added string) {
	old := f.Path
	if !f.There {
		old = "/dev/null"
	}
	unified := udiff.Unified(old, f.Path, string(f.Text), string(after))
	shown = strings.ReplaceAll(unified, "\r\n", carriageReturn+"\n")
	var b strings.Builder
	cut := map[string]int{}
	for i, line := range strings.Split(unified, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if was, ok := strings.CutPrefix(line, "-"); ok && i > 1 {
			cut[was]++
		}
		if is, ok := strings.CutPrefix(line, "+"); ok && i > 1 {
			if cut[is] > 0 { // it only got its line feed
				cut[is]--
				continue
			}
			b.WriteString(is + "\n")
		}
	}
	for _, n := range cut {
		if n > 0 {
			return shown, ""
		}
	}
	return shown, strings.TrimLeft(b.String(), "\n")
}

// patch returns the command that applies a diff as it is shown. The file is named since patch takes no
// absolute path from a diff, and no line of a diff ends the text: each begins with a sign.
func (f File) patch(shown string) string {
	if console.PlainText(shown) != shown || bytes.Contains(f.Text, []byte(carriageReturn)) {
		return ""
	}
	command := "patch " + text.ShellWord(f.Path)
	if !strings.Contains(shown, carriageReturn) {
		return command + " <<'EOF'\n" + shown + "EOF\n"
	}
	return "awk '{ sub(/" + carriageReturn + "$/, \"\\r\") } 1' <<'EOF' | " + command + "\n" + shown + "EOF\n"
}

// compare says what the offers would have matched, of the calls that they are about.
func (o *Offers) compare(ctx context.Context, j *judge, about func(*Call) bool) {
	ctx, cancel := context.WithTimeout(ctx, judgeTime)
	defer cancel()
	with := make([]*judge, len(o.All))
	for i := range o.All {
		with[i] = newJudge(o.All[i].after, j.named)
	}
	for _, c := range o.Calls {
		if ctx.Err() != nil {
			o.Bounds = append(o.Bounds, tooLongJudged)
			return
		}
		if !about(c) {
			continue
		}
		before := j.of(ctx, c).Decision
		for i := range o.All {
			o.All[i].count(c, before, with[i].of(ctx, c).Decision, o.Call.Tool)
		}
	}
}

// count notes what becomes of a call with an offer for a tool.
func (o *Offer) count(c *Call, before, after Decision, tool string) {
	switch unknown := before == Unknown || after == Unknown; {
	case unknown && strings.EqualFold(c.Tool, tool):
		o.Unknown++
	case !unknown && before != after:
		if o.Differs++; len(o.Examples) < maxExamples {
			o.Examples = append(o.Examples, c)
		}
	}
}

// An argument is one of a call at which the user can be asked.
type argument struct {
	path  []string
	op    string
	value string // as TOML
}

// argumentsOf returns the first arguments of a call that a condition can be about: texts, numbers and
// truth values that are short, also in objects.
func argumentsOf(arguments json.RawMessage) (all []argument) {
	var walk func(value json.RawMessage, path []string)
	walk = func(value json.RawMessage, path []string) {
		members, err := rawjson.Members(value)
		if err != nil {
			return
		}
		for _, m := range members {
			if len(all) == maxConditions {
				return
			}
			if m.Name == "" || m.Name == "*" || len(m.Name) > maxValue {
				continue
			}
			at := append(slices.Clone(path), m.Name)
			switch c := m.Value[0]; {
			case c == '{' && len(at) < maxDepth:
				walk(m.Value, at)
			case c == '"' && len(m.Value) <= maxValue:
				if s, ok := rawjson.Text(m.Value); ok {
					all = append(all, argument{at, "==", tomlString(s)})
				}
			case c == 't' || c == 'f':
				all = append(all, argument{at, "==", string(m.Value)})
			case c == '-' || c >= '0' && c <= '9':
				if len(m.Value) <= maxValue {
					all = append(all, argument{at, ">=", string(m.Value)})
				}
			}
		}
	}
	walk(arguments, nil)
	return all
}
