package container

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
		r   *Runtime
		err error
	}
	all := make(chan opened)
	for range 40 {
		go func() {
			r, err := Open(dir, 65534, 65534)
			all <- opened{r, err}
		}()
	}
	var servers []*Runtime
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
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSweepRemovesTheDead, whatever the name of its folder.
func TestSweepRemovesTheDead(t *testing.T) {
	for _, name := range []string{"run", "run [1]", "["} {
		dir := filepath.Join(t.TempDir(), name)
		dead := filepath.Join(dir, "instance-dead")
		if err := os.MkdirAll(dead, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dead, lockName), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		sweep(dir)
		if _, err := os.Stat(dead); !os.IsNotExist(err) {
			t.Errorf("in %s it is still there: %v", name, err)
		}
	}
}

func TestSweepLeavesTheLivingAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	first, err := Open(dir, 65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := Open(dir, 65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if _, err := os.Stat(first.dir); err != nil {
		t.Errorf("the first server's folder is gone: %v", err)
	}
}
