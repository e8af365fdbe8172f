package consent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// TestWhatIsOfferedForTheConnection: nothing where it would let out what was never asked.
func TestWhatIsOfferedForTheConnection(t *testing.T) {
	read := Call{Server: "bank", Tool: "balance", Arguments: json.RawMessage(`{}`), Reasons: []string{"a rule"}, ReadsOnly: true}
	changed := func(change func(*Call)) Call {
		c := read
		change(&c)
		return c
	}
	write := changed(func(c *Call) { c.ReadsOnly = false })
	once, unpinned := changed(func(c *Call) { c.Once = true }), changed(func(c *Call) { c.Unpinned = true })
	long := changed(func(c *Call) { c.Arguments = json.RawMessage(`"` + strings.Repeat("x", maxArguments) + `"`) })
	all := connectionChoices
	for name, tt := range map[string]struct {
		q    Question
		want []Choice
	}{
		"a read":                    {Question{Calls: []Call{read}}, all},
		"two reads":                 {Question{Calls: []Call{read, read}}, all},
		"a write":                   {Question{Calls: []Call{write}}, all[:2]},
		"a read and a write":        {Question{Calls: []Call{read, write}}, all[:2]},
		"arguments that are cut":    {Question{Calls: []Call{long}}, all[1:2]},
		"more calls than are shown": {Question{Calls: slices.Repeat([]Call{read}, maxListedCalls+1)}, all[1:2]},
		"for once":                  {Question{Calls: []Call{read, once}}, nil},
		"a definition that is new":  {Question{Calls: []Call{read, unpinned}}, nil},
		"without a reason":          {Question{Calls: []Call{changed(func(c *Call) { c.Reasons = nil })}}, nil},
		"a command":                 {Question{Calls: []Call{read}, Command: true}, nil},
		"packages":                  {Question{Subject: "packages"}, nil},
		"a form":                    {Question{Form: &Form{Server: "bank"}}, nil},
	} {
		for _, lasting := range []bool{true, false} {
			tt.q.lasting = lasting
			want := tt.want
			if !lasting {
				want = nil
			}
			var got []Choice
			for _, c := range tt.q.Choices() {
				if c.LastsForConnection() {
					got = append(got, c)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, of a connection that lasts (%t): offered is %v, want %v", name, lasting, got, want)
			}
			for _, c := range all {
				if err := tt.q.check(Answer{Choice: c}); (err == nil) != slices.Contains(want, c) {
					t.Errorf("%s, of a connection that lasts (%t): the answer %s gives %v", name, lasting, c, err)
				}
			}
		}
	}
}

// lastingClient is a client that stays connected from run to run.
func lastingClient() *Client { return &Client{Lasting: true} }

// answered has a new run of a client ask about calls, which the user answers, and returns the question.
func answered(t *testing.T, d *Queue, client *Client, choice Choice, calls ...Call) Question {
	t.Helper()
	r := d.Begin(AskerOptions{Client: client, Stop: func(error) {}})
	defer r.End()
	var answers []<-chan error
	for _, c := range calls {
		answers = append(answers, asking(t, r, c))
	}
	q := await(t, d, r)
	if err := d.Decide(q.ID, Answer{Choice: choice}); err != nil {
		t.Fatal(err)
	}
	for _, answer := range answers {
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
	}
	q, _ = d.Question(q.ID)
	return q
}

// isGranted reports whether a new run of a client may make a call without asking.
func isGranted(d *Queue, client *Client, c Call) bool {
	r := d.Begin(AskerOptions{Client: client})
	defer r.End()
	return r.Granted(c) != ""
}

// TestWhatAnAnswerAllowsForTheConnection, and for nothing that differs from it.
func TestWhatAnAnswerAllowsForTheConnection(t *testing.T) {
	asked := Call{Server: "bank", Tool: "balance", Arguments: json.RawMessage(`{"n":1}`), Reasons: []string{"a rule"}, Identity: "v1", ReadsOnly: true}
	tool, same, reads := ForConnection, SameForConnection, ReadsForConnection
	for name, tt := range map[string]struct {
		change func(*Call)
		want   []Choice // that allow it
	}{
		"the same call":                {func(*Call) {}, []Choice{tool, same, reads}},
		"other arguments":              {func(c *Call) { c.Arguments = json.RawMessage(`{"n":2}`) }, []Choice{tool, reads}},
		"equal arguments, other bytes": {func(c *Call) { c.Arguments = json.RawMessage(`{"n":1.0}`) }, []Choice{tool, reads}},
		"another tool":                 {func(c *Call) { c.Tool = "list" }, []Choice{reads}},
		"another server":               {func(c *Call) { c.Server = "shop" }, []Choice{reads}},
		"another entry or definition":  {func(c *Call) { c.Identity = "v2" }, []Choice{reads}},
		"parts that join to the same":  {func(c *Call) { c.Server, c.Tool = "ban", "kbalance" }, []Choice{reads}},
		"it counts as writing now":     {func(c *Call) { c.ReadsOnly = false }, []Choice{tool, same}},
		"another tool, which writes":   {func(c *Call) { c.Tool, c.ReadsOnly = "pay", false }, nil},
		"another reason":               {func(c *Call) { c.Reasons = []string{"another rule"} }, nil},
		"one more reason":              {func(c *Call) { c.Reasons = []string{"a rule", "another rule"} }, nil},
		"no reason":                    {func(c *Call) { c.Reasons = nil }, nil},
		"it is asked each time":        {func(c *Call) { c.Once = true }, nil},
		"its definition is new":        {func(c *Call) { c.Unpinned = true }, nil},
	} {
		call := asked
		tt.change(&call)
		for _, choice := range connectionChoices {
			synctest.Test(t, func(t *testing.T) {
				d, client := NewQueue(Options{}), lastingClient()
				if q := answered(t, d, client, choice, asked); !q.Holds {
					t.Errorf("%s does not hold", choice)
				}
				if got, want := isGranted(d, client, call), slices.Contains(tt.want, choice); got != want {
					t.Errorf("%s, after %s: allowed is %t, want %t", name, choice, got, want)
				}
				if isGranted(d, lastingClient(), call) {
					t.Errorf("%s, after %s: another client may call it", name, choice)
				}
			})
		}
	}
}

// TestOtherAnswersAllowNothingInLaterRuns.
func TestOtherAnswersAllowNothingInLaterRuns(t *testing.T) {
	for _, choice := range []Choice{ForCall, ForRun} {
		synctest.Test(t, func(t *testing.T) {
			d, client := NewQueue(Options{}), lastingClient()
			q := answered(t, d, client, choice, transfer(1))
			if q.Holds != (choice == ForRun) {
				t.Errorf("%s holds in its run: %t", choice, q.Holds)
			}
			if q, _ := d.Question(q.ID); q.Holds || isGranted(d, client, transfer(1)) {
				t.Errorf("%s holds after its run: %t", choice, q.Holds)
			}
		})
	}
}

// TestACallThatIsAllowedForTheConnectionIsNotAsked, nor one of a batch whose other calls are.
func TestACallThatIsAllowedForTheConnectionIsNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client := NewQueue(Options{}), lastingClient()
		answered(t, d, client, ForConnection, transfer(1))
		r := d.Begin(AskerOptions{Client: client})
		defer r.End()
		other := transfer(1)
		other.Tool = "close_account"
		allowed, asked := asking(t, r, transfer(2)), asking(t, r, other)
		q := await(t, d, r)
		if len(q.Calls) != 1 || q.Calls[0].Tool != "close_account" {
			t.Errorf("asked about %+v", q.Calls)
		}
		if err := d.Decide(q.ID, Answer{Choice: Deny}); err != nil {
			t.Fatal(err)
		}
		if err := <-allowed; err != nil {
			t.Errorf("the call that was allowed: %v", err)
		}
		if err := <-asked; err == nil {
			t.Error("the other call is allowed")
		}
	})
}

