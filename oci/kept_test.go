package oci

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci/ocitest"
)

// TestARuntimeSaysWhatItKeeps: a Python that forks is some megabytes.
func TestARuntimeSaysWhatItKeeps(t *testing.T) {
	l := forksHere(t, nil, map[string]string{})
	all := l.r.Kept()
	if len(all) != 1 || !all[0].Template || all[0].Memory < 5<<20 || all[0].Memory > 500<<20 || all[0].Forks == 0 || all[0].Process.Root.Dir == "" {
		t.Errorf("%+v", all)
	}
	l.r.pool.Close()
	if all := l.r.Kept(); len(all) > 0 {
		t.Errorf("after its end: %+v", all)
	}
}

// TestARunningSandboxSaysWhatItHolds, whether a cgroup counts or the processes are looked at.
func TestARunningSandboxSaysWhatItHolds(t *testing.T) {
	r := openRuntime(t)
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p := Process{}
	p.Root, p.Limits.Memory, p.Env = ocitest.HostRoot(t), 256<<20, []string{"PATH=/usr/bin:/bin"}
	p.Stdout, p.Stderr = w, w
	p.Args = []string{"/bin/sh", "-c", "head -c 60m /dev/zero | tail -c 50m | sleep 600"}
	sb, err := r.Start(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	defer sb.Close()
	for sb.Usage().Memory < 40<<20 {
		select {
		case <-sb.ended:
			b, _ := io.ReadAll(out)
			t.Fatalf("it has ended: %s", b)
		case <-time.After(10 * time.Millisecond):
		}
	}
	if u := sb.Usage(); u.Memory > 256<<20 || u.Peak < u.Memory/2 {
		t.Errorf("%+v", u)
	}
}
