package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
)

// typing returns a readLine that gives lines, and then the end of the input, and what
// was shown.
func typing(lines ...string) (read readLine, shown *strings.Builder) {
	shown = &strings.Builder{}
	return func(_ context.Context, mark string) (string, error) {
		shown.WriteString(mark)
		if len(lines) == 0 {
			return "", io.EOF
		}
		line := lines[0]
		lines = lines[1:]
		return line, nil
	}, shown
}

func asked(args string, once bool) *consent.Question {
	return &consent.Question{
		ID: "ask-X", ExpiresAt: time.Now().Add(time.Hour),
		Calls: []consent.Call{{Server: "bank", Tool: "transfer", Arguments: json.RawMessage(args), Once: once, Reasons: []string{"because"}}},
	}
}

func TestAnswersAtTheTerminal(t *testing.T) {
	packages := &consent.Question{Subject: "the package pandas", ExpiresAt: time.Now().Add(time.Hour)}
	command := &consent.Question{Command: true, Calls: asked("{}", false).Calls}
	for name, c := range map[string]struct {
		q     *consent.Question
		typed []string
		want  consent.Choice
	}{
		"yes":                        {asked("{}", false), []string{"y"}, consent.ForCall},
		"capital with space":         {asked("{}", false), []string{" Y "}, consent.ForCall},
		"for the run":                {asked("{}", false), []string{"r"}, consent.ForRun},
		"no":                         {asked("{}", false), []string{"n"}, consent.Deny},
		"stop":                       {asked("{}", false), []string{"s"}, consent.Stop},
		"Enter is no answer":         {asked("{}", false), []string{"", "", "y"}, consent.ForCall},
		"a word is no answer":        {asked("{}", false), []string{"yes", "ok", "n"}, consent.Deny},
		"only Enter":                 {asked("{}", false), make([]string, 100), consent.Stop},
		"the end of the input":       {asked("{}", false), nil, consent.Stop},
		"run is not offered":         {asked("{}", true), []string{"r", "n"}, consent.Deny},
		"all arguments":              {asked(`"`+strings.Repeat("x", 5000)+`"`, false), []string{"a", "y"}, consent.ForCall},
		"a command":                  {command, []string{"s", "r", "", "y"}, consent.ForCall},
		"a command, no":              {command, []string{"n"}, consent.Deny},
		"a command, nothing":         {command, nil, consent.Deny},
		"packages":                   {packages, []string{"y"}, consent.ForCall},
		"packages cannot be stopped": {packages, []string{"s", "r"}, consent.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			read, _ := typing(c.typed...)
			var out strings.Builder
			if got := askQuestion(t.Context(), c.q, &out, read); got.Choice != c.want || got.By != "terminal" {
				t.Errorf("%+v", got)
			}
			if all := strings.Contains(out.String(), strings.Repeat("x", 5000)); all != (name == "all arguments") {
				t.Errorf("all arguments are shown: %t\n%s", all, out.String())
			}
		})
	}
}

// TestWordsAndNumbersAtTheTerminal: a reason behind the letter of a denial, and which of several calls.
func TestWordsAndNumbersAtTheTerminal(t *testing.T) {
	long := "n " + strings.Repeat("x", consent.MaxBecause+1)
	for name, c := range map[string]struct {
		calls int
		typed []string
		want  consent.Answer
		shown string
	}{
		"no, with a reason":              {1, []string{" N  Use the test account "}, consent.Answer{Choice: consent.Deny, Because: "Use the test account"}, ""},
		"no, with what a terminal obeys": {1, []string{"n a\x1b[2J\x00b\u202e"}, consent.Answer{Choice: consent.Deny, Because: "ab"}, ""},
		"no, and blanks":                 {1, []string{"n  "}, consent.Answer{Choice: consent.Deny}, ""},
		"a reason that is too long":      {1, []string{long, "n x"}, consent.Answer{Choice: consent.Deny, Because: "x"}, "  the reason has 501 characters, of at most 500\n"},
		"a reason of a MiB":              {1, []string{"n " + strings.Repeat("x", 1<<20), "n"}, consent.Answer{Choice: consent.Deny}, "500 characters\n"},
		"other letters have no words":    {1, []string{"y es", "y please", "r x", "s x", "no", "n"}, consent.Answer{Choice: consent.Deny}, ""},
		"numbers of one call":            {1, []string{"1", "y"}, consent.Answer{Choice: consent.ForCall}, ""},
		"some calls":                     {5, []string{"1, 3-5"}, consent.Answer{Choice: consent.ForCall, Calls: []int{1, 3, 4, 5}}, "  numbers, such as 1,3-5: allow only these calls, and deny the others\n"},
		"numbers that are none":          {3, []string{"4", "1 2", "1,", "2"}, consent.Answer{Choice: consent.ForCall, Calls: []int{2}}, "  \"4\" does not name calls of this question: give numbers from 1 to 3, such as 1,3\n"},
		"calls that are not shown":       {12, []string{"11", "10"}, consent.Answer{Choice: consent.ForCall, Calls: []int{10}}, "from 1 to 10"},
	} {
		t.Run(name, func(t *testing.T) {
			q := asked("{}", false)
			q.Calls = slices.Repeat(q.Calls, c.calls)
			read, marks := typing(c.typed...)
			var out strings.Builder
			got := askQuestion(t.Context(), q, &out, read)
			c.want.By = "terminal"
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if !strings.Contains(out.String(), c.shown) || strings.Contains(marks.String(), " or numbers]: ") != (c.calls > 1) || strings.ContainsAny(out.String(), "\x1b\x00") {
				t.Errorf("%s%s", out.String(), marks)
			}
		})
	}
}

