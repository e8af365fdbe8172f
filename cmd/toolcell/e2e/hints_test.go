package e2e

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/hints/hintstest"
	"github.com/toolcell/toolcell/rootfs/rootfstest"
)

// TestSandboxedHintsAreThoseOfTheDocument runs the code of docs/results.md that would
// install packages and use the network, in images with pip and without.
func TestSandboxedHintsAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	h := firstHost(t)
	for _, image := range []string{"host", "oci:" + rootfstest.Layout(t, "3.14")} {
		e := h.ownState(t)
		e["TOOLCELL_IMAGE"] = image
		c := h.serve(t, e)
		for _, row := range hintstest.Table(t, "../../..", hintstest.InSandbox) {
			r := c.call(t, map[string]any{"code": row.Code, "timeout": seconds(100)})
			if hint, _ := r.fields["hint"].(string); hint != row.Hint || strings.Count(r.text, row.Hint) != 1 {
				t.Errorf("%s: %s\ngot  %s\nwant %s\nof   %s", image, row.Code, hint, row.Hint, r.text)
			}
		}
	}
}
