package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/signals"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/toolvalue"
)

type serversCallOptions struct {
	Options
	File     string // for the answer; OutNamed if --out is given
	OutNamed bool
	Raw      bool
}

func serversCallCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name: "call", Usage: "call a tool and print its value", ArgsUsage: "NAME TOOL [ARGUMENTS | NAME=VALUE… | - | @FILE]",
		Description: "ARGUMENTS is a JSON object, NAME=VALUE for each argument, - to read the object from standard input, or @FILE. " +
			"The value is what the code of run_python gets: a string as it is, anything else as JSON.",
		Flags: flags(slices.Concat(discoverySettings, []string{"policy", "start-timeout"}, settings.ForRecord),
			&cli.StringFlag{Name: "out", Usage: "write the pictures, sounds and files of the answer to `FILE`, or else its value, instead of printing it"},
			&cli.BoolFlag{Name: "raw", Usage: "print the server's whole answer, as JSON"}),
		Action: actionWith(s, func(c *cli.Context, o Options) error {
			call := serversCallOptions{o, c.String("out"), c.IsSet("out"), c.Bool("raw")}
			return serversFunc(call.run).run(c.Context, o)
		}),
	}
}

func (o serversCallOptions) run(ctx context.Context, _ Options, p *mcpproxy.Proxy) error {
	if o.OutNamed && (o.File == "" || o.Raw || o.JSON) {
		return console.Usagef("--out takes the name of a file, and is given without --raw and --json")
	}
	r := gate.Request{Method: mcpproxy.CallTool, Server: o.Args[0], Name: o.Args[1]}
	var err error
	if r.Named, r.Typed, err = readCallArguments(o.Args[2:], o.In); err != nil {
		return err
	}
	progress := console.NewProgress(o.Err, o.JSON)
	defer progress.Close()
	progress.Show("calling " + r.Server + "/" + r.Name)
	rules := loadPolicy(o.Settings, slog.New(slog.DiscardHandler)).NewEnforcer() // the error of the call says what is wrong with it
	journal := openRecord(o.Settings, appOptions{command: "servers call", log: shellLogger(o.Options)}, p)
	began := time.Now()
	exported := signals.Open(signals.Options{Version: version, Log: shellLogger(o.Options)})
	answer, err := callFromTerminal(exported.In(ctx), p, r, rules, newTerminalAsker(o.Streams, progress), journal, o.Settings.RecordRequired)
	if errRecord := journal.Close(); errRecord != nil {
		console.Note(o.Err, "the record is not in order: "+errRecord.Error())
	}
	exported.Close()
	progress.Close()
	if err != nil {
		return err
	}
	value, err := toolvalue.Of(ctx, answer)
	var failed *toolvalue.ToolError
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	if err := o.printAnswer(answer, value, failed); err != nil || failed == nil {
		return err
	}
	if refused := p.Refused(r.Server, began); refused != "" {
		console.Note(o.Err, refused)
	}
	return failed
}

// callFromTerminal makes one call, past the same gate as those of code. The arguments are
// checked as theirs are, so that a wrong name is not left to the words of the server. It is on record
// as a run that has no code.
func callFromTerminal(ctx context.Context, p *mcpproxy.Proxy, r gate.Request, rules *policy.Enforcer, user *terminalAsker, journal *record.Journal, required bool) (answer json.RawMessage, err error) {
	server, err := p.Lookup(r.Server)
	if err != nil {
		return nil, err
	}
	on := journal.Begin(run.NewID(), "")
	k := gate.PrivateGrant(p, rules, slices.Values([]string{server.Name}))
	if err := on.Append(record.RunStart{Grants: record.Grants{Servers: []string{server.Name}}, Policy: rules.Digest(), Private: k.Private, Keep: k.Keep}); err != nil && required {
		return nil, fmt.Errorf("nothing is called without a record, and this call cannot be recorded: %w", err)
	}
	o := gate.Options{Upstreams: p, Granted: map[string]bool{server.Name: true}, Policy: rules, Taint: &consent.Taint{}, Command: true, Record: on, RecordRequired: required}
	var g *gate.Gate
	defer func(start time.Time) { recordCall(on, g, time.Since(start), err) }(time.Now())
	if user.canAsk() {
		o.Asker = consent.NewQueue(consent.Options{}).Begin(consent.AskerOptions{Timeout: forever, Command: true, Stop: func(error) {}, Record: func(q consent.Question) { _ = g.RecordAsk(q) }})
		defer o.Asker.End()
		done := make(chan struct{})
		defer close(done)
		go func() {
			defer contain.Recover("asking at the terminal", func(error) { o.Asker.End() })
			o.Asker.AnswerWith(ctx, done, user.ask)
		}()
	}
	g = gate.New(o)
	answer, err = g.Do(ctx, r)
	if ask, ok := errors.AsType[*policy.Ask](err); ok && o.Asker == nil {
		return nil, fmt.Errorf("%w; on a terminal toolcell asks for it", ask)
	}
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if errors.Is(err, consent.ErrDenied) {
		return nil, fmt.Errorf("calling %q of server %q was not allowed by you", r.Name, server.Name)
	}
	return answer, err
}

// recordCall records how a call from the command line ended.
func recordCall(on *record.Run, g *gate.Gate, took time.Duration, err error) {
	end := record.RunEnd{Status: run.StatusSuccess, Duration: took.Microseconds()}
	end.Private, end.Keep = g.Keeping().Private, g.Keeping().Keep
	end.Effects, end.Calls = g.Recorded()
	if err != nil {
		end.Status, end.Error, end.Own = run.StatusError, record.TextOf(err.Error()), !mcpproxy.SaidByServer(err)
	}
	_ = on.Append(end)
}

