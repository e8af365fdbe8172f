package edit

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// TestServersThatStaySayWhy in words that tell what to do about it.
func TestServersThatStaySayWhy(t *testing.T) {
	for name, tt := range map[string]struct{ client, text, want string }{
		"its name is another's": {"gemini", `{"mcpServers": {"taken": {"command": "x"}}}`, "another server has this name in "},
		"it cannot be read":     {"gemini", `{"mcpServers": {"a": {"command": 1}}}`, "it cannot be used from here: "},
		"its environment file":  {"vscode", `{"servers": {"a": {"command": "x", "envFile": "b.env"}}}`, "it depends on where its file is; write whole paths"},
		"a file that is gone":   {"vscode", `{"servers": {"a": {"command": "x", "envFile": "c.env"}}}`, "it depends on where its file is: "},
		"in braces":             {"goose", "extensions: {a: {cmd: x}}\n", "in braces"},
		"switched off by a list": {
			"gemini", `{"mcp": {"excluded": ["a"]}, "mcpServers": {"a": {"command": "x"}}}`, "it is switched off outside of its entry",
		},
		"of one directory":     {"claude-code", `{"projects": {"/p": {"mcpServers": {"a": {"command": 1}}}}}`, "in /p: it cannot be used from here: "},
		"switched off in one":  {"claude-code", `{"mcpServers": {"a": {"command": "x"}}, "projects": {"/p": {"disabledMcpServers": ["a"]}}}`, "it is switched off in /p"},
		"a name that is twice": {"claude-code", `{"projects": {"/p": {"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}}}`, "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := TargetOf(mcptest.Site(t, map[string]string{
				"home/.cursor/mcp.json":               `{"mcpServers": {"taken": {"command": "another"}}}`,
				"home/.config/Code/User/b.env":        "A=b",
				"home/.config/Code/User/c.env":        "A=b",
				"home/.config/toolcell/servers/b.env": "A=c",
			}), tt.client, false)
			if err != nil {
				t.Fatal(err)
			}
			move, err := p.PlanMove([]byte(tt.text), nil)
			if err != nil || len(move.Servers) != 0 || len(move.Stay) == 0 {
				t.Fatalf("%+v, %v", move, err)
			}
			mcptest.WantError(t, errors.New(move.Stay[0].Reason), tt.want)
		})
	}
}

// TestServersThatMoveNameTheirVariables once each, without those that the client asks for, and
// those that are switched off are not tried.
func TestServersThatMoveNameTheirVariables(t *testing.T) {
	p := targetOf(t, "vscode")
	const text = `{"inputs": [{"id": "key"}], "servers": {
		"a": {"command": "x", "env": {"A": "${env:TOKEN}", "B": "${env:TOKEN}", "C": "${input:key}", "D": "${env:DIR}"}},
		"b": {"command": "./relative", "disabled": true}}}`
	move, err := p.PlanMove([]byte(text), map[string]string{"key": "v"})
	if err != nil || len(move.Servers) != 2 {
		t.Fatalf("%+v, %v", move, err)
	}
	if a := move.Servers[0]; !slices.Equal(a.Variables, []string{"TOKEN", "DIR"}) || a.Disabled {
		t.Errorf("%+v", a)
	}
	if b := move.Servers[1]; !b.Disabled || b.Name != "b" {
		t.Errorf("%+v", b)
	}
	const inProject = `{"mcpServers": {"a": {"command": "${workspaceFolder}/x"}}}`
	if move, err := targetOf(t, "cursor").PlanMove([]byte(inProject), nil); err != nil || len(move.Servers) != 1 {
		t.Errorf("the folder of the project is known from both places: %+v, %v", move, err)
	}
	var record Record
	record.AddMoved(move)
	if !slices.Equal(record.Moved, []string{"a", "b"}) || record.Local != nil {
		t.Errorf("the record is %+v", record)
	}
	if got := record.ByDir(); !maps.EqualFunc(got, move.ByDir(), slices.Equal) {
		t.Errorf("by directory: %v", got)
	}
	if got := (Record{}).ByDir(); len(got) != 0 {
		t.Errorf("none were moved: %v", got)
	}
	if _, err := p.PlanMove([]byte(`{"servers": `), nil); err == nil {
		t.Error("a broken file has servers")
	}
}

// TestServerThatIsSwitchedOffMoves whatever name it has: it owns none in other clients' files.
func TestServerThatIsSwitchedOffMoves(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"home/.cursor/mcp.json": `{"mcpServers": {"taken": {"command": "another"}}}`})
	p, err := TargetOf(o, "windsurf", false)
	if err != nil {
		t.Fatal(err)
	}
	move, err := p.PlanMove([]byte(`{"mcpServers": {"taken": {"command": "x", "disabled": true}}}`), nil)
	if err != nil || len(move.Servers) != 1 || !move.Servers[0].Disabled {
		t.Errorf("%+v, %v", move, err)
	}
}

