package oci

import (
	"os"
	"path/filepath"
	"testing"
)

// TestManyServersStartAtOnce: none may take another, which has made its folder
// and does not hold its lock yet, for one that is gone.
func TestManyServersStartAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	type opened struct {
		r   *engine
		err error
	}
	all := make(chan opened)
	for range 40 {
		go func() {
			r, err := newEngine(dir, 65534, 65534)
			all <- opened{r, err}
		}()
	}
	var servers []*engine
	for range 40 {
		o := <-all
		if o.err != nil {
			t.Error(o.err)
			continue
		}
		servers = append(servers, o.r)
	}
	for _, r := range servers {
		if _, err := os.Stat(filepath.Join(r.dir, lockName)); err != nil {
			t.Errorf("a living server was swept: %v", err)
		}
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSweepLeavesTheLivingAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	first, err := newEngine(dir, 65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	defer first.close()
	second, err := newEngine(dir, 65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	defer second.close()
	if _, err := os.Stat(first.dir); err != nil {
		t.Errorf("the first server's folder is gone: %v", err)
	}
}
