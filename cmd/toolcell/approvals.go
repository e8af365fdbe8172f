package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/text"
)

type approvalsOptions struct {
	Options
	Watch    bool   // of list
	Notify   bool   // of list
	All      bool   // of list
	For      string // of approve
	ForNamed bool
	Revoke   bool // of approve and deny
	Stop     bool // of deny

	Calls      string // of approve
	CallsNamed bool
	Because    string // of deny
}

func approvalsCommand(s *console.Streams) *cli.Command {
	action := func(do func(context.Context, approvalsOptions) error) cli.ActionFunc {
		return actionWith(s, func(c *cli.Context, o Options) error {
			return do(c.Context, approvalsOptions{
				Options: o, Watch: c.Bool("watch"), Notify: c.Bool("notify"), All: c.Bool("all"), For: c.String("for"), ForNamed: c.IsSet("for"),
				Revoke: c.Bool("revoke"), Stop: c.Bool("stop"),
				Calls: c.String("calls"), CallsNamed: c.IsSet("calls"), Because: c.String("because"),
			})
		})
	}
	watch := &cli.BoolFlag{Name: "watch", Usage: "keep running, and print questions and answers as they come"}
	notify := &cli.BoolFlag{Name: "notify", Usage: "with --watch: a bell and a notification when a question begins to wait"}
	all := &cli.BoolFlag{Name: "all", Usage: "list all questions that are on record, also of runs that have ended"}
	revoke := &cli.BoolFlag{Name: "revoke", Usage: "take back an approval for the rest of a run, or for the connection"}
	list := action(approvalsList)
	return &cli.Command{
		Name: "approvals", Usage: "show and answer what runs of serve ask you",
		Description: "A run is paused until you answer. To approve, you type a code at a terminal, so that programs,\n" +
			"such as the model that asks, cannot approve their own calls. Without a command it is\n" +
			"approvals list.",
		Flags: flags(valueSettings, watch, notify, all),
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return needSubcommand(c)
			}
			return list(c)
		},
		Subcommands: []*cli.Command{
			command("list", "show the questions that are waiting, and recent answers", "", valueSettings, list, watch, notify, all),
			command("show", "show a question with all arguments", "ID", stateSettings, action(approvalsShow)),
			command("approve", "allow what a question is about, at a terminal", "ID", stateSettings, action(approvalsApprove),
				&cli.StringFlag{Name: "for", Value: string(consent.ForCall), Usage: "`WHAT` is allowed: call; run for the tool until the run ends; connection for the tool, connection-same for the same arguments, or connection-reads for all that only reads, until the client disconnects; or reads to count the tool as only reading"},
				&cli.StringFlag{Name: "calls", Usage: "allow only the calls with these `NUMBERS`, such as 1,3-5, and deny the others"}, revoke),
			command("deny", "deny what a question is about", "ID", stateSettings, action(approvalsDeny),
				&cli.StringFlag{Name: "because", Usage: "`TEXT` that tells the code and the model why"},
				&cli.BoolFlag{Name: "stop", Usage: "end the run, too"}, revoke),
		},
	}
}

// openApprovals connects to all processes that may have questions. Call close on the result.
func openApprovals(s settings.Settings) (approvals, error) {
	var dirs []string
	for _, dir := range s.RunDirs() {
		dirs = append(dirs, inbox.Dir(dir))
	}
	all, err := inbox.Connect(dirs...)
	if len(all) > 0 {
		return all, nil // the folder of others is in the way, but has no socket of ours
	}
	return nil, s.Dirs.Explain(err)
}

// approvals are the processes that may have questions.
type approvals []*inbox.Client

func (a approvals) close() {
	for _, c := range a {
		_ = c.Close() // all replies were read
	}
}