// TestTheEndOfAConnectionEndsWhatItAllows, also for its runs that go on, and one that waits.
func TestTheEndOfAConnectionEndsWhatItAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client, other := NewQueue(Options{}), lastingClient(), lastingClient()
		given, kept := answered(t, d, client, ForConnection, transfer(1)), answered(t, d, other, ForConnection, transfer(1))
		r := d.Begin(AskerOptions{Client: client, Stop: func(error) {}})
		defer r.End()
		waits := transfer(1)
		waits.Tool = "close_account"
		answer := asking(t, r, waits)
		q := await(t, d, r)
		changed := d.Changed()
		d.Disconnect(client)
		select {
		case <-changed:
		default:
			t.Error("nobody is told")
		}
		if r.Granted(transfer(1)) != "" || isGranted(d, client, transfer(1)) {
			t.Error("what was allowed still is")
		}
		if q, _ := d.Question(given.ID); q.Holds || d.Revoke(given.ID) == nil {
			t.Error("the question still holds")
		}
		if q, _ := d.Question(kept.ID); !q.Holds || !isGranted(d, other, transfer(1)) {
			t.Error("what the other client may do has ended")
		}
		if q, _ := d.Question(q.ID); slices.Contains(q.Choices(), ForConnection) {
			t.Error("it is still offered")
		}
		if err := d.Decide(q.ID, Answer{Choice: ForConnection}); err == nil {
			t.Error("it can still be answered")
		}
		if err := d.Decide(q.ID, Answer{Choice: ForCall}); err != nil {
			t.Fatal(err)
		}
		if err := <-answer; err != nil || r.Granted(waits) != "" {
			t.Errorf("the call that has waited: %v; granted: %q", err, r.Granted(waits))
		}
	})
}

