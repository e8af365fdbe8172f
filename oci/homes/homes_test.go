package homes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/ostest"
	"github.com/toolcell/toolcell/oci/host"
)

// onHosts runs a test as this user, and if that is root also as an ordinary one.
func onHosts(t *testing.T, test func(t *testing.T, h host.Host)) {
	h, err := host.Probe(65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	if ostest.IsUser() && (h.EUID == 0 || h.ServerUIDs.Size == 0) {
		t.Fatalf("this is user %d with the IDs %+v for servers", h.EUID, h.ServerUIDs)
	}
	test(t, h)
	if h.EUID == 0 && host.HasAllIDs() {
		ostest.AgainAsUser(t)
	}
}

// oneID is h without subordinate IDs.
func oneID(h host.Host) host.Host {
	h.UIDs.User, h.GIDs.User = -1, -1
	return h
}

func open(t *testing.T, h host.Host) *Store {
	t.Helper()
	s := Open(filepath.Join(t.TempDir(), "servers"), h)
	t.Cleanup(func() {
		if err := s.RemoveAll(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *Store) home(t *testing.T, name string) Home {
	t.Helper()
	h, err := s.Ensure(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if owner := ownerOf(t, h.Dir); owner != s.ownerFor(h.UID) {
		t.Errorf("%s belongs to %d, want %d", h.Dir, owner, s.ownerFor(h.UID))
	}
	return h
}

func ownerOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return int64(info.Sys().(*syscall.Stat_t).Uid)
}

// TestServersHaveOwnersOfTheirOwn, which they keep, and no other user gets at the folders.
func TestServersHaveOwnersOfTheirOwn(t *testing.T) {
	names := []string{"a", "", "../../etc", "a/b", "A", strings.Repeat("long ", 100), "öl", ".", "lock", "home"}
	onHosts(t, func(t *testing.T, h host.Host) {
		s := open(t, h)
		ids := map[int64]string{}
		for _, name := range names {
			home := s.home(t, name)
			if !s.single() {
				if other, taken := ids[home.UID]; taken || !h.ServerUIDs.Contains(home.UID) {
					t.Errorf("%q has ID %d of %+v, as %q", name, home.UID, h.ServerUIDs, other)
				}
				ids[home.UID] = name
			}
			if filepath.Dir(filepath.Dir(home.Dir)) != s.dir || !isFolder(filepath.Base(filepath.Dir(home.Dir))) {
				t.Errorf("%q is in %s", name, home.Dir)
			}
			for _, dir := range []string{home.Dir, filepath.Dir(home.Dir)} {
				if info, err := os.Stat(dir); err != nil || info.Mode() != fs.ModeDir|0o700 {
					t.Errorf("%s: %v, %v", dir, info.Mode(), err)
				}
			}
			if again := s.home(t, name); again != home {
				t.Errorf("%q has %+v, then %+v", name, home, again)
			}
		}
		if got, err := s.List(); err != nil || !slices.Equal(got, slices.Sorted(slices.Values(names))) {
			t.Errorf("listed %q, %v", got, err)
		}
		for _, name := range names[1:] {
			if err := s.Remove(t.Context(), name); err != nil {
				t.Error(err)
			}
		}
		if got, err := s.List(); err != nil || !slices.Equal(got, names[:1]) {
			t.Errorf("after removing the others: %q, %v", got, err)
		}
		if err := errors.Join(s.Remove(t.Context(), "never there"), s.RemoveAll(t.Context())); err != nil {
			t.Error(err)
		}
		if left, err := filepath.Glob(s.dir + "/*"); err != nil || len(left) != 1 || filepath.Base(left[0]) != "lock" {
			t.Errorf("left are %q, %v", left, err)
		}
	})
}

// TestWhatIsInAHomeFollowsItsOwner, whatever it is, and nothing outside does.
func TestWhatIsInAHomeFollowsItsOwner(t *testing.T) {
	onHosts(t, func(t *testing.T, h host.Host) {
		own, many := open(t, oneID(h)), Open("", h)
		many.dir = own.dir
		home := own.home(t, "a")
		outside := hostile(t, home.Dir)
		if many.single() {
			t.Skip("this host has no IDs for servers, as onHosts says for root")
		}
		size, err := own.Size(t.Context(), "a", 0)
		if err != nil || size.More || size.Files != 10 {
			t.Errorf("measured %+v, %v", size, err)
		}
		given := many.home(t, "a")
		if got, err := many.Size(t.Context(), "a", 0); err != nil || got != size {
			t.Errorf("measured %+v of its server, %v; before %+v", got, err, size)
		}
		if id := ownerOf(t, outside); id != int64(h.EUID) {
			t.Errorf("a file outside belongs to %d", id)
		}
		if entries, err := os.ReadDir(given.Dir); (err == nil) != (h.EUID == 0) {
			t.Errorf("this user reads %v, %v", entries, err)
		}
		if back := own.home(t, "a"); back.UID != -1 {
			t.Errorf("it has ID %d for a sandbox with one", back.UID)
		}
		for _, name := range []string{"setuid", "none", "none-dir", "fifo", "link", "up", "deep", "deep/er"} {
			if id := ownerOf(t, filepath.Join(home.Dir, name)); id != int64(h.EUID) {
				t.Errorf("%s belongs to %d", name, id)
			}
		}
		if info, err := os.Stat(home.Dir + "/setuid"); err != nil || info.Mode()&fs.ModeSetuid != 0 {
			t.Errorf("what its server made setuid is that for this user: %v, %v", info.Mode(), err)
		}
		many.home(t, "a")
		if got, err := many.SizeIn(t.Context(), home.Dir); err != nil || got != size {
			t.Errorf("measured %+v by its path, %v", got, err)
		}
		if err := many.RemoveIn(t.Context(), home.Dir); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(home.Dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is there: %v", err)
		}
		if text, err := os.ReadFile(outside); err != nil || string(text) != "mine" {
			t.Errorf("outside is %q, %v", text, err)
		}
	})
}

// hostile fills a home with nine files, and returns a file outside that links in it are to.
func hostile(t *testing.T, dir string) (outside string) {
	t.Helper()
	outside = filepath.Join(t.TempDir(), "outside")
	in := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(
		os.WriteFile(outside, []byte("mine"), 0o600),
		os.WriteFile(in("setuid"), []byte("#!"), 0o755), os.Chmod(in("setuid"), 0o755|fs.ModeSetuid),
		os.WriteFile(in("none"), []byte("x"), 0), os.MkdirAll(in("deep/er"), 0o700),
		os.Mkdir(in("none-dir"), 0o700), os.WriteFile(in("none-dir/x"), make([]byte, 10_000), 0o600), os.Chmod(in("none-dir"), 0),
		unix.Mkfifo(in("fifo"), 0o600), os.Symlink(outside, in("link")), os.Symlink(filepath.Dir(outside), in("up")),
	)
	if err != nil {
		t.Fatal(err)
	}
	return outside
}

// TestDeepTreesAreRemoved: a server must not make a folder that no one gets rid of, nor hide its size.
func TestDeepTreesAreRemoved(t *testing.T) {
	onHosts(t, func(t *testing.T, h host.Host) {
		s := open(t, oneID(h))
		at, err := os.OpenRoot(s.home(t, "a").Dir)
		if err != nil {
			t.Fatal(err)
		}
		part := strings.Repeat("long-long-name/", 50)
		for range 8 { // 400 levels, whose names together are longer than a path may be
			if err := at.MkdirAll(part, 0o700); err != nil {
				t.Fatal(err)
			}
			next, err := at.OpenRoot(part)
			if err != nil {
				t.Fatal(err)
			}
			at.Close()
			at = next
		}
		at.Close()
		if got, err := s.Size(t.Context(), "a", 0); err != nil || !got.More {
			t.Errorf("measured %+v, %v", got, err)
		}
		if many := Open(s.dir, h); !many.single() {
			if _, err := many.Ensure(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), errTooDeep.Error()) {
				t.Errorf("giving it to its server: %v", err)
			}
		}
		if err := s.Remove(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		if open := ostest.OpenFiles(t, s.dir); len(open) > 0 {
			t.Errorf("left open: %q", open)
		}
	})
}

// TestSizeIsThatOfDu, to the byte, and no more is looked at than is asked.
func TestSizeIsThatOfDu(t *testing.T) {
	h, err := host.Probe(65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, oneID(h))
	dir := s.home(t, "a").Dir
	for i := range 30 {
		if err := os.WriteFile(fmt.Sprintf("%s/%d", dir, i), make([]byte, i*1000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Link(dir+"/29", dir+"/again"), os.Truncate(dir+"/28", 1<<40)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("du", "-s", "--block-size=1", dir).Output()
	if err != nil {
		t.Skip("needs du of coreutils:", err)
	}
	want, err := strconv.ParseInt(strings.Fields(string(out))[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Size(t.Context(), "a", 0); err != nil || got != (Use{Bytes: want, Files: 32}) {
		t.Errorf("measured %+v, %v; want %d bytes", got, err, want)
	}
	if got, err := s.Size(t.Context(), "a", want/2); err != nil || !got.More || got.Bytes <= want/2 || got.Bytes >= want {
		t.Errorf("measured %+v, %v, up to %d bytes", got, err, want/2)
	}
	if got, err := s.Size(t.Context(), "b", 0); err != nil || got != (Use{}) {
		t.Errorf("of none: %+v, %v", got, err)
	}
	if got, err := s.SizeIn(t.Context(), dir); err != nil || got.Bytes != want {
		t.Errorf("by its path: %+v, %v", got, err)
	}
	for _, path := range []string{s.dir, filepath.Dir(dir), dir + "/..", "/etc/home", filepath.Join(s.dir, "x", "home")} {
		_, err := s.SizeIn(t.Context(), path)
		if removing := s.RemoveIn(t.Context(), path); err == nil || removing == nil {
			t.Errorf("%s is taken for a home", path)
		}
	}
}

// TestProcessesDoNotShareIDs, however many begin at once.
func TestProcessesDoNotShareIDs(t *testing.T) {
	const dirKey = "TOOLCELL_TEST_STORE"
	if dir := os.Getenv(dirKey); dir != "" {
		h, err := host.Probe(65534, 65534)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			home, err := Open(dir, h).Ensure(t.Context(), fmt.Sprint(os.Getpid(), "-", i))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println("has", home.UID)
		}
		return
	}
	onHosts(t, func(t *testing.T, h host.Host) {
		s := open(t, h)
		var all []*exec.Cmd
		var outs []*strings.Builder
		for range 6 {
			c, out := ostest.Again(t, nil, dirKey+"="+s.dir), &strings.Builder{}
			c.Stdout, c.Stderr = out, out
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			all, outs = append(all, c), append(outs, out)
		}
		seen := map[string]int{}
		for i, c := range all {
			if err := c.Wait(); err != nil {
				t.Errorf("%v: %s", err, outs[i])
			}
			for line := range strings.Lines(outs[i].String()) {
				if id, ok := strings.CutPrefix(line, "has "); ok {
					seen[id]++
				}
			}
		}
		if want := 18; !s.single() && len(seen) != want {
			t.Errorf("%d processes have %v", len(all), seen)
		}
	})
}

// TestInterruptedChangesAreFinished: neither does another server get the ID, nor do files keep another.
func TestInterruptedChangesAreFinished(t *testing.T) {
	onHosts(t, func(t *testing.T, h host.Host) {
		own, many := open(t, oneID(h)), Open("", h)
		many.dir = own.dir
		if many.single() {
			t.Skip("this host has no IDs for servers, as onHosts says for root")
		}
		home := own.home(t, "a")
		if err := os.MkdirAll(home.Dir+"/part/home", 0o700); err != nil {
			t.Fatal(err)
		}
		e, err := many.entry(FolderOf("a"))
		if err != nil {
			t.Fatal(err)
		}
		lost := h.ServerUIDs.Start
		if err := many.note(e.folder, record{Name: "a", UID: lost, GID: h.GIDs.User, Before: -1}); err != nil {
			t.Fatal(err)
		}
		part := e
		part.folder += "/home/part"
		if err := many.give(t.Context(), part, lost); err != nil { // and then it was killed
			t.Fatal(err)
		}
		if other := many.home(t, "b"); other.UID == lost {
			t.Error("two servers have one ID")
		}
		if got := many.home(t, "a"); got.UID != lost {
			t.Errorf("it has %d, and had %d", got.UID, lost)
		}
		own.home(t, "a")
		if id := ownerOf(t, home.Dir+"/part/home"); id != int64(h.EUID) {
			t.Errorf("a file belongs to %d", id)
		}
		// Damaged, or written for another server, a record says nothing; the owner does.
		kept := many.home(t, "a")
		for _, text := range []string{"{", `{"name":"b","uid":1}`} {
			if err := os.WriteFile(filepath.Join(own.dir, FolderOf("a"), recordName), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := many.home(t, "a"); got != kept {
				t.Errorf("with the record %s: %+v, before %+v", text, got, kept)
			}
		}
	})
}

// TestTakenIDs: a copy of a folder has one that another server has, and in the end there is none.
func TestTakenIDs(t *testing.T) {
	onHosts(t, func(t *testing.T, h host.Host) {
		if h.ServerUIDs.Size > 2 {
			h.ServerUIDs.Size = 2
		}
		s := open(t, h)
		if s.single() {
			t.Skip("this host has no IDs for servers, as onHosts says for root")
		}
		first := s.home(t, "a")
		s.home(t, "b")
		if _, err := s.Ensure(t.Context(), "c"); err == nil || !strings.Contains(err.Error(), "all 2 user IDs for servers are taken") {
			t.Errorf("a third server: %v", err)
		}
		if err := s.Remove(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		if err := s.note(FolderOf("c"), record{Name: "c", UID: first.UID}); err != nil {
			t.Fatal(err)
		}
		if got := s.home(t, "c"); got.UID == first.UID {
			t.Error("two servers have one ID")
		}
		// An ID that is no longer for servers, as after a change of /etc/subuid.
		s.host.ServerUIDs.Start += 2
		if got := s.home(t, "a"); got.UID != s.host.ServerUIDs.Start {
			t.Errorf("it has %d of %+v", got.UID, s.host.ServerUIDs)
		}
	})
}

// TestIDsThatAreGone: the error says which, and what to do.
func TestIDsThatAreGone(t *testing.T) {
	onHosts(t, func(t *testing.T, h host.Host) {
		s := open(t, h)
		if s.single() || h.EUID == 0 {
			return // root can use them all
		}
		home := s.home(t, "a")
		path := os.Getenv("PATH")
		t.Setenv("PATH", "")
		err := s.RemoveAll(t.Context())
		want := fmt.Sprintf("%s needs the user IDs %d: the user ID cannot be mapped: newuidmap is not installed", home.Dir, home.UID)
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "remove the folder: sudo rm -r "+home.Dir) {
			t.Errorf("without newuidmap: %v", err)
		}
		t.Setenv("PATH", path)
		s.host.ServerUIDs.Start = 1 // not this user's
		if _, err := s.Ensure(t.Context(), "b"); err == nil || !strings.Contains(err.Error(), "newuidmap: exit status 1: ") {
			t.Errorf("an ID of another user: %v", err)
		}
	})
}

// TestLinksInPlaceOfAHome are not followed.
func TestLinksInPlaceOfAHome(t *testing.T) {
	onHosts(t, func(t *testing.T, h host.Host) {
		s := open(t, oneID(h))
		target := t.TempDir()
		dir := filepath.Join(s.dir, FolderOf("a"))
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.Symlink(target, filepath.Join(dir, homeName))); err != nil {
			t.Fatal(err)
		}
		_, making := s.Ensure(t.Context(), "a")
		_, measuring := s.Size(t.Context(), "a", 0)
		for _, err := range []error{making, measuring, s.Remove(t.Context(), "a")} {
			if err == nil || !strings.HasSuffix(err.Error(), dir+"/home is not a folder") {
				t.Errorf("got %v", err)
			}
		}
		if other := s.home(t, "b"); other.Dir == "" { // which it does not concern
			t.Error("another server has none")
		}
		if err := os.Remove(filepath.Join(dir, homeName)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestChildEnds with the work that it was for, with the program that started it, and with other words.
func TestChildEnds(t *testing.T) {
	h, err := host.Probe(65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, oneID(h))
	s.home(t, "a")
	ended, end := context.WithCancelCause(t.Context())
	why := errors.New("the user stopped it")
	end(why)
	if _, err := s.Size(ended, "a", 0); !errors.Is(err, why) && s.host.EUID != 0 {
		t.Errorf("measured after its end: %v", err)
	}
	for _, input := range []string{"", "{", `{"Op": "else"}`} {
		c := exec.Command("/proc/self/exe", "homes")
		c.Env = []string{childEnv + "=1"}
		c.Stdin = strings.NewReader(input)
		out, err := c.Output()
		var r reply
		if input != "" && input != "{" && err == nil {
			err = json.Unmarshal(out, &r)
		}
		// The end of its input may come before the reply.
		if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited || r.Use != (Use{}) {
			t.Errorf("%q: %s, %v", input, out, err)
		}
	}
}
