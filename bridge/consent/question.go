package consent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Call is one that needs the user's approval.
type Call struct {
	Server, Tool string
	// Where the server runs, in one word of toolcell's; "" if that is where it does by default.
	Where     string
	Arguments json.RawMessage // a JSON object: exactly the bytes that will be sent
	Reasons   []string        // why it is asked, each a line
	Once      bool            // it cannot be allowed for the rest of the run
	Recorded  int             // its number on record; 0 if it has none
	Number    int             // by which the code made its calls one after the other; 0 if it is not known
	// Identity is of the server's entry and the tool's definition. What is allowed for the
	// rest of the run is allowed of these.
	Identity string
	// Unpinned: a reason to ask is that the tool's definition is not the one that is pinned. Then
	// nothing can be allowed for the connection.
	Unpinned bool
	// ReadsOnly: it only reads, as far as the user has accepted that.
	ReadsOnly bool
	// Hint is the digest of a definition that says the tool only reads, which the user may
	// accept with the call (Believe); empty if there is none.
	Hint string
	// Effect says what the call may change, and by whose word, in toolcell's words: one line, ""
	// if it is not known. Writes: it may change something.
	Effect string
	Writes bool
	// Description is what the server says of the tool, in any form.
	Description string
}

// Digest returns the SHA-256 of the arguments, in hexadecimal.
func (c Call) Digest() string {
	sum := sha256.Sum256(c.Arguments)
	return hex.EncodeToString(sum[:])
}

// A Form is what a server asks during one of its calls (MCP specification,
// Elicitation).
type Form struct {
	Server, Tool string
	Message      string
	Schema       json.RawMessage // of the answer; nil with a URL
	URL          string          // to open in place of a form
	ID           string          // of an elicitation by URL, where the protocol has one
	Key          string          // by which the server knows it, if it has one
}

// A State is how far a question is.
type State string

// The states of questions.
const (
	Pending  State = "pending"
	Approved State = "approved"
	Denied   State = "denied"
	Stopped  State = "stopped" // with its run
	Expired  State = "expired"
	Ended    State = "ended"    // its run ended otherwise
	Answered State = "answered" // a form
	Revoked  State = "revoked"
)

// A Choice is one of the answers to a question about calls.
type Choice string

// The choices.
const (
	ForCall Choice = "call"  // exactly these calls
	ForRun  Choice = "run"   // their tools, for the rest of this run
	Believe Choice = "reads" // these calls, and that their tool only reads from now on

	// These allow something until the connection of the client ends, for the same reasons to ask.
	ForConnection      Choice = "connection"       // their tools
	SameForConnection  Choice = "connection-same"  // calls of them with equal arguments
	ReadsForConnection Choice = "connection-reads" // everything that only reads

	Deny Choice = "deny"
	Stop Choice = "stop" // the run
)

// Allows reports whether a choice allows the calls.
func (c Choice) Allows() bool {
	return c == ForCall || c == ForRun || c == Believe || c.LastsForConnection()
}

// An Answer is what the user says.
type Answer struct {
	Choice Choice
	By     string // how it came, such as "form" or "toolcell approvals"
	PID    int    // of the process that it came from; 0 if that is the client, or this process
	Remark string // why it is not clearly a person's
	// Because is what the user says to what is denied, or to the stop, as Because returns it.
	Because string
	// Calls are the numbers, from 1 on, of the calls that are allowed, in ascending order; nil are
	// all. The others are denied. Only ForCall has some.
	Calls []int
	// Action and Content answer a Form: accept, decline or cancel, and what was entered.
	Action  string
	Content map[string]any
}

func (a Answer) state() State {
	switch {
	case a.Action != "":
		return Answered
	case a.Choice.Allows():
		return Approved
	case a.Choice == Stop:
		return Stopped
	}
	return Denied
}

// A Question waits for the user. A copy of it does not change.
type Question struct {
	ID      string
	Run     string
	Client  string   // the MCP client of the run, as it names itself
	Calls   []Call   // that are asked together
	Subject string   // what is asked, if not calls: packages or hosts
	Reasons []string // why that is asked
	Form    *Form    // what a server asks; nil if toolcell asks
	Command bool     // the user has typed a command that makes the calls, outside of runs

	CallsBefore int      // that the run has made
	Effects     []string // those of them that changed something, as lines, bounded
	MoreEffects int      // that are not among the lines
	AskedAt     time.Time
	ExpiresAt   time.Time

	State     State
	Answer    Answer // once it is decided
	DecidedAt time.Time
	Holds     bool // when this copy was made, it still allowed more than its calls (Queue.Revoke)

	run     *Asker
	decided chan struct{}
	lasting bool       // something can be allowed for the connection
	grants  []grantKey // what was allowed for it
}

