package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestShortPathKeepsTheIDs: newuidmap is found in the standard folders, whatever
// PATH a client passes on. Without it every sandbox would have the user's own id.
func TestShortPathKeepsTheIDs(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		isolation := func(script string) string {
			t.Helper()
			c := h.shell(t, env{"TOOLCELL_IMAGE": "host"}, script, "exec", "--json", "-c", "1")
			var errs strings.Builder
			c.Stderr = &errs
			out, err := c.Output()
			var r struct{ Status, Isolation string }
			if jsonErr := json.Unmarshal(out, &r); err != nil || jsonErr != nil || r.Status != "success" {
				t.Fatalf("%s: %v, %v\n%s%s", script, err, jsonErr, out, errs.String())
			}
			return r.Isolation
		}
		want := isolation(`exec "$@"`)
		if oneID := strings.Contains(want, "one-id"); h.name == "user" && oneID || h.name == "user-one-id" && !oneID {
			t.Errorf("on %s: isolation %q", h.name, want)
		}
		for _, script := range []string{
			`PATH=/nonexistent exec "$@"`, `PATH= exec "$@"`, `unset PATH; exec "$@"`,
			`exec /usr/bin/env -i HOME="$HOME" TOOLCELL_IMAGE=host TOOLCELL_STATE_DIR="$TOOLCELL_STATE_DIR" "$@"`,
		} {
			if got := isolation(script); got != want {
				t.Errorf("%s: isolation %q, want %q", script, got, want)
			}
		}
	})
}
