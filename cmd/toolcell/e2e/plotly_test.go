//go:build data

package e2e

import (
	"os"
	"testing"
)

// TestPlotlyIsDrawn by its own renderer, a browser, inside the sandbox.
func TestPlotlyIsDrawn(t *testing.T) {
	e := drawing.with("TOOLCELL_IMAGE", "oci:"+os.Getenv("TOOLCELL_TEST_PLOTLY"))
	inEveryWay(t, onFirstHost, func(t *testing.T, h *host) {
		c := h.serve(t, e)
		r, all := c.pictures(t, `import plotly.graph_objects as go
bars = go.Bar(x=["a", "b"], y=[1, 3], marker_color="rgb(255,0,0)")
display(go.Figure(bars, go.Layout(width=400, height=300, plot_bgcolor="white", margin={side: 0 for side in "lrtb"})))`)
		if r.isError || len(all) != 1 {
			t.Fatalf("%d pictures: %s", len(all), r.text)
		}
		// The second bar fills the right half but for a fifth, up to the top.
		if size := all[0].Bounds().Size(); size.X != 400 || size.Y != 300 {
			t.Errorf("it has %v pixels, want 400 x 300", size)
		}
		if got, above := colour(all[0], 300, 150), colour(all[0], 100, 100); got != [3]uint8{255, 0, 0} || above != [3]uint8{255, 255, 255} {
			t.Errorf("the bar is %v, want red; above the other it is %v, want white", got, above)
		}
	})
}