func TestAQuestionAtTheTerminalSaysWhatCanBeTyped(t *testing.T) {
	read, marks := typing("n")
	var out strings.Builder
	askQuestion(t.Context(), asked(`{"to":"\u001b[2J"}`, false), &out, read)
	for _, want := range []string{"server: \"bank\", tool: ", "\\u001b[2J", "  y  Allow this call\n", "  r  Allow this tool for the rest of this run\n", "  n  Do not allow it; n REASON also tells the code why\n", "  s  "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if marks.String() != "Your answer [y/r/n/s]: " {
		t.Error(marks)
	}
}

func TestCtrlCStopsTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	read := func(ctx context.Context, _ string) (string, error) {
		cancel()
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	if got := askQuestion(ctx, asked("{}", false), io.Discard, read); got.Choice != consent.Stop {
		t.Errorf("%+v", got)
	}
}

// TestAnExpiredQuestionWaitsForNoLine: the run goes on to its end.
func TestAnExpiredQuestionWaitsForNoLine(t *testing.T) {
	q := asked("{}", false)
	q.ExpiresAt = time.Now()
	read := func(ctx context.Context, _ string) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	if got := askQuestion(t.Context(), q, io.Discard, read); got.Choice != consent.Stop {
		t.Errorf("%+v", got)
	}
}

func TestFormsAtTheTerminal(t *testing.T) {
	const schema = `{"type":"object","properties":{
		"name":{"type":"string","title":"Your \u001b[2Jname"},
		"age":{"type":"integer"},"rate":{"type":"number","default":1.5},"sure":{"type":"boolean"},
		"color":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]},
		"sizes":{"type":"array","items":{"enum":["S","M","L"]}},
		"left":{"type":"string","enum":["a"]}},"required":["name","gone"]}`
	for name, c := range map[string]struct {
		form    consent.Form
		typed   []string
		action  string
		content map[string]any
	}{
		"filled in": {
			consent.Form{Schema: json.RawMessage(schema)},
			[]string{"y", "Ada", "x", "7", "3", "2", "", "", "1,3", "yes"},
			"accept",
			map[string]any{"name": "Ada", "age": int64(7), "color": "g", "rate": json.RawMessage("1.5"), "sizes": []string{"S", "L"}, "sure": true},
		},
		"numbers keep their digits": {
			consent.Form{Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"integer","default":9007199254740993},"c":{"type":"number"}}}`)},
			[]string{"y", "9007199254740993", "", "null", "nan", "\"1\"", "-0.10"},
			"accept",
			map[string]any{"a": json.Number("9007199254740993"), "b": json.RawMessage("9007199254740993"), "c": json.Number("-0.10")},
		},
		"declined":            {consent.Form{Schema: json.RawMessage(schema)}, []string{"", "n"}, "decline", nil},
		"canceled":            {consent.Form{Schema: json.RawMessage(schema)}, []string{"s"}, "cancel", nil},
		"ended in the middle": {consent.Form{Schema: json.RawMessage(schema)}, []string{"y", "Ada"}, "", nil},
		"ended before it":     {consent.Form{Schema: json.RawMessage(schema)}, []string{""}, "", nil},
		"no fitting answers":  {consent.Form{Schema: json.RawMessage(schema)}, append([]string{"y", "Ada"}, slices.Repeat([]string{"x"}, maxTries)...), "cancel", nil},
		"a required field":    {consent.Form{Schema: json.RawMessage(schema)}, append([]string{"y"}, make([]string, 3)...), "", nil},
		"no schema":           {consent.Form{Schema: json.RawMessage(`[`)}, []string{"y"}, "decline", nil},
		"an address":          {consent.Form{URL: "https://login.example/\x1b[2J"}, []string{"y"}, "accept", map[string]any{}},
		"an address, no":      {consent.Form{URL: "https://login.example/"}, []string{"n"}, "decline", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.form.Server, c.form.Message = "bank", "please"
			q := &consent.Question{Form: &c.form, ExpiresAt: time.Now().Add(time.Hour)}
			read, marks := typing(c.typed...)
			var out strings.Builder
			got := askQuestion(t.Context(), q, &out, read)
			if (got.Choice == consent.Stop) != (c.action == "") || got.Action != c.action || !reflect.DeepEqual(got.Content, c.content) {
				t.Errorf("%+v after\n%s%s", got, out.String(), marks)
			}
			if strings.Contains(out.String()+marks.String(), "\x1b") || !strings.Contains(out.String(), `The MCP server "bank" asks, not toolcell:`) {
				t.Errorf("%q", out.String())
			}
		})
	}
}

// TestInputAndQuestionsTakeTurns: a line is for one of them.
func TestInputAndQuestionsTakeTurns(t *testing.T) {
	a := newTerminalAsker(nil, nil)
	release := a.take(t.Context())
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("over"))
	a.take(ctx)() // ends with its context, and gives back nothing
	if len(a.turn) != 1 {
		t.Error("the turn was given back by another")
	}
	release()
	a.take(t.Context())()
}
