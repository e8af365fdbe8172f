//go:build products

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// asksOnce plays a model whose only call is asked.
func asksOnce(results []string) move {
	if len(results) == 0 {
		return move{tool: "run_python", args: object{"code": createOne, "servers": []string{"github"}}}
	}
	return move{text: "the-end"}
}

// TestHooksOfClaudeCodeAnswerForms: in the user's place, as docs/approvals.md warns.
func TestHooksOfClaudeCodeAnswerForms(t *testing.T) {
	for answer, want := range map[string]string{
		`{"hookEventName":"Elicitation","action":"accept","content":{"choice":"call"}}`: "by-an-agent",
		`{"hookEventName":"Elicitation","action":"accept","content":{}}`:                "approval_needed",
		`{"hookEventName":"Elicitation","action":"decline"}`:                            "denied by the user",
	} {
		t.Run(want, func(t *testing.T) {
			s := claudeCode.prepare(t, product(t, claudeCode.program), "[servers.github]\nask = 'create_*'", nil, asksOnce)
			putJSON(t, filepath.Join(s.cmd.Dir, "settings.json"), object{"hooks": object{"Elicitation": []object{
				{"hooks": []object{{"type": "command", "command": `echo '{"hookSpecificOutput":` + answer + `}'`}}},
			}}})
			s.cmd.Args = append(s.cmd.Args, "--settings", "settings.json")
			out := <-s.withoutUser(t)
			if results := s.model.seen(); len(results) != 1 || !strings.Contains(results[0], want) {
				t.Errorf("the model saw %q\n%s", results, out)
			}
		})
	}
}