// Choices returns the answers that may be given.
func (q *Question) Choices() []Choice {
	switch {
	case q.Form != nil:
		return nil
	case len(q.Calls) == 0, q.Command:
		return []Choice{ForCall, Deny}
	case q.once():
		return []Choice{ForCall, Deny, Stop}
	}
	choices := []Choice{ForCall}
	whole := !q.cut(markdown{}) // the longer form: the choices are the same on a terminal
	if whole {
		choices = append(choices, ForRun)
	}
	choices = append(choices, q.offeredForConnection(whole)...)
	if whole && q.offersHint() {
		choices = append(choices, Believe)
	}
	return append(choices, Deny, Stop)
}

// offersHint reports whether all calls are of one tool whose server says that it only
// reads, which the user has not accepted.
func (q *Question) offersHint() bool {
	first := q.Calls[0]
	return first.Hint != "" && !slices.ContainsFunc(q.Calls, func(c Call) bool { return c.key() != first.key() || c.Hint != first.Hint })
}

// copy returns the question as it is now. The queue's mu is held.
func (q *Question) copy() Question {
	now := *q
	now.Holds = q.allowsMore()
	return now
}

// allowsMore reports whether an approval still allows more than the calls of the question. The queue's mu
// is held.
func (q *Question) allowsMore() bool {
	return q.State == Approved && (q.Answer.Choice == ForRun && !q.run.ended || q.holds())
}

// keptBytes is how much memory a decided question takes that its run may make large.
func (q *Question) keptBytes() (n int) {
	if q.State == Pending {
		return 0
	}
	for _, c := range q.Calls {
		n += len(c.Arguments) + len(c.Description)
	}
	return n
}

// once reports whether nothing but the calls themselves can be allowed.
func (q *Question) once() bool {
	return slices.ContainsFunc(q.Calls, func(c Call) bool { return c.Once })
}

// Check returns an answer as it counts, with its words cleaned, or an error that says which answers
// the question has. Words are for what is denied: with them, nothing is wholly allowed.
func (q *Question) Check(a Answer) (Answer, error) {
	if err := q.check(a); err != nil {
		return Answer{}, err
	}
	if len(a.Calls) > 0 {
		if err := q.checkCalls(a); err != nil {
			return Answer{}, err
		}
	}
	if len(a.Calls) == len(q.Calls) { // all of them, or there are none
		a.Calls = nil
	}
	because, err := Because(a.Because)
	if err != nil {
		return Answer{}, err
	}
	if a.Because = because; because != "" && len(a.Calls) == 0 && a.state() != Denied && a.state() != Stopped {
		return Answer{}, errors.New("a reason is only for what is denied")
	}
	return a, nil
}

// check returns an error if the choice or action of an answer is none of this question's.
func (q *Question) check(a Answer) error {
	if a.Choice == Stop && a.Action == "" && len(q.Calls) == 0 {
		return nil // a server gets no answer, or the code does not start
	}
	if q.Form != nil {
		if a.Choice != "" || !slices.Contains([]string{"accept", "decline", "cancel"}, a.Action) {
			return fmt.Errorf("server %q asks for input: the answer is accept, decline or cancel", q.Form.Server)
		}
		return nil
	}
	if a.Action != "" || !slices.Contains(q.Choices(), a.Choice) {
		return fmt.Errorf("the answers are %v", q.Choices())
	}
	return nil
}

// Title says in words what a choice means.
func (q *Question) Title(c Choice) string {
	one := len(q.Calls) < 2
	switch c {
	case ForCall:
		switch {
		case len(q.Calls) == 0:
			return "Allow it for this run"
		case one:
			return "Allow this call"
		}
		return fmt.Sprintf("Allow these %d calls", len(q.Calls))
	case ForRun:
		if one {
			return "Allow this tool for the rest of this run"
		}
		return "Allow these tools for the rest of this run"
	case ForConnection:
		if one {
			return "Allow this tool until this client disconnects"
		}
		return "Allow these tools until this client disconnects"
	case SameForConnection:
		if one {
			return "Allow this call until this client disconnects, with exactly these arguments"
		}
		return fmt.Sprintf("Allow these %d calls until this client disconnects, with exactly these arguments", len(q.Calls))
	case ReadsForConnection:
		return "Allow everything that only reads and is asked about for the same reasons, until this client disconnects"
	case Believe:
		return "Allow it, and count this tool as one that only reads from now on"
	case Deny:
		return "Do not allow it"
	}
	return "Stop the run"
}
