package bridge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/consent"
)

func TestOnlyOneKnownChoiceIsAnAnswer(t *testing.T) {
	q := &consent.Question{Calls: []consent.Call{{Server: "bank", Tool: "transfer", Once: true}}}
	accept := func(content map[string]any) *mcp.ElicitResult {
		return &mcp.ElicitResult{Action: "accept", Content: content}
	}
	for name, res := range map[string]*mcp.ElicitResult{
		"nothing":               nil,
		"no content":            accept(nil),
		"cancelled":             {Action: "cancel"},
		"cancelled with yes":    {Action: "cancel", Content: map[string]any{"choice": "call"}},
		"no action":             {Content: map[string]any{"choice": "call"}},
		"unknown":               accept(map[string]any{"choice": "yes"}),
		"other case":            accept(map[string]any{"choice": "Call"}),
		"not offered":           accept(map[string]any{"choice": "run"}),
		"a list":                accept(map[string]any{"choice": []any{"call"}}),
		"true":                  accept(map[string]any{"choice": true}),
		"two values":            accept(map[string]any{"choice": "call", "more": 1}),
		"two texts":             accept(map[string]any{"choice": "call", "more": ""}),
		"no, and another value": accept(map[string]any{"choice": "deny", "more": 1}),
		"optional fields alone": accept(map[string]any{"because": "", "calls": ""}),
		"under another name":    accept(map[string]any{"approve": "call"}),
		"an action of ours":     {Action: "approve", Content: map[string]any{"choice": "call"}},
		"the title of a choice": accept(map[string]any{"choice": q.Title(consent.ForCall)}),
	} {
		if a, ok := answerOf(q, res); ok {
			t.Errorf("%s: taken for %+v", name, a)
		}
	}
	for res, want := range map[*mcp.ElicitResult]consent.Choice{
		accept(map[string]any{"choice": "call"}): consent.ForCall,
		accept(map[string]any{"choice": "stop"}): consent.Stop,
		accept(map[string]any{"choice": "deny"}): consent.Deny,
		{Action: "decline"}:                      consent.Deny,
	} {
		if a, ok := answerOf(q, res); !ok || a.Choice != want {
			t.Errorf("%+v: %+v, %v", res, a, ok)
		}
	}
}

// TestTheFirstChoiceOfAFormAllowsNothing: clients highlight it, and Enter may take it.
func TestTheFirstChoiceOfAFormAllowsNothing(t *testing.T) {
	call := consent.Call{Server: "bank", Tool: "transfer", Arguments: json.RawMessage(`{}`)}
	hint := call
	hint.Hint = "d"
	for _, q := range []*consent.Question{{Subject: "packages"}, {Calls: []consent.Call{call}}, {Calls: []consent.Call{hint}}, {Calls: []consent.Call{call, call}}, {Calls: []consent.Call{call}, Command: true}} {
		for _, titled := range []bool{true, false} {
			var schema struct {
				Properties struct {
					Choice struct {
						OneOf           []titledChoice
						Enum, EnumNames []string
						Default         any
					}
				}
			}
			if err := json.Unmarshal(display{titled: titled}.schema(q), &schema); err != nil {
				t.Fatal(err)
			}
			choice := schema.Properties.Choice
			var offered []consent.Choice
			for i, value := range choice.Enum {
				choice.OneOf = append(choice.OneOf, titledChoice{value, choice.EnumNames[i]})
			}
			for _, c := range choice.OneOf {
				offered = append(offered, consent.Choice(c.Const))
				if c.Title != q.Title(consent.Choice(c.Const)) {
					t.Errorf("%s has the title %q", c.Const, c.Title)
				}
			}
			if offered[0] != consent.Deny || choice.Default != nil {
				t.Errorf("the form offers %v, with the default %v", offered, choice.Default)
			}
			if all := q.Choices(); !slices.Equal(slices.Sorted(slices.Values(offered)), slices.Sorted(slices.Values(all))) {
				t.Errorf("the form offers %v, want %v", offered, all)
			}
		}
	}
}

