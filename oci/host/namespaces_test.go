package host

import "testing"

// TestProbeStartsTheChildsPart: without the hook in this package the test
// binary would run its tests again in the namespaces, and print them.
func TestProbeStartsTheChildsPart(t *testing.T) {
	h, err := Probe(65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	switch p := ProbeNamespaces(h); p.Stopped {
	case "", StepMake, StepAdmin, StepMount, StepProc:
		if p.Stopped != "" && p.Err == nil {
			t.Errorf("stopped at %q without an error", p.Stopped)
		}
	default:
		t.Errorf("stopped at %q, which is no step", p.Stopped)
	}
}
