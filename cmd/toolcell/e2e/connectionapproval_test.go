package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// creating is code that creates an issue, and prints its title.
func creating(title string) string {
	return fmt.Sprintf("r = await mcp_github.create_issue(title=%q)\nprint(r.title)", title)
}

// TestAnApprovalLastsAsLongAsTheConnection: the user gives it in a form, and takes it back in a terminal.
func TestAnApprovalLastsAsLongAsTheConnection(t *testing.T) {
	h := firstHost(t)
	for _, era := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(era, func(t *testing.T) {
			e := asks(t, "[servers.github]\nask = 'writes'", nil)
			choice := "connection"
			p := &formUser{answer: func(int) *mcp.ElicitResult { return choose(choice) }}
			serve := func() *client {
				return connectAs(t, h.command(t, e, "serve"), &mcp.ClientOptions{ElicitationHandler: p.elicit}, eras[era])
			}
			do := func(c *client, title string, asked int) {
				t.Helper()
				c.python(t, creating(title), "github").want(t, title)
				if n := len(p.forms()); n != asked {
					t.Errorf("%s: asked %d times, want %d", title, n, asked)
				}
			}
			c := serve()
			do(c, "one", 1)
			schema, _ := json.Marshal(p.forms()[0].RequestedSchema)
			if !strings.Contains(string(schema), `"Allow this tool until this client disconnects"`) || !strings.Contains(string(schema), `with exactly these arguments"`) || strings.Contains(string(schema), "only reads") {
				t.Errorf("the form is %s", schema)
			}
			do(c, "two", 1)
			choice = "call"
			do(serve(), "of another client", 2)

			id := ""
			for _, q := range questions(t, h, e) {
				if q.Choice == "connection" && q.Holds {
					id = q.ID
				}
			}
			if out, _, _ := h.run(t, e, "approvals"); !strings.Contains(out, id+"  allowed for this connection") {
				t.Errorf("the list is\n%s", out)
			}
			if lines := h.recorded(t, `"question":"`+id+`"`); len(lines) != 3 || !strings.Contains(lines[1], `"scope":"connection"`) || !strings.Contains(lines[2], `"kind":"call.start"`) {
				t.Errorf("on record: %q", lines)
			}
			if out, errs, code := h.run(t, e, "approvals", "deny", id, "--revoke"); code != 0 || !strings.Contains(out, "revoked: "+id) {
				t.Fatalf("exit %d, %s%s", code, out, errs)
			}
			if lines := h.recorded(t, `"question":"`+id+`"`); len(lines) != 4 || !strings.Contains(lines[3]+lines[2], `"state":"revoked"`) {
				t.Errorf("on record after that: %q", lines)
			}
			do(c, "three", 3)
			if _, errs, code := h.run(t, e, "approvals", "deny", id, "--revoke"); code != exitFail || !strings.Contains(errs, "does not allow anything now") {
				t.Errorf("again: exit %d, %s", code, errs)
			}
		})
	}
}

// TestApprovalsAllowForTheConnection in a terminal: exactly the arguments that were shown.
func TestApprovalsAllowForTheConnection(t *testing.T) {
	h, e := asking(t)
	c := h.serve(t, e)
	if r := c.python(t, creating("one"), "github"); r.status() != "approval_needed" {
		t.Fatalf("%s: %s", r.status(), r.text)
	}
	q := questions(t, h, e)[0]
	p := inOtherTerminal(t, h.command(t, e, "approvals", "approve", q.ID, "--for", "connection-reads"))
	p.sees("cannot be approved for")
	if code := p.exits(); code != exitFail {
		t.Errorf("what is not offered: exit %d", code)
	}
	p = inOtherTerminal(t, h.command(t, e, "approvals", "approve", q.ID, "--for", "connection-same"))
	p.sees("To allow this call until the client disconnects, with exactly these arguments, type ")
	p.enters(p.sees(":")+"\r", "allowed for this connection: "+q.ID)
	if code := p.exits(); code != 0 {
		t.Errorf("exit %d", code)
	}
	c.call(t, map[string]any{"code": "", "session": q.ID}).want(t, "one")
	c.python(t, creating("one"), "github").want(t, "one")
	if out, _, _ := h.run(t, e, "approvals", "show", q.ID); !strings.Contains(out, "state: allowed for this connection: this call until the client disconnects, with exactly these arguments\n") {
		t.Errorf("show: %s", out)
	}
	if r := c.python(t, creating("two"), "github"); r.status() != "approval_needed" {
		t.Errorf("other arguments: %s: %s", r.status(), r.text)
	}
	if out, errs, code := h.run(t, e, "approvals", "approve", q.ID, "--revoke"); code != 0 || !strings.Contains(out, "revoked: "+q.ID) {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	if r := c.python(t, creating("one"), "github"); r.status() != "approval_needed" {
		t.Errorf("after it was revoked: %s: %s", r.status(), r.text)
	}
}
