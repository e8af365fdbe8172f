package edit

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// TestLocalServersMoveForTheirDirectory: what claude mcp add put there by default
// is counted, moves, is found from the same directories alone, and comes back.
func TestLocalServersMoveForTheirDirectory(t *testing.T) {
	const text = `{
  "numStartups": 3,
  "mcpServers": {"everywhere": {"command": "e"}},
  "projects": {
    "PROJECT": {
      "allowedTools": [],
      "mcpServers": {
        "here": {"type": "stdio", "command": "h", "args": [], "env": {"KEY": "s3cret-v4lue"}},
        "same": {"command": "one"},
        "relative": {"command": "./server"},
        "switched": {"command": "x"},
        "toolcell": {"command": "toolcell", "args": ["serve"]}
      },
      "disabledMcpServers": ["switched"]
    },
    "/else/where": {"mcpServers": {"same": {"command": "two"}}},
    "/nothing": {"mcpServers": {}, "history": ["x"]}
  }
}
`
	o := mcptest.Site(t, map[string]string{"home/.claude.json": text})
	p, err := TargetOf(o, "claude-code", false)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(p.File)
	if err != nil {
		t.Fatal(err)
	}
	if _, others, err := p.Others(data); others != 5 || err != nil {
		t.Errorf("%d other servers, %v", others, err)
	}
	if secrets := p.Secrets(data); !slices.Contains(secrets, "s3cret-v4lue") {
		t.Errorf("secrets: %q", secrets)
	}
	everywhere := func() (all []map[string]string) {
		for _, dir := range []string{o.Dir, "/else/where", "/nothing"} {
			from := o
			from.Dir = dir
			all = append(all, startsOf(clientconfig.Discover(from)))
		}
		return all
	}
	before := everywhere()
	move, err := p.PlanMove(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"": {"everywhere"}, o.Dir: {"here", "same"}, "/else/where": {"same"}}
	if got := move.ByDir(); !maps.EqualFunc(got, want, slices.Equal) || len(move.Stay) != 2 {
		t.Fatalf("moving %v, staying %v", got, move.Stay)
	}
	var record Record
	record.AddMoved(move)
	rest, moved := data, []byte(nil)
	if rest, moved, err = p.MoveOut(rest, moved, record.ByDir()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(rest), "s3cret") || !strings.Contains(string(rest), "relative") || !strings.Contains(string(rest), `"numStartups": 3`) {
		t.Errorf("left is\n%s", rest)
	}
	err = errors.Join(os.WriteFile(p.File, rest, 0o600), os.MkdirAll(filepath.Dir(p.MovedFile()), 0o700), os.WriteFile(p.MovedFile(), moved, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for i, after := range everywhere() {
		if !maps.Equal(after, before[i]) {
			t.Errorf("after the move: %v\nbefore: %v", after, before[i])
		}
	}
	if !p.HasServers(moved) {
		t.Error("the file of moved servers is taken for empty")
	}
	back := rest
	if back, moved, err = p.MoveBack(back, moved, record.ByDir()); err != nil {
		t.Fatal(err)
	}
	if p.HasServers(moved) {
		t.Errorf("left at the new place: %s", moved)
	}
	if err := errors.Join(os.WriteFile(p.File, back, 0o600), os.Remove(p.MovedFile())); err != nil {
		t.Fatal(err)
	}
	for i, after := range everywhere() {
		if !maps.Equal(after, before[i]) {
			t.Errorf("after the way back: %v\nbefore: %v", after, before[i])
		}
	}
}