// questions returns the questions of all processes, oldest first, and notes those that
// do not answer.
func (a approvals) questions(s *console.Streams) []inbox.Question {
	all, err := inbox.ListAll(a)
	if err != nil {
		console.Note(s.Err, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return all
}

// minPrefix is the shortest beginning of an ID that is accepted for it, in characters.
const minPrefix = len("ask-") + 4

// find returns the process that has a question, and the question's whole ID.
func (a approvals) find(id string, s *console.Streams) (*inbox.Client, string, error) {
	var owner *inbox.Client
	var found []string
	for _, c := range a {
		all, err := c.List()
		if err != nil {
			console.Note(s.Err, err.Error())
		}
		for _, q := range all {
			if q.ID == id {
				return c, id, nil
			}
			if len(id) >= minPrefix && strings.HasPrefix(q.ID, id) {
				owner, found = c, append(found, q.ID)
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, "", fmt.Errorf("there is no question %q; toolcell approvals list shows all", id)
	case 1:
		return owner, found[0], nil
	}
	return nil, "", fmt.Errorf("%q is the beginning of %d questions: %s", id, len(found), strings.Join(found, ", "))
}

// withQuestion calls f with the question that the command's one argument names.
func (o approvalsOptions) withQuestion(f func(*inbox.Client, string) error) error {
	all, err := openApprovals(o.Settings)
	if err != nil {
		return err
	}
	defer all.close()
	owner, id, err := all.find(o.Args[0], o.Streams)
	if err != nil {
		return err
	}
	return f(owner, id)
}

func approvalsShow(_ context.Context, o approvalsOptions) error {
	return o.withQuestion(func(owner *inbox.Client, id string) error {
		q, err := owner.Show(id)
		if err != nil {
			return err
		}
		state := withReason(stateText(q), q.Because)
		if q.Choice.LastsForConnection() && q.Holds {
			state += ": " + allowed(inbox.Challenge{Question: q}, q.Choice)
		}
		return printRow(o.Options, q, "%s\nstate: %s\n", console.PlainText(q.Text), console.Plain(state))
	})
}

// answer calls do with the question and prints its new state.
func (o approvalsOptions) answer(do func(*inbox.Client, string) error) error {
	return o.withQuestion(func(owner *inbox.Client, id string) error {
		if err := do(owner, id); err != nil {
			return err
		}
		return o.printAnswered(owner, id)
	})
}

func approvalsDeny(_ context.Context, o approvalsOptions) error {
	if o.Revoke {
		return approvalsRevoke(o)
	}
	because, err := consent.Because(o.Because)
	if err != nil {
		return console.Usagef("--because: %v", err)
	}
	return o.answer(func(owner *inbox.Client, id string) error { return owner.Deny(id, o.Stop, because) })
}

func approvalsRevoke(o approvalsOptions) error {
	if o.ForNamed || o.CallsNamed || o.Stop || o.Because != "" {
		return console.Usagef("give --revoke without --for, --calls, --stop and --because")
	}
	return o.answer((*inbox.Client).Revoke)
}

// approvalsApprove approves at the terminal that controls this process, whatever the
// standard streams are.
func approvalsApprove(ctx context.Context, o approvalsOptions) error {
	choice := consent.Choice(o.For)
	switch {
	case o.Revoke:
		return approvalsRevoke(o)
	case !choice.Allows():
		return console.Usagef("--for is one of %s, got %q", strings.Join(scopes, ", "), choice)
	case o.CallsNamed && o.Calls == "": // of a script whose variable is empty: it does not mean all
		return console.Usagef("--calls is numbers of calls, such as 1,3-5, got nothing")
	case o.CallsNamed && choice != consent.ForCall:
		return console.Usagef("give --calls without --for %s: it allows these calls and nothing more", choice)
	}
	return o.answer(func(owner *inbox.Client, id string) error {
		terminal, err := console.OpenTerminal()
		if err != nil {
			return fmt.Errorf("%w; run toolcell approvals approve %s in one", inbox.ErrTerminal, id)
		}
		defer terminal.Close()
		begun, err := owner.Begin(id, choice, o.Calls)
		if err != nil {
			return err
		}
		if err := console.DropTyped(terminal); err != nil {
			return err
		}
		if begun.Remark != "" {
			fmt.Fprintf(terminal, "note: %s\n\n", begun.Remark)
		}
		fmt.Fprintf(terminal, "%s\n\nTo allow %s, type %s: ", console.PlainText(begun.Question.Text), allowed(begun, choice), begun.Code)
		code, err := console.ReadLine(ctx, terminal)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.EOF) || err == nil && strings.TrimSpace(code) == "":
			return errors.New("no code was typed, so nothing was approved")
		case err != nil:
			return fmt.Errorf("reading the code: %w", err)
		}
		return owner.Approve(id, code)
	})
}

// scopes are the values of --for.
var scopes = []string{
	string(consent.ForCall), string(consent.ForRun), string(consent.ForConnection), string(consent.SameForConnection), string(consent.ReadsForConnection),
	string(consent.Believe),
}

// allowed names what an approval allows.
func allowed(begun inbox.Challenge, choice consent.Choice) string {
	q := begun.Question
	several := len(q.Calls) > 1
	some, others := len(begun.Calls), len(q.Calls)-len(begun.Calls)
	switch {
	case some == 1 && others > 0:
		return fmt.Sprintf("only call %d, and deny %s", begun.Calls[0], text.Plural(others, "other"))
	case some > 1 && others > 0:
		return fmt.Sprintf("only calls %s, and deny %s", consent.FormatCalls(begun.Calls), text.Plural(others, "other"))
	case q.Subject != "":
		return "it"
	case choice == consent.ReadsForConnection:
		return "everything that only reads and is asked about for the same reasons, until the client disconnects"
	case choice == consent.ForConnection && several:
		return fmt.Sprintf("the tools of these %d calls until the client disconnects", len(q.Calls))
	case choice == consent.ForConnection:
		return "this tool until the client disconnects"
	case choice == consent.SameForConnection && several:
		return fmt.Sprintf("these %d calls until the client disconnects, with exactly these arguments", len(q.Calls))
	case choice == consent.SameForConnection:
		return "this call until the client disconnects, with exactly these arguments"
	case choice == consent.ForRun && several:
		return fmt.Sprintf("the tools of these %d calls for the rest of the run", len(q.Calls))
	case choice == consent.Believe && several:
		return fmt.Sprintf("these %d calls, and count their tool as one that only reads from now on", len(q.Calls))
	case choice == consent.Believe:
		return "this call, and count the tool as one that only reads from now on"
	case several:
		return fmt.Sprintf("these %d calls", len(q.Calls))
	case choice == consent.ForRun:
		return "this tool for the rest of the run"
	}
	return "this call"
}

// printAnswered prints the state of a question after an answer.
func (o approvalsOptions) printAnswered(owner *inbox.Client, id string) error {
	q, err := owner.Show(id)
	if err != nil {
		return err
	}
	q.Text = ""
	err = printRow(o.Options, q, "%s: %s\n", stateText(q), id)
	if q.Remark != "" && !o.JSON {
		console.Note(o.Err, "kept in the log: "+q.Remark)
	}
	return err
}
