package container

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/state"
)

// TestInstancesAreThoseThatRun, with their process, and those that were killed.
func TestInstancesAreThoseThatRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	r, err := Open(dir, 65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	killed := filepath.Join(dir, "instance-0")
	err = errors.Join(os.Mkdir(killed, 0o700), os.WriteFile(filepath.Join(killed, lockName), nil, 0o600), os.Symlink("/", filepath.Join(dir, "instance-1")))
	if err != nil {
		t.Fatal(err)
	}
	all, err := Instances(dir)
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if i := all[0]; i.Dir != killed || i.Running || i.PID != 0 {
		t.Errorf("the killed one: %+v", i)
	}
	if i := all[1]; i.Dir != r.dir || !i.Running || i.PID != os.Getpid() || time.Since(i.Since) > time.Minute {
		t.Errorf("the one that runs: %+v; this is process %d", i, os.Getpid())
	}
}

// TestLookingForInstancesChangesNothing where none has been.
func TestLookingForInstancesChangesNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, none := range []string{dir, filepath.Join(dir, "none"), file} {
		if all, err := Instances(none); len(all) > 0 || err != nil {
			t.Errorf("%s: %+v, %v", none, all, err)
		}
	}
	if entries, err := os.ReadDir(dir); len(entries) != 1 || err != nil {
		t.Errorf("there are %v, %v", entries, err)
	}
}

// TestNoInstanceStartsWhileStartsAreHeld, and those that were killed can be swept meanwhile.
func TestNoInstanceStartsWhileStartsAreHeld(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	r, err := Open(dir, 65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(dir, "instance-0")
	if err := errors.Join(os.Mkdir(killed, 0o700), os.WriteFile(filepath.Join(killed, lockName), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	release, all, err := HoldStarts(dir)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	opened := make(chan error)
	go func() {
		second, err := Open(dir, 65534, 65534)
		if err == nil {
			err = second.Close()
		}
		opened <- err
	}()
	Sweep(dir)
	if _, err := state.TryLock(filepath.Join(dir, lockName), 0, state.Exclusive); !errors.Is(err, state.ErrLocked) {
		t.Errorf("the lock: %v", err)
	}
	instances, err := filepath.Glob(dir + "/instance-*")
	if len(instances) > 0 || err != nil {
		t.Errorf("there are %q, %v", instances, err)
	}
	select {
	case err := <-opened:
		t.Errorf("an instance started: %v", err)
	default:
	}
	release()
	if err := <-opened; err != nil {
		t.Error(err)
	}
	if left := slices.DeleteFunc(instancesIn(t, dir), func(name string) bool { return name == lockName }); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func instancesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