// TestRevokingWhatAConnectionAllows has the next run ask again, and is on record, which the run that
// asked has left by then.
func TestRevokingWhatAConnectionAllows(t *testing.T) {
	for _, choice := range connectionChoices {
		for _, ended := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				d, client := NewQueue(Options{}), lastingClient()
				var during, later []State
				r := d.Begin(AskerOptions{
					Client: client, Record: func(q Question) { during = append(during, q.State) }, RecordLater: func(q Question) { later = append(later, q.State) },
				})
				defer r.End()
				calls := []Call{transfer(1), transfer(2)}
				var answers []<-chan error
				for i := range calls {
					calls[i].ReadsOnly = true
					answers = append(answers, asking(t, r, calls[i]))
				}
				q := await(t, d, r)
				if err := d.Decide(q.ID, Answer{Choice: choice, By: "form"}); err != nil {
					t.Fatal(err)
				}
				for _, answer := range answers {
					<-answer
				}
				if ended {
					r.End()
				}
				if err := d.Revoke(q.ID); err != nil {
					t.Fatal(err)
				}
				for _, c := range calls {
					if isGranted(d, client, c) || r.Granted(c) != "" {
						t.Errorf("%s: the tool is still allowed", choice)
					}
				}
				if now, _ := d.Question(q.ID); now.State != Revoked || now.Holds || d.Revoke(q.ID) == nil {
					t.Errorf("%s: it is %s", choice, now.State)
				}
				want := []State{Pending, Approved, Revoked}
				if ended {
					want = want[:2]
				}
				if !slices.Equal(during, want) || ended != slices.Equal(later, []State{Revoked}) {
					t.Errorf("%s: on record are %v, and %v after the end of the run", choice, during, later)
				}
			})
		}
	}
}

// TestWhatTwoQuestionsAllowIsTakenBackWithOne: runs that ask at the same time about one tool.
func TestWhatTwoQuestionsAllowIsTakenBackWithOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client := NewQueue(Options{}), lastingClient()
		var ids []string
		for n := range 2 {
			r := d.Begin(AskerOptions{Client: client})
			defer r.End()
			answer := asking(t, r, transfer(n))
			ids = append(ids, await(t, d, r).ID)
			defer func() {
				if err := <-answer; err != nil {
					t.Error(err)
				}
			}()
		}
		for _, id := range ids {
			if err := d.Decide(id, Answer{Choice: ForConnection}); err != nil {
				t.Fatal(err)
			}
		}
		first, _ := d.Question(ids[0])
		last, _ := d.Question(ids[1])
		if first.Holds || !last.Holds {
			t.Errorf("the first holds: %t, the last: %t", first.Holds, last.Holds)
		}
		if err := d.Revoke(last.ID); err != nil || isGranted(d, client, transfer(1)) {
			t.Errorf("%v, or the tool is still allowed", err)
		}
		if answered(t, d, client, ForConnection, transfer(1)); d.Revoke(first.ID) == nil {
			t.Error("the first holds again")
		}
	})
}