// forever is how long a command waits for an answer at its terminal.
const forever = 365 * 24 * time.Hour

// A calledTool is the one row of servers call.
type calledTool struct {
	Server      string            `json:"server"`
	Tool        string            `json:"tool"`
	Value       json.RawMessage   `json:"value,omitempty"`
	Attachments []json.RawMessage `json:"attachments,omitempty"` // content beside a structured value
	Answer      json.RawMessage   `json:"answer,omitempty"`      // with --raw, instead of the value
	Error       string            `json:"error,omitempty"`       // of the tool
}

// printAnswer prints an answer in the form that the command line asks for.
func (o serversCallOptions) printAnswer(answer json.RawMessage, value toolvalue.Value, failed *toolvalue.ToolError) error {
	row := calledTool{Server: o.Args[0], Tool: o.Args[1]}
	if failed != nil {
		row.Error = failed.Text
	}
	switch {
	case o.JSON && o.Raw:
		row.Answer = answer
		return console.PrintJSON(o.Streams, []calledTool{row})
	case o.JSON:
		row.Value, row.Attachments = value.JSON, value.Attachments
		return console.PrintJSON(o.Streams, []calledTool{row})
	case o.Raw:
		return printIndented(o.Streams, answer)
	case failed != nil:
		return nil // it is on standard error
	case o.File != "":
		return writeAnswer(o.Streams, o.File, value)
	}
	for _, a := range value.Attachments {
		if what := described(a); what != "" {
			console.Note(o.Err, "the answer also has "+what+"; --out FILE keeps it")
		} else {
			console.Note(o.Err, "the answer also has other content; --raw prints it")
		}
	}
	if text, isText := value.Text(); isText {
		_, err := fmt.Fprintln(o.Out, console.Filtered(o.Out, text))
		return err
	}
	if described(value.JSON) != "" {
		_, err := fmt.Fprintln(o.Out, placeholderOf(value.JSON))
		return err
	}
	return printIndented(o.Streams, seenValue(value.JSON))
}

func printIndented(s *console.Streams, value json.RawMessage) error {
	text, err := indented(value)
	if err == nil {
		_, err = fmt.Fprintln(s.Out, console.Filtered(s.Out, text))
	}
	return err
}

func indented(value json.RawMessage) (string, error) {
	var out bytes.Buffer
	if err := json.Indent(&out, value, "", "  "); err != nil {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	return out.String(), nil
}

// A dataContent is content of an answer that is data: a picture, a sound, a file.
type dataContent struct {
	Type, MimeType, Data, Blob, URI string
}

// dataOf returns a value as such content, if it is.
func dataOf(value json.RawMessage) (c dataContent, ok bool) {
	if members, err := rawjson.Members(value); err != nil || len(members) == 0 || json.Unmarshal(value, &c) != nil {
		return c, false
	}
	return c, c.Data+c.Blob != "" && c.MimeType != ""
}

// described returns the kind and size of a picture, a sound or a file, "" of other values.
func described(value json.RawMessage) string {
	c, ok := dataOf(value)
	if !ok {
		return ""
	}
	return text.Printable(c.MimeType, 60) + " of " + text.Size(int64(len(c.Data+c.Blob)*3/4))
}

// seenValue returns a value to print. A list's pictures, sounds and files are replaced by
// their kinds and sizes: their base64 would fill screens.
func seenValue(value json.RawMessage) json.RawMessage {
	items, err := rawjson.Items(value)
	if err != nil || !slices.ContainsFunc(items, func(i json.RawMessage) bool { return described(i) != "" }) {
		return value
	}
	seen := make([][]byte, len(items))
	for n, item := range items {
		if seen[n] = item; described(item) != "" {
			seen[n], _ = jsontext.AppendQuote(nil, placeholderOf(item)) // which is UTF-8
		}
	}
	return slices.Concat([]byte("["), bytes.Join(seen, []byte(",")), []byte("]"))
}

func placeholderOf(value json.RawMessage) string {
	return "<" + described(value) + "; --out FILE keeps it>"
}

// writeAnswer writes the data of an answer to a file, and further data to files beside it. An
// answer without data is written as it would be printed. It prints the names of the files.
func writeAnswer(s *console.Streams, file string, value toolvalue.Value) error {
	all := slices.Concat([]json.RawMessage{value.JSON}, value.Attachments)
	if items, err := rawjson.Items(value.JSON); err == nil {
		all = slices.Concat(items, value.Attachments)
	}
	n := 0
	for _, one := range all {
		c, ok := dataOf(one)
		if !ok {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(c.Data + c.Blob)
		if err != nil {
			return fmt.Errorf("the answer's %s is not base64: %w", text.Printable(c.MimeType, 60), err)
		}
		n++
		if err := writeOut(s, numbered(file, n), data, described(one)); err != nil {
			return err
		}
	}
	if n > 0 {
		return nil
	}
	body, isText := value.Text()
	if !isText {
		var err error
		if body, err = indented(value.JSON); err != nil {
			return err
		}
	}
	return writeOut(s, file, []byte(strings.TrimSuffix(body, "\n")+"\n"), "")
}

// numbered returns the name of the nth file: a.png, a-2.png.
func numbered(file string, n int) string {
	if n == 1 {
		return file
	}
	ext := filepath.Ext(file)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(file, ext), n, ext)
}

func writeOut(s *console.Streams, file string, data []byte, what string) error {
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return fmt.Errorf("cannot write %s: %s", file, state.Reason(err))
	}
	console.Plainly(s.Err, "wrote "+file+" ("+cmp.Or(what, text.Size(int64(len(data))))+")")
	return nil
}
