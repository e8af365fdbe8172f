package rootfs

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// TestMain lets a test start this binary again as a process of its own that
// does one Ensure.
func TestMain(m *testing.M) {
	if dir := os.Getenv("ROOTFS_TEST_STORE"); dir != "" {
		os.Exit(helper(dir, os.Getenv("ROOTFS_TEST_REF"), os.Getenv("ROOTFS_TEST_TMPFS")))
	}
	os.Exit(m.Run())
}

func helper(dir, ref, tmpfs string) int {
	if tmpfs != "" { // in a mount namespace of its own
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, tmpfs); err != nil {
			fmt.Println("no tmpfs:", err)
			return 3
		}
	}
	s, err := Open(dir, images.Puller{CAFile: os.Getenv("ROOTFS_TEST_CA"), Backoff: time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	root, err := s.Ensure(ctx, ref, nil)
	if err != nil {
		left, _ := os.ReadDir(dir + "/rootfs")
		fmt.Println(err, "left:", len(left))
		return 1
	}
	fmt.Println(root.Dir)
	return 0
}

func helperCommand(t *testing.T, dir, ref string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "ROOTFS_TEST_STORE="+dir, "ROOTFS_TEST_REF="+ref)
	return cmd
}

func TestTwoProcessesPullOnce(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	ref := reg.push(t, "py:3", pythonImage(t))
	before := reg.blobs.Load()
	// The first waits in its download until the second has had time to begin one.
	var once sync.Once
	started, release := make(chan struct{}), make(chan struct{})
	reg.onBlob(func(http.ResponseWriter, *http.Request) bool {
		once.Do(func() { close(started) })
		<-release
		return false
	})
	var wg sync.WaitGroup
	run := func() {
		if out, err := helperCommand(t, s.cache.Dir, ref).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	wg.Go(run)
	<-started
	wg.Go(run)
	time.AfterFunc(300*time.Millisecond, func() { close(release) })
	wg.Wait()
	if got := reg.blobs.Load() - before; got != 2 {
		t.Errorf("fetched %d blobs, want the configuration and the layer once", got)
	}
}

func TestWaitingForAnotherPullIsTold(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	ref := reg.push(t, "py:3", pythonImage(t))
	r, err := images.Parse(ref)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := s.cache.Try(pullLock(s.tags.key(r)), state.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	_, err = s.Ensure(ctx, ref, func(p Progress) {
		texts = append(texts, p.Text)
		if len(texts) == 1 {
			unlock()
		}
	})
	if err != nil || len(texts) == 0 || !strings.HasPrefix(texts[0], "waiting for another process") {
		t.Errorf("told %q, %v", texts, err)
	}
}

func TestKilledUnpackLeavesNothingThatIsTrusted(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	img := pythonImage(t, pack(t, file("second", "layer")))
	ref := reg.push(t, "py:3", img)
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	last, err := layers[1].Digest()
	if err != nil {
		t.Fatal(err)
	}
	// The first layer is unpacked when the second is asked for, and never comes.
	asked := make(chan struct{})
	reg.onBlob(func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, last.String()) {
			return false
		}
		close(asked)
		<-r.Context().Done()
		return true
	})
	cmd := helperCommand(t, s.cache.Dir, ref)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the helper ended by itself")
	}

	if l := leftovers(t, s); len(l) == 0 {
		t.Fatal("the killed process left nothing unfinished: it was killed too late")
	}
	if list, err := s.List(); err != nil || len(list) != 0 {
		t.Errorf("an unfinished root is listed: %+v, %v", list, err)
	}
	reg.onBlob(func(http.ResponseWriter, *http.Request) bool { return false })
	root, err := s.Ensure(ctx, ref, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(root.Dir + "/second"); err != nil || string(got) != "layer" {
		t.Errorf("the root is not whole: %v", err)
	}
	if l := leftovers(t, s); len(l) != 0 {
		t.Errorf("still there: %q", l)
	}
}

// TestKilledWhileNotingTheTag: what such a process left is no image, and the
// next pull takes it away.
func TestKilledWhileNotingTheTag(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	ref := reg.push(t, "py:3", pythonImage(t))
	ensureAll(t, s, ref)
	r, err := images.Parse(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.tags.file(r), state.Unfinished(s.tags.file(r))); err != nil {
		t.Fatal(err)
	}
	if all, err := s.List(); err != nil || len(all) != 1 || len(all[0].Refs) != 0 {
		t.Errorf("an unfinished tag is listed: %+v, %v", all, err)
	}
	ensureAll(t, s, ref)
	if l := leftovers(t, s); len(l) != 0 {
		t.Errorf("leftovers: %q", l)
	}
}

// TestKillAtAnyMoment kills a pull fifty times, anywhere from its start to
// its end. What is trusted after that is whole, and the next pull completes.
//
//test:long
func TestKillAtAnyMoment(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	reg := newRegistry(t)
	tars := [][]byte{}
	for n := range 6 {
		entries := []entry{dir(fmt.Sprintf("d%d", n))}
		for i := range 50 {
			entries = append(entries, file(fmt.Sprintf("d%d/%d", n, i), strings.Repeat(fmt.Sprint(n, i), 500)))
		}
		tars = append(tars, pack(t, append(entries, file(fmt.Sprintf("d%d/.wh.7", n-1), ""))...))
	}
	ref := reg.push(t, "py:3", pythonImage(t, tars...))
	whole := openStore(t)
	want := listTree(t, ensureAll(t, whole, ref)[0].Dir)

	dir := t.TempDir()
	start := time.Now()
	if out, err := helperCommand(t, dir, ref).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	took := time.Since(start)
	finished := 0
	for range 50 {
		s := openStore(t)
		cmd := helperCommand(t, s.cache.Dir, ref)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rand.N(took + took/10))
		_ = cmd.Process.Kill() // it may have ended
		// The machine may become faster or slower meanwhile.
		if cmd.Wait() == nil {
			finished++
			took = took * 9 / 10
		} else {
			took = took * 51 / 50
		}
		all, err := s.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, image := range all {
			if damage, err := s.Verify(ctx, &image); err != nil || len(damage) > 0 {
				t.Fatalf("an image that is not whole is trusted: %q, %v", damage, err)
			}
		}
		root, err := s.Ensure(ctx, ref, nil)
		if err != nil {
			t.Fatalf("the next pull fails: %v", err)
		}
		if listTree(t, root.Dir) != want {
			t.Fatal("the next pull gives another tree")
		}
		if l := leftovers(t, s); len(l) != 0 {
			t.Errorf("leftovers: %q", l)
		}
		s.Close()
		if err := rootdir.RemoveAll(s.cache.Dir); err != nil {
			t.Fatal(err)
		}
	}
	if finished > 45 {
		t.Errorf("%d of 50 pulls had ended before they were killed", finished)
	}
}

func TestFullDiskKeepsNothing(t *testing.T) {
	reg := newRegistry(t)
	ref := reg.push(t, "py:3", pythonImage(t, pack(t, file("big", strings.Repeat("x", 900_000)))))
	cmd := helperCommand(t, t.TempDir(), ref)
	cmd.Env = append(cmd.Env, "ROOTFS_TEST_TMPFS=size=256k,mode=700")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 3 {
		t.Skipf("needs a user namespace to mount a small disk in: %v %s", err, out)
	}
	if err == nil || !strings.Contains(string(out), "no space left on device") || !strings.Contains(string(out), "left: 0") {
		t.Errorf("got %v: %s", err, out)
	}
}