// TestARunThatWasStoppedMayDoNothing, whatever was allowed for its connection.
func TestARunThatWasStoppedMayDoNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client := NewQueue(Options{}), lastingClient()
		answered(t, d, client, ForConnection, transfer(1))
		r := d.Begin(AskerOptions{Client: client, Stop: func(error) {}})
		defer r.End()
		other := transfer(1)
		other.Tool = "close_account"
		answer := asking(t, r, other)
		if err := d.Decide(await(t, d, r).ID, Answer{Choice: Stop}); err != nil {
			t.Fatal(err)
		}
		if <-answer == nil || r.Granted(transfer(1)) != "" {
			t.Error("it may go on")
		}
		if !isGranted(d, client, transfer(1)) {
			t.Error("the next run may not")
		}
	})
}

// TestQuestionsThatHoldAreKept, however many come after them, and no others.
func TestQuestionsThatHoldAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client := NewQueue(Options{}), lastingClient()
		held := answered(t, d, client, ForConnection, transfer(1))
		later := transfer(1)
		later.Tool = "close_account"
		for range maxKept + 5 {
			answered(t, d, client, ForCall, later)
		}
		if q, known := d.Question(held.ID); !known || !q.Holds || len(d.Questions()) != maxKept+1 {
			t.Errorf("it is known: %t, of %d", known, len(d.Questions()))
		}
		if err := d.Revoke(held.ID); err != nil {
			t.Fatal(err)
		}
		answered(t, d, client, ForCall, later)
		if _, known := d.Question(held.ID); known || len(d.Questions()) != maxKept {
			t.Errorf("it is known after it was revoked: %t, of %d", known, len(d.Questions()))
		}
	})
}

// TestWhatIsAllowedForAConnectionIsBounded, in number and in memory; beyond that it is asked.
func TestWhatIsAllowedForAConnectionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client := NewQueue(Options{}), lastingClient()
		named := func(n int) Call {
			c := transfer(1)
			c.Tool = fmt.Sprint("tool", n)
			return c
		}
		client.granted = map[grantKey]string{}
		for n := range maxGrants - 1 {
			client.granted[named(n).keyFor(ForConnection)] = "ask-earlier"
		}
		if q := answered(t, d, client, ForConnection, named(maxGrants), named(maxGrants+1)); q.Holds || isGranted(d, client, named(maxGrants)) {
			t.Error("two more of one are allowed")
		}
		if q := answered(t, d, client, ForConnection, named(maxGrants)); !q.Holds || !isGranted(d, client, named(maxGrants)) {
			t.Error("the last one is not allowed")
		}
		r := d.Begin(AskerOptions{Client: client})
		defer r.End()
		answer := asking(t, r, named(maxGrants+1))
		q := await(t, d, r)
		if slices.ContainsFunc(q.Choices(), Choice.LastsForConnection) {
			t.Errorf("offered is %v", q.Choices())
		}
		_ = d.Decide(q.ID, Answer{Choice: ForCall})
		<-answer
	})
	synctest.Test(t, func(t *testing.T) {
		d, client := NewQueue(Options{}), lastingClient()
		holding := 0
		for n := range 40 {
			large := transfer(n)
			large.Arguments = json.RawMessage(fmt.Sprintf(`"%02d%s"`, n, strings.Repeat("x", maxAsked-4)))
			if answered(t, d, client, SameForConnection, large).Holds {
				holding++
			}
		}
		if kept := len(d.Questions()); holding != maxHeldBytes/(maxAsked+callBytes) || kept > 63 {
			t.Errorf("of 40 questions of 1 MiB, %d hold, and %d are kept", holding, kept)
		}
	})
}

// TestTitlesOfWhatLasts say of what, and until when.
func TestTitlesOfWhatLasts(t *testing.T) {
	one := transfer(1)
	for _, tt := range []struct {
		calls  []Call
		choice Choice
		want   string
	}{
		{[]Call{one}, ForConnection, "Allow this tool until this client disconnects"},
		{[]Call{one, one}, ForConnection, "Allow these tools until this client disconnects"},
		{[]Call{one}, SameForConnection, "Allow this call until this client disconnects, with exactly these arguments"},
		{[]Call{one, one}, SameForConnection, "Allow these 2 calls until this client disconnects, with exactly these arguments"},
		{[]Call{one}, ReadsForConnection, "Allow everything that only reads and is asked about for the same reasons, until this client disconnects"},
	} {
		if got := (&Question{Calls: tt.calls}).Title(tt.choice); got != tt.want {
			t.Errorf("%d calls: %s is %q, want %q", len(tt.calls), tt.choice, got, tt.want)
		}
	}
}
