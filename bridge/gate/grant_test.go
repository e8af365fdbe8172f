package gate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent"
)

// TestCodeGetsWhatTheUserGrants, of what the policy has them asked about before it starts.
func TestCodeGetsWhatTheUserGrants(t *testing.T) {
	const (
		subject = "the packages six"
		leak    = "what is asked of an index gets to others"
		noUser  = consent.Choice("no user can be asked")
		nobody  = consent.Choice("there is nothing that asks")
		allow   = "[default]\nunasked = 'allow'"
	)
	why := []string{"the policy says so"}
	clean, tainted := &consent.Taint{}, &consent.Taint{}
	tainted.Add("bank.accounts")
	for name, c := range map[string]struct {
		taint   *consent.Taint
		reasons []string
		leak    string
		answer  consent.Choice
		policy  string
		asked   []string // parts of the reasons; nil if nothing is asked
		err     string
	}{
		"no reason":                       {clean, nil, leak, consent.Deny, "", nil, ""},
		"no reason, though data was read": {tainted, nil, "", consent.Deny, "", nil, ""},
		"the policy's":                    {clean, why, leak, consent.ForCall, "", why, ""},
		"that data was read":              {tainted, nil, leak, consent.ForCall, "", []string{"bank.accounts; " + leak}, ""},
		"both":                            {tainted, why, leak, consent.ForCall, "", []string{why[0], leak}, ""},
		"denied":                          {clean, why, leak, consent.Deny, allow, why, subject + ": denied by the user"},
		"no user":                         {clean, why, leak, noUser, "", nil, subject + ": no user can be asked"},
		"no user, and the policy does":    {clean, why, leak, noUser, allow, nil, ""},
		"nobody, whatever it says":        {clean, why, leak, nobody, allow, nil, why[0]},
	} {
		user := newUser(t, always(c.answer))
		o := Options{Policy: policyIn(t, c.policy), Taint: c.taint, Asker: user.Asker}
		switch c.answer {
		case noUser:
			o.Asker = user.queue.Begin(consent.AskerOptions{NoUser: true})
		case nobody:
			o.Asker = nil
		}
		err := New(o).Grant(t.Context(), subject, c.reasons, c.leak)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
		var asked []string
		for _, q := range user.asked {
			if q.Subject != subject {
				t.Errorf("%s: asked about %q", name, q.Subject)
			}
			asked = append(asked, q.Reasons...)
		}
		if !slices.EqualFunc(asked, c.asked, strings.Contains) {
			t.Errorf("%s: asked for %q", name, asked)
		}
	}
	g := New(Options{Policy: policyIn(t, ""), Taint: clean})
	g.Stop(consent.ErrStopped)
	if err := g.Grant(t.Context(), subject, nil, ""); !errors.Is(err, consent.ErrStopped) {
		t.Errorf("a run that is ending: %v", err)
	}
}

// TestSavedToolsOfPrivateDataAreAskedFor in a run that reaches hosts, each time.
func TestSavedToolsOfPrivateDataAreAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		private, hosts []string
		asked          int
	}{
		"a tool like any other": {nil, []string{"pypi.org"}, 0},
		"no hosts":              {[]string{"bank.accounts"}, nil, 0},
		"both":                  {[]string{"bank.accounts"}, []string{"a", "b", "c", "d", "e", "f"}, 2},
	} {
		user := newUser(t, always(consent.ForCall))
		g := New(Options{Policy: policyIn(t, ""), Taint: &consent.Taint{}, Asker: user.Asker, Hosts: c.hosts})
		for range 2 {
			if err := g.AskSaved(t.Context(), "balance", c.private); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(user.asked) != c.asked {
			t.Errorf("%s: asked %d times", name, len(user.asked))
		}
		for _, q := range user.asked {
			call := q.Calls[0]
			if call.Server != SavedServer || call.Tool != "balance" || !call.Once || !strings.Contains(call.Reasons[0], "can reach a, b, c, d, e, and the tool was saved after private data was read, from bank.accounts") {
				t.Errorf("%s: asked about %+v", name, call)
			}
		}
		asked := len(user.asked)
		g.Stop(consent.ErrStopped)
		if err := g.AskSaved(t.Context(), "balance", c.private); !errors.Is(err, consent.ErrStopped) {
			t.Errorf("%s, in a run that is ending: %v", name, err)
		}
		if len(user.asked) > asked {
			t.Errorf("%s: asked in a run that is ending", name)
		}
	}
	var g *Gate
	user := newUser(t, func(consent.Question) consent.Answer {
		g.Stop(consent.ErrStopped)
		return consent.Answer{Choice: consent.ForCall}
	})
	g = New(Options{Policy: policyIn(t, ""), Taint: &consent.Taint{}, Asker: user.Asker, Hosts: []string{"a"}})
	if err := g.AskSaved(t.Context(), "balance", []string{"bank.accounts"}); !errors.Is(err, consent.ErrStopped) {
		t.Errorf("a run that was stopped while it asked: %v", err)
	}
}
