package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/rawjson"
	"github.com/toolcell/toolcell/mcpproxy/signature"
	"github.com/toolcell/toolcell/mcpproxy/text"
	"github.com/toolcell/toolcell/mcpproxy/toolvalue"
	"github.com/urfave/cli/v2"
)

// callFlags adds the flag of `servers call` to it.
func callFlags(call *cli.Command) *cli.Command {
	call.Description = "ARGUMENTS is a JSON object. The value is what run_python's code gets: a text as it is, anything else as JSON."
	call.Flags = append([]cli.Flag{&cli.BoolFlag{Name: "raw", Usage: "print the server's whole answer, as JSON"}}, call.Flags...)
	return call
}

func serversCall(c *cli.Context, s *console.Streams, p *mcpproxy.Proxy) error {
	if c.NArg() < 2 || c.NArg() > 3 {
		return console.Usagef(`servers call takes a server, a tool and the arguments as a JSON object, such as '{"path": "/tmp"}'`)
	}
	arguments := json.RawMessage("{}")
	if c.NArg() == 3 {
		arguments = json.RawMessage(c.Args().Get(2))
		var object map[string]any
		var syntax *json.SyntaxError
		switch err := json.Unmarshal(arguments, &object); {
		case errors.As(err, &syntax):
			return console.Invalidf("%s is not a JSON object: %w", text.Printable(c.Args().Get(2), 200), err)
		case err != nil || object == nil:
			return console.Invalidf("%s is not a JSON object", text.Printable(c.Args().Get(2), 200))
		}
	}
	conf, err := settings.Read(c)
	if err != nil {
		return err
	}
	progress := console.NewProgress(s.Err, c.Bool("json"))
	defer progress.Close()
	server, tool := c.Args().Get(0), c.Args().Get(1)
	progress.Show("calling " + server + "/" + tool)
	if arguments, err = bindArguments(c.Context, p, server, tool, arguments); err != nil {
		return err
	}
	request := mcpproxy.CallRequest{
		Server: server, Tool: tool, Arguments: arguments, Run: loadPolicy(conf, slog.New(slog.DiscardHandler)).NewRun(), // the error of the call says what is wrong with it
	}
	answer, err := p.Call(c.Context, request)
	progress.Close()
	var ask *policy.Ask
	if errors.As(err, &ask) {
		if err = askOnTerminal(c.Context, newTerminalAsker(s, progress), ask); err == nil {
			request.Allowed = ask.Same
			answer, err = p.Call(c.Context, request)
		}
	}
	if err != nil {
		return err
	}
	value, err := toolvalue.Of(answer.JSON)
	var failed *toolvalue.ToolError
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	return errors.Join(printAnswer(c, s, answer, value, failed), asFailure(failed))
}

// askOnTerminal asks the user whether a call may be made.
func askOnTerminal(ctx context.Context, asker *terminalAsker, ask *policy.Ask) error {
	if !asker.canAsk() {
		return fmt.Errorf("%w; on a terminal toolcell asks for it", ask)
	}
	answer := asker.ask(ctx, consent.Question{
		Command: true, Calls: []consent.Call{{Server: ask.Server, Tool: ask.Tool, Arguments: ask.Arguments, Reasons: ask.Reasons}},
	})
	switch {
	case answer.Choice == consent.ForCall:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("calling %q of server %q was not allowed by you", ask.Tool, ask.Server)
}

// bindArguments checks the arguments as those of a call from code are, so that a wrong
// name is not left to the words of the server.
func bindArguments(ctx context.Context, p *mcpproxy.Proxy, server, tool string, given json.RawMessage) (json.RawMessage, error) {
	named, err := signature.ParseArguments(given)
	if err != nil {
		return nil, err
	}
	found, sig, err := p.Signature(ctx, server, tool, true)
	if err != nil {
		return nil, err
	}
	return sig.Bind(server+"."+found.Alias, nil, named)
}

// asFailure returns the error that ends the program as a tool's own error asks for.
func asFailure(failed *toolvalue.ToolError) error {
	if failed == nil {
		return nil
	}
	return &console.ExitError{Code: console.ExitFail, Err: failed}
}

// A calledTool is the one row of servers call.
type calledTool struct {
	Server      string            `json:"server"`
	Tool        string            `json:"tool"`
	Value       json.RawMessage   `json:"value,omitempty"`
	Attachments []json.RawMessage `json:"attachments,omitempty"` // content beside a structured value
	Answer      json.RawMessage   `json:"answer,omitempty"`      // with --raw, instead of the value
	Error       string            `json:"error,omitempty"`       // of the tool
}

// printAnswer prints what the command line asks for of an answer.
func printAnswer(c *cli.Context, s *console.Streams, answer mcpproxy.CallResult, value toolvalue.Value, failed *toolvalue.ToolError) error {
	row := calledTool{Server: c.Args().Get(0), Tool: c.Args().Get(1)}
	if failed != nil {
		row.Error = failed.Text
	}
	switch {
	case c.Bool("json") && c.Bool("raw"):
		row.Answer = answer.JSON
		return console.PrintJSON(s, []calledTool{row})
	case c.Bool("json"):
		row.Value, row.Attachments = value.JSON, value.Attachments
		return console.PrintJSON(s, []calledTool{row})
	case c.Bool("raw"):
		return printIndented(s, answer.JSON)
	case failed != nil:
		return nil // it is on standard error
	}
	for _, a := range value.Attachments {
		console.Note(s.Err, "the answer also has "+described(a)+"; --raw prints it")
	}
	if text, isText := value.Text(); isText {
		_, err := fmt.Fprintln(s.Out, console.Filtered(s.Out, text))
		return err
	}
	if what := described(value.JSON); what != "" {
		_, err := fmt.Fprintf(s.Out, "<%s; --raw prints it>\n", what)
		return err
	}
	return printIndented(s, value.JSON)
}

func printIndented(s *console.Streams, value json.RawMessage) error {
	var out bytes.Buffer
	if err := json.Indent(&out, value, "", "  "); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	_, err := fmt.Fprintln(s.Out, console.Filtered(s.Out, out.String()))
	return err
}

// described names content that is no text: its kind and size. It is empty for other values.
func described(value json.RawMessage) string {
	var content struct {
		Type, MimeType, Data, Blob, URI string
	}
	if members, err := rawjson.Members(value); err != nil || len(members) == 0 || json.Unmarshal(value, &content) != nil {
		return ""
	}
	data := content.Data + content.Blob
	if data == "" || content.MimeType == "" {
		return ""
	}
	return text.Printable(content.MimeType, 60) + " of " + text.Size(int64(len(data)*3/4))
}