// TestNothingButAValidChoiceApproves: all choices with all that a client may send in the optional fields.
func TestNothingButAValidChoiceApproves(t *testing.T) {
	const absent = "absent"
	calls := []consent.Call{{Server: "bank", Tool: "transfer", Arguments: []byte("{}")}, {Server: "bank", Tool: "transfer", Arguments: []byte("{}")}, {Server: "bank", Tool: "transfer", Arguments: []byte("{}")}}
	numbers := map[any][]int{ // nil: it does not name a part
		absent: nil, nil: nil, "": nil, " ": nil, "1-3": nil,
		"2": {2}, "1, 3": {1, 3}, "3,1": {1, 3},
	}
	wrongNumbers := []any{true, 2.0, "0", "4", "2 3", "all", "1\x00", "-", strings.Repeat("1,", 1<<19)}
	reasons := map[any]string{absent: "", nil: "", "": "", " \n": "", "\x1b[2J": "", "use the test account": "use the test account"}
	wrongReasons := []any{false, 1.0, strings.Repeat("x", consent.MaxBecause+1), strings.Repeat("\x00", 1<<20)}
	for _, several := range []bool{false, true} {
		q := &consent.Question{Calls: calls[:1]}
		if several {
			q.Calls = calls
		}
		for _, choice := range []any{"call", "run", "reads", "deny", "stop", "yes", "", nil, true} {
			for _, number := range append(slices.Collect(maps.Keys(numbers)), wrongNumbers...) {
				for _, reason := range append(slices.Collect(maps.Keys(reasons)), wrongReasons...) {
					content := map[string]any{"choice": choice}
					if number != absent {
						content["calls"] = number
					}
					if reason != absent {
						content["because"] = reason
					}
					part, validNumbers := numbers[number]
					because, validReason := reasons[reason]
					blank := number == absent || number == nil || number == "" || number == " "
					validNumbers = validNumbers && (blank || several)
					var want consent.Answer
					switch {
					case choice == "deny" || choice == "stop": // it counts, without what is wrong
						want = consent.Answer{Choice: consent.Choice(choice.(string)), Because: because}
					case choice == "call" && validNumbers && validReason && (because == "" || part != nil):
						want = consent.Answer{Choice: consent.ForCall, Calls: part, Because: because}
					case choice == "run" && blank && validReason && because == "":
						want = consent.Answer{Choice: consent.ForRun}
					}
					a, ok := answerOf(q, &mcp.ElicitResult{Action: "accept", Content: content})
					if ok != (want.Choice != "") || ok && (a.Choice != want.Choice || !slices.Equal(a.Calls, want.Calls) || a.Because != want.Because || a.By != "form") {
						t.Errorf("%d calls, %.100q: %+v, %t, want %+v", len(q.Calls), fmt.Sprint(content), a, ok, want)
					}
				}
			}
		}
	}
	packages := &consent.Question{Subject: "packages"}
	for choice, want := range map[string]bool{"call": true, "deny": true, "run": false, "stop": false} {
		if a, ok := answerOf(packages, &mcp.ElicitResult{Action: "accept", Content: map[string]any{"choice": choice, "because": ""}}); ok != want {
			t.Errorf("packages, %s: %+v, %t", choice, a, ok)
		}
	}
	declined := &mcp.ElicitResult{Action: "decline", Content: map[string]any{"choice": "call", "because": "x"}}
	if a, ok := answerOf(&consent.Question{Calls: calls}, declined); !ok || a.Choice != consent.Deny || a.Because != "" || a.Calls != nil {
		t.Errorf("declined: %+v, %t", a, ok)
	}
}

// TestFieldsOfAForm stand in the order in which they are decided; numbers are there for several calls.
func TestFieldsOfAForm(t *testing.T) {
	call := consent.Call{Server: "bank", Tool: "transfer", Arguments: []byte("{}")}
	for q, want := range map[*consent.Question]string{
		{Subject: "packages"}:                            "choice,because",
		{Calls: []consent.Call{call}}:                    "choice,because",
		{Calls: []consent.Call{call, call}}:              "choice,calls,because",
		{Calls: slices.Repeat([]consent.Call{call}, 12)}: "choice,calls,because",
	} {
		for _, c := range []display{{}, {titled: true}} {
			schema := string(c.schema(q))
			var at []int
			for name := range strings.SplitSeq(want, ",") {
				at = append(at, strings.Index(schema, `"`+name+`":{`))
			}
			if slices.Contains(at, -1) || !slices.IsSorted(at) || strings.Contains(schema, `"calls"`) != strings.Contains(want, "calls") ||
				!strings.Contains(schema, `"required":["choice"]`) || !strings.Contains(schema, `"maxLength":500`) {
				t.Errorf("want %s in %s", want, schema)
			}
		}
	}
}

func TestOnlyFormsThatTheClientShows(t *testing.T) {
	approval := &consent.Question{Calls: []consent.Call{{}}}
	address := &consent.Question{Form: &consent.Form{URL: "https://example.com"}}
	for name, tt := range map[string]struct {
		e         *mcp.ElicitationCapabilities
		form, url bool
	}{
		"none":     {nil, false, false},
		"empty":    {&mcp.ElicitationCapabilities{}, true, false},
		"url only": {&mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}, false, true},
		"both":     {&mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}, true, true},
	} {
		call := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Meta: mcp.Meta{
			mcp.MetaKeyProtocolVersion: "2026-07-28", mcp.MetaKeyClientCapabilities: map[string]any{"elicitation": tt.e},
		}}}
		c := displayOf(call)
		if c.canShow(approval) != tt.form || c.canShow(address) != tt.url || !c.multiRound {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