// TestMoveThatCannotBeMade says which file or server it is, and returns no text to write.
func TestMoveThatCannotBeMade(t *testing.T) {
	p := targetOf(t, "cursor")
	const one, none, broken = `{"mcpServers": {"a": {"command": "x"}}}`, `{"mcpServers": {}}`, `{"mcpServers": `
	for name, tt := range map[string]struct {
		move                func(data, moved []byte, byDir map[string][]string) ([]byte, []byte, error)
		client, other, want string
	}{
		"out of a broken file":     {p.MoveOut, broken, ``, "is not JSON"},
		"into a broken file":       {p.MoveOut, one, broken, p.MovedFile() + ": is not JSON"},
		"one that is not there":    {p.MoveOut, none, ``, `moving "a": "a" is not there`},
		"one that is there too":    {p.MoveOut, one, one, `moving "a": "a" is there already`},
		"back into a broken file":  {p.MoveBack, broken, one, "is not JSON"},
		"back out of a broken one": {p.MoveBack, none, broken, p.MovedFile() + ": is not JSON"},
		"back into a list":         {p.MoveBack, `{"mcpServers": []}`, one, `moving "a" back: "mcpServers" is not an object`},
	} {
		rest, other, err := tt.move([]byte(tt.client), []byte(tt.other), map[string][]string{"": {"a"}})
		if rest != nil || other != nil {
			t.Errorf("%s: got %s and %s", name, rest, other)
		}
		t.Run(name, func(t *testing.T) { mcptest.WantError(t, err, tt.want) })
	}
}

// TestMoveBackKeepsWhatTheUserDid: a server that the client has again stays as it is there, and
// one that was taken out of either file is not missed.
func TestMoveBackKeepsWhatTheUserDid(t *testing.T) {
	p := targetOf(t, "cursor")
	for name, tt := range map[string]struct{ client, other, back, rest string }{
		"it is there again": {
			`{"mcpServers": {"a": {"command": "mine"}}}`, `{"mcpServers": {"a": {"command": "x"}}}`,
			`{"mcpServers": {"a": {"command": "mine"}}}`, `{"mcpServers": {}}`,
		},
		"it was taken out":   {`{"mcpServers": {}}`, `{"mcpServers": {"b": {"command": "x"}}}`, `{"mcpServers": {}}`, `{"mcpServers": {"b": {"command": "x"}}}`},
		"there is no file":   {`{"mcpServers": {}}`, "", `{"mcpServers": {}}`, ""},
		"there are no files": {"", "", "", ""},
	} {
		back, rest, err := p.MoveBack([]byte(tt.client), []byte(tt.other), map[string][]string{"": {"a"}})
		if err != nil || string(back) != tt.back || string(rest) != tt.rest {
			t.Errorf("%s: %v, got\n%s\nand\n%s", name, err, back, rest)
		}
	}
	for text, want := range map[string]bool{`{"mcpServers": {}}`: false, ``: false, `{"mcpServers": `: true, `{"mcpServers": {"a": {}}}`: true} {
		if got := p.HasServers([]byte(text)); got != want {
			t.Errorf("%q has servers: %v", text, got)
		}
	}
}

// TestInputsAreThereOnce, however often servers move.
func TestInputsAreThereOnce(t *testing.T) {
	p := targetOf(t, "vscode")
	const text = `{"inputs": [{"id": "key", "description": "new"}, {"id": "b"}], "servers": {"a": {"command": "x"}}}`
	_, moved, err := p.MoveOut([]byte(text), []byte(`{"inputs": [{"id":"key"}]}`), map[string][]string{"": {"a"}})
	if err != nil {
		t.Fatal(err)
	}
	var in struct {
		Inputs []struct{ ID, Description string }
	}
	if !decodeFile(p.MovedFile(), moved, &in) || len(in.Inputs) != 2 ||
		in.Inputs[0].ID != "key" || in.Inputs[0].Description != "" || in.Inputs[1].ID != "b" {
		t.Errorf("%+v in\n%s", in, moved)
	}
}

// TestSecretsOfLogins are not shown either, and a broken file has none.
func TestSecretsOfLogins(t *testing.T) {
	p := targetOf(t, "claude-code")
	const text = `{"mcpServers": {"a": {"type": "http", "url": "https://x",
		"headers": {"X-Key": "h3ader-v4lue"}, "oauth": {"clientId": "c", "clientSecret": "cl1ent-s3cret", "privateKey": "pr1vate-key"}}}}`
	if got := p.Secrets([]byte(text)); !slices.Equal(got, []string{"h3ader-v4lue", "cl1ent-s3cret", "pr1vate-key"}) {
		t.Errorf("got %q", got)
	}
	if got := p.Secrets([]byte(`{"mcpServers": `)); got != nil {
		t.Errorf("got %q", got)
	}
}

// TestNamesOfServersWithInputsAreTaken: behind this program the other server would be left out.
func TestNamesOfServersWithInputsAreTaken(t *testing.T) {
	const inputs = `{"inputs": [{"id": "key"}], "servers": {"a": {"command": "x", "env": {"K": "${input:key}"}}}}`
	const other = `{"mcpServers": {"a": {"command": "other"}}}`
	o := mcptest.Site(t, map[string]string{"home/.config/Code/User/mcp.json": inputs, "home/.gemini/settings.json": other})
	o.Values = func(string) map[string]string { return map[string]string{"key": "v"} }
	p, err := TargetOf(o, "gemini", false)
	if err != nil {
		t.Fatal(err)
	}
	move, err := p.PlanMove([]byte(other), nil)
	if err != nil || len(move.Servers) > 0 || len(move.Stay) != 1 ||
		move.Stay[0].Reason != "another server has this name in "+o.Home+"/.config/Code/User/mcp.json; rename one of them" {
		t.Errorf("%+v, %v", move, err)
	}
}
