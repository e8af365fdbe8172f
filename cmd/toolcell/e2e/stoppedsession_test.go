package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestASessionOutlivesWhatTheUserDoesNotAllow: a call or a host that is denied, that nobody
// answers about in time, or whose run is stopped. The variables stay, and the result says so.
func TestASessionOutlivesWhatTheUserDoesNotAllow(t *testing.T) {
	t.Parallel()
	const (
		caught = "try:\n    await mcp_github.create_issue(title='t')\nexcept Exception as e:\n    print(e)"
		thread = "import asyncio, time\nasync def main():\n    await asyncio.gather(mcp_github.create_issue(title='t'), asyncio.to_thread(time.sleep, 0.1))\nawait main()"
		child  = "import subprocess\ndef late(): subprocess.run(['/bin/sh', '-c', 'sleep 1000'])\nimport threading\nthreading.Thread(target=late, daemon=True).start()\nawait mcp_github.create_issue(title='t')"
		stays  = `session "a" goes on, with its variables`
	)
	deny, stop, expire := []string{"deny"}, []string{"deny", "--stop"}, []string(nil)
	for name, tt := range map[string]struct {
		answer []string // of toolcell approvals
		code   string
		hosts  []string
		wants  []string
	}{
		"denied":                    {deny, createsIssue, nil, []string{"denied by the user", stays}},
		"denied, and caught":        {deny, caught, nil, []string{"denied by the user"}},
		"stopped":                   {stop, createsIssue, nil, []string{"status: cancelled", "the user stopped the run", stays}},
		"stopped, and caught":       {stop, caught, nil, []string{"the user stopped the run", stays}},
		"stopped beside a thread":   {stop, thread, nil, []string{"the user stopped the run", stays}},
		"stopped beside a process":  {stop, child, nil, []string{"the user stopped the run", stays}},
		"no answer":                 {expire, createsIssue, nil, []string{"status: cancelled", "no answer came in time", stays}},
		"no answer, and caught":     {expire, caught, nil, []string{"no answer came in time", stays}},
		"a host is denied":          {deny, "print(1)", []string{"https://example.com"}, []string{"denied by the user", stays}},
		"stopped because of a host": {stop, "print(1)", []string{"https://example.com"}, []string{"the user stopped the run", stays}},
		"no answer about a host":    {expire, "print(1)", []string{"https://example.com"}, []string{"no answer came in time", stays}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := firstHost(t)
			more := env{"TOOLCELL_STATE_DIR": t.TempDir()}
			if tt.answer == nil {
				more["TOOLCELL_APPROVAL_TIMEOUT"] = "5s"
			}
			e := asks(t, "[servers.github]\nask = 'writes'\n[network]\nask = ['example.com']", more)
			c := h.serve(t, e)
			servers := append([]string{"github"}, tt.hosts...)
			c.call(t, map[string]any{"code": "kept = [1]", "session": "a", "servers": servers[:1]}).want(t, "Success (no output)")
			r := c.call(t, map[string]any{"code": "kept.append(2)\n" + tt.code, "session": "a", "servers": servers})
			id := approvalID(t, r)
			if tt.answer != nil {
				if _, errs, code := h.run(t, e, append([]string{"approvals", tt.answer[0], id}, tt.answer[1:]...)...); code != 0 {
					t.Fatal(errs)
				}
			}
			r = c.call(t, map[string]any{"code": "", "session": id})
			for _, want := range tt.wants {
				if !strings.Contains(r.text, want) {
					t.Errorf("got %s\nwant %s", r.text, want)
				}
			}
			if s := fmt.Sprint(r.fields["session"]); s != "continued" {
				t.Errorf("the session is said to be %s: %s", s, r.text)
			}
			kept := "[1, 2]"
			if tt.hosts != nil {
				kept = "[1]" // the code did not begin
			}
			c.in(t, "a", "print(kept)").want(t, kept)
		})
	}
}
