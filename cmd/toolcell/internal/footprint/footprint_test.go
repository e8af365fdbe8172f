package footprint

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/state"
)

// put writes a file, with the folders above it.
func put(t *testing.T, path, text string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
	return path
}

func look(t *testing.T, places ...Place) *Found {
	t.Helper()
	f, err := Look(t.Context(), places)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// tree lists all files below a folder, in order.
func tree(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if rest, _ := filepath.Rel(dir, path); rest != "." {
			all = append(all, rest)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func keepNone(string) bool { return false }

// fill makes files of every kind in the folders of one state folder.
func fill(t *testing.T, dir string) []Place {
	t.Helper()
	image, key := dir+"/cache/images/rootfs/sha256-1/", strings.Repeat("0123456789abcdef", 4)
	for _, file := range []string{
		"cache/images/layers/sha256-2/layer.json", "cache/images/refs/x.json", "cache/images/locks/pulls",
		"cache/packages/wheels/sha256-3/files/six.py", "cache/packages/sets/sha256-4/set.json", "cache/packages/uv/sha256-5/uv", "cache/npm/layers/sha256-6/layer.json", "cache/npm/locks/sha256-6",
		"cache/runner/runner-1/run.py", "cache/servers/" + key + ".tools", "cache/servers/" + key + ".tools.lock",
		"state/tools/global/a.py", "state/tools/site-0123456789abcdef/b.py", "state/tools/site-0123456789abcdef/.project",
		"state/runs/0123456789/plot.png", "state/runs/abcdefgh2345/plot.png", "state/records/2026-11-28/files.jsonl", "state/records/2026-11-28/vm-1-1.jsonl", "state/runs/.gone-0123456789/x", "state/sessions/123.json", "state/pins/" + key + ".json", "state/rights/" + key + ".json", "state/rights/" + key + ".json.lock", "state/versions/git-0123456789abcdef/pylock.toml", "state/servers/git-0123456789abcdef/home/.cache/x", "state/servers/git-0123456789abcdef/home.json", "state/servers/git-0123456789abcdef+0123456789abcdef/home/node_modules/x", "state/servers/lock", "state/logins/" + key[:32] + ".json", "state/logins/" + key[:32] + ".json.lock",
		"state/trust.json", "state/values.json", "state/answers.jsonl", "state/answers.1.jsonl", "state/installs.json", "state/installs.json.lock", "state/history", "state/notes-shown",
		"state/pins/lock", "run/lock", "run/instance-1/lock", "run/approvals/1-x.sock", "run/uids",
	} {
		put(t, filepath.Join(dir, file), strings.Repeat(file, 300))
	}
	put(t, image+"image.json", "{}")
	put(t, image+"root/bin/python3", strings.Repeat("x", 100_000))
	if err := errors.Join(os.Link(image+"root/bin/python3", image+"root/bin/python"), os.Link(image+"root/bin/python3", dir+"/cache/images/layers/sha256-2/python3")); err != nil {
		t.Fatal(err)
	}
	return []Place{{Dir: dir + "/cache", Role: Cache, Up: 1}, {Dir: dir + "/state", Role: State, Up: 1}, {Dir: dir + "/run", Role: Run, Up: 1}}
}

// TestSizesAreThoseOfDu, to the byte, for each folder and in sum, however many names a file has.
func TestSizesAreThoseOfDu(t *testing.T) {
	du := func(dir string) int64 {
		out, err := exec.Command("du", "-s", "--block-size=1", dir).Output()
		if err != nil {
			t.Skip("needs du of coreutils:", err)
		}
		n, err := strconv.ParseInt(strings.Fields(string(out))[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, whole := range []bool{false, true} {
		dir := t.TempDir()
		places := fill(t, dir)
		for i := range places {
			places[i].Whole = whole
		}
		f := look(t, places...)
		for kind, folder := range map[Kind]string{
			Images: "cache/images", Packages: "cache/packages", Runner: "cache/runner", Catalogs: "cache/servers", Tools: "state/tools",
			Files: "state/runs", Homes: "state/servers", Sessions: "state/sessions", Pins: "state/pins", Logins: "state/logins",
		} {
			want := du(filepath.Join(dir, folder))
			if kind == Packages {
				want += du(filepath.Join(dir, "cache/npm"))
			}
			if kind == Pins {
				want += du(filepath.Join(dir, "state/versions"))
			}
			if got := f.Use(kind).Bytes; got != want {
				t.Errorf("whole %t: %s take %d bytes, want %d", whole, kind, got, want)
			}
		}
		var top int64
		for _, p := range places {
			top += du(p.Dir)
		}
		if f.Total() != top {
			t.Errorf("whole %t: all take %d bytes, want %d", whole, f.Total(), top)
		}
		counts := map[Kind]int{}
		for _, u := range f.Uses {
			counts[u.Kind] = u.Count
		}
		want := map[Kind]int{
			Images: 1, Packages: 2, Runner: 1, Catalogs: 1, Tools: 2, Files: 2, Record: 1, Sessions: 1, Pins: 1, Homes: 2, Logins: 1, Decisions: 5, Running: 1, Other: 4,
		}
		if !maps.Equal(counts, want) {
			t.Errorf("whole %t: counts are %v, want %v", whole, counts, want)
		}
	}
}

// TestRemovalLeavesNothing, and says what each kind has freed.
func TestRemovalLeavesNothing(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "named")
	places := fill(t, dir)
	f := look(t, places...)
	for _, r := range f.Remove(t.Context(), Kinds, keepNone) {
		if r.Error != "" || len(r.Left) > 0 {
			t.Errorf("%+v", r)
		}
	}
	if left := f.RemovePlaces(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	var freed int64
	now := look(t, places...)
	for _, k := range Kinds {
		if got, want := f.Freed(k, now), f.Use(k).Bytes; got != want {
			t.Errorf("%s: freed %d bytes, want %d", k, got, want)
		}
		freed += f.Freed(k, now)
	}
	if freed != f.Total() || freed == 0 {
		t.Errorf("freed %d bytes of %d", freed, f.Total())
	}
	if left := tree(t, above); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	again := look(t, Place{Dir: dir + "/cache", Role: Cache}, Place{Dir: dir + "/state", Role: State})
	if len(again.Uses) > 0 || len(again.Problems) > 0 {
		t.Errorf("after it: %+v", again)
	}
}

// TestOnlyWhatLeavesTheDiskIsFreed: neither a file that has another name elsewhere, such as in a backup
// by hard links, nor one of which another name stays here.
func TestOnlyWhatLeavesTheDiskIsFreed(t *testing.T) {
	dir := t.TempDir()
	tools := dir + "/state/tools/global/"
	blocks := func(path string) int64 {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			t.Fatal(err)
		}
		return st.Blocks * 512
	}
	text := strings.Repeat("x", 10_000)
	size := blocks(put(t, tools+"saved.py", text))
	put(t, tools+"twice.py", text)
	if err := errors.Join(os.Link(tools+"saved.py", dir+"/backup.py"), os.Link(tools+"twice.py", tools+"again.py")); err != nil {
		t.Fatal(err)
	}
	folders := blocks(dir+"/state/tools") + blocks(tools)
	place := Place{Dir: dir + "/state", Role: State, Whole: true}
	f := look(t, place)
	if u := f.Use(Tools); u.Bytes != 2*size+folders || u.Shared != size || f.Shared() != size {
		t.Errorf("%+v of %d bytes each, and folders of %d", u, size, folders)
	}
	if err := os.Remove(tools + "again.py"); err != nil {
		t.Fatal(err)
	}
	if freed := f.Freed(Tools, look(t, place)); freed != 0 {
		t.Errorf("one of two names: freed %d bytes", freed)
	}
	f.Remove(t.Context(), Kinds, keepNone)
	if freed := f.Freed(Tools, look(t, place)); freed != size+folders {
		t.Errorf("freed %d bytes, want %d", freed, size+folders)
	}
	put(t, tools+"more.py", strings.Repeat(text, 10))
	if freed := f.Freed(Tools, look(t, place)); freed != 0 {
		t.Errorf("with a new file: freed %d bytes", freed)
	}
}

// TestHomeAsTheStateFolderStays: what has not a name that toolcell gives is named, and left.
func TestHomeAsTheStateFolderStays(t *testing.T) {
	home := t.TempDir()
	places := fill(t, home)
	if err := os.Remove(home + "/run/lock"); err != nil {
		t.Fatal(err)
	}
	own := []string{
		"cache/images/holiday.jpg", "cache/images/summer/beach.jpg", "cache/thumbnails/1.png", "cache/packages/parcel.txt", "cache/servers/list.txt",
		"documents/letter.txt", "run/marathon.txt", "state/tools/hammer.txt", "state/tools/drill/manual.pdf", "state/runs/sunday.gpx", "state/logins/work.txt", "state/tax.pdf",
		"run/lock/printer", "state/history-of-rome.txt", "state/logins/accounts.json", "state/sessions/therapy.json", "state/trust.json.d/x", "run/instance-blue/x",
		"cache/images/refs.txt",
	}
	slices.Sort(own)
	for _, file := range own {
		put(t, filepath.Join(home, file), "mine")
	}
	f := look(t, places...)
	f.Remove(t.Context(), Kinds, keepNone)
	f.RemovePlaces()
	var files []string
	for _, path := range tree(t, home) {
		if info, err := os.Lstat(filepath.Join(home, path)); err == nil && !info.IsDir() {
			files = append(files, path)
		}
	}
	if !slices.Equal(files, own) {
		t.Errorf("the user has %q, had %q", files, own)
	}
	var named []string
	for _, path := range f.Foreign {
		named = append(named, strings.TrimPrefix(path, home+"/"))
	}
	slices.Sort(named)
	want := []string{
		"cache/images/holiday.jpg", "cache/images/summer", "cache/packages/parcel.txt", "cache/servers/list.txt", "cache/thumbnails",
		"run/marathon.txt", "state/logins/work.txt", "state/runs/sunday.gpx", "state/tax.pdf", "state/tools/drill", "state/tools/hammer.txt",
		"run/lock", "state/history-of-rome.txt", "state/logins/accounts.json", "state/sessions/therapy.json", "state/trust.json.d", "run/instance-blue",
		"cache/images/refs.txt",
	}
	slices.Sort(want)
	if !slices.Equal(named, want) {
		t.Errorf("named as foreign are %q, want %q", named, want)
	}
}

// TestNoLinkIsFollowed, wherever it is.
func TestNoLinkIsFollowed(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	letter := put(t, home+"/rootfs/letter.txt", "mine")
	put(t, home+"/sha256-1/image.json", "mine")
	before := tree(t, home)
	link := func(name string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(dir+"/"+name), 0o755), os.Symlink(home, dir+"/"+name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{
		"cache/images", "cache/packages/wheels", "cache/packages/sets/sha256-1", "cache/runner/runner-1/deep/down", "whole/images", "whole/any/thing", "place",
	} {
		link(name)
	}
	f := look(t, Place{Dir: dir + "/cache", Role: Cache}, Place{Dir: dir + "/whole", Role: Cache, Whole: true}, Place{Dir: dir + "/place", Role: State, Whole: true})
	if f.Total() > 100_000 || len(f.Problems) != 1 || !strings.Contains(f.Problems[0], dir+"/place is a link") {
		t.Errorf("%d bytes, problems %q", f.Total(), f.Problems)
	}
	for _, r := range f.Remove(t.Context(), Kinds, keepNone) {
		if r.Error != "" {
			t.Errorf("%+v", r)
		}
	}
	f.RemovePlaces()
	if got := tree(t, dir); !slices.Equal(got, []string{"place"}) {
		t.Errorf("left: %q", got)
	}
	if got := tree(t, home); !slices.Equal(got, before) {
		t.Errorf("the home has %q, had %q (%s)", got, before, letter)
	}
}

// TestPlaceThatBecomesALinkIsNotFollowed: it was opened when it was shown.
func TestPlaceThatBecomesALinkIsNotFollowed(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	put(t, dir+"/cache/images/rootfs/a", "x")
	put(t, home+"/images/rootfs/a", "mine")
	f := look(t, Place{Dir: dir + "/cache", Role: Cache, Whole: true})
	if err := errors.Join(os.Rename(dir+"/cache", dir+"/moved"), os.Symlink(home, dir+"/cache")); err != nil {
		t.Fatal(err)
	}
	f.Remove(t.Context(), Kinds, keepNone)
	f.RemovePlaces()
	if got := tree(t, home); len(got) != 3 {
		t.Errorf("the home has only %q", got)
	}
}

// TestClosedFoldersGo: images have folders that their owner may not write to, or not even enter.
// Root may in any case: a test in e2e is an ordinary user.
func TestClosedFoldersGo(t *testing.T) {
	dir := t.TempDir()
	root := dir + "/cache/images/rootfs/sha256-1/root/"
	put(t, root+"closed/file", "x")
	put(t, root+"readonly/in/file", "x")
	for _, name := range []string{"closed", "readonly/in", "readonly"} {
		if err := os.Chmod(root+name, map[bool]os.FileMode{true: 0, false: 0o555}[name == "closed"]); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwx", dir).Run() })
	f := look(t, Place{Dir: dir + "/cache", Role: Cache, Whole: true})
	for _, r := range f.Remove(t.Context(), Kinds, keepNone) {
		if r.Error != "" {
			t.Errorf("%+v", r)
		}
	}
	if left := tree(t, dir); !slices.Equal(left, []string{"cache"}) {
		t.Errorf("left: %q", left)
	}
}

// TestPlaceOfAnotherUserIsLeft, as one in /tmp may be.
func TestPlaceOfAnotherUserIsLeft(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give a folder away")
	}
	dir := filepath.Join(t.TempDir(), "toolcell-0")
	put(t, dir+"/uids", "")
	if err := os.Chown(dir, 4242, 4242); err != nil {
		t.Fatal(err)
	}
	if f := look(t, Place{Dir: dir, Role: Run}); len(f.Uses) > 0 || !slices.Equal(f.Problems, []string{dir + " belongs to another user"}) {
		t.Errorf("%+v", f)
	}
	if f := look(t, Place{Dir: dir, Role: IDs}); len(f.Uses) > 0 || len(f.Problems) > 0 {
		t.Errorf("a folder of IDs: %+v", f)
	}
}

// countdown is a context that ends after its error was asked for some times.
type countdown struct {
	context.Context
	left *int
}

func (c countdown) Err() error {
	if *c.left--; *c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestInterruptedRemovalLeavesNoHalfImage: at whatever moment it ends, no folder has a record and
// not all of its files. Another removal does the rest.
func TestInterruptedRemovalLeavesNoHalfImage(t *testing.T) {
	for steps := 0; ; steps++ {
		dir := t.TempDir()
		image := dir + "/images/rootfs/sha256-1"
		put(t, image+"/a.txt", "x")
		put(t, image+"/image.json", "{}")
		put(t, image+"/root/bin/python3", "x")
		whole := tree(t, image)
		place := Place{Dir: dir, Role: Cache, Whole: true}
		left := steps
		f := look(t, place)
		f.Remove(countdown{t.Context(), &left}, Kinds, keepNone)
		_, err := os.Lstat(image + "/image.json")
		if err == nil && !slices.Equal(tree(t, image), whole) {
			t.Errorf("after %d steps it counts as whole and has only %q", steps, tree(t, image))
		}
		done := len(tree(t, dir)) == 0
		look(t, place).Remove(t.Context(), Kinds, keepNone)
		if rest := tree(t, dir); len(rest) > 0 {
			t.Errorf("after %d steps, the next removal leaves %q", steps, rest)
		}
		if done {
			break
		}
	}
}

// TestKeptFilesStay, and so does a file by which processes with other folders share IDs.
func TestKeptFilesStay(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/state/installs.json", "{}")
	put(t, dir+"/state/trust.json", "{}")
	lock, err := state.TryLock(put(t, dir+"/ids/uids", ""), 0, state.Shared)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	put(t, dir+"/ids/proc-123/meminfo", "")
	f := look(t, Place{Dir: dir + "/state", Role: State, Whole: true}, Place{Dir: dir + "/ids", Role: IDs})
	f.Remove(t.Context(), Kinds, func(path string) bool { return path == dir+"/state/installs.json" })
	if left := f.RemovePlaces(); !slices.Equal(left, []string{dir + "/state"}) {
		t.Errorf("not empty: %q", left)
	}
	if left := tree(t, dir); !slices.Equal(left, []string{"ids", "ids/proc-123", "ids/proc-123/meminfo", "ids/uids", "state", "state/installs.json"}) {
		t.Errorf("left: %q", left)
	}
}

// TestFoldersAboveGoIfTheyAreEmpty, as many as may have been made.
func TestFoldersAboveGoIfTheyAreEmpty(t *testing.T) {
	home := t.TempDir()
	put(t, home+"/.local/state/toolcell/trust.json", "{}")
	put(t, home+"/.cache/toolcell/x", "")
	put(t, home+"/.cache/other", "")
	put(t, home+"/data/toolcell/bin/toolcell", "")
	f := look(t,
		Place{Dir: home + "/.local/state/toolcell", Role: State, Whole: true, Up: 2}, Place{Dir: home + "/.cache/toolcell", Role: Cache, Whole: true, Up: 1},
		Place{Dir: home + "/data/toolcell", Role: Data, Whole: true})
	f.Remove(t.Context(), Kinds, keepNone)
	f.RemovePlaces()
	if left := tree(t, home); !slices.Equal(left, []string{".cache", ".cache/other", "data"}) {
		t.Errorf("left: %q", left)
	}
}

// TestNamesOfOwnFiles are shown in the question: they cannot be got back.
func TestNamesOfOwnFiles(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/policy.toml", "")
	put(t, dir+"/servers/cursor.json", "{}")
	f := look(t, Place{Dir: dir, Role: Config, Whole: true})
	if want := []string{"policy.toml", "servers/cursor.json"}; !slices.Equal(f.Names, want) || f.Use(OwnFiles).Count != 2 {
		t.Errorf("names %q, %+v", f.Names, f.Uses)
	}
}

// TestFolderOfTheSameNameStays: a variable of XDG may lead to a clone of toolcell.
func TestFolderOfTheSameNameStays(t *testing.T) {
	dir := t.TempDir()
	own := []string{".git/HEAD", "bin/tool.sh", "go.mod", "images/x.go", "servers/x.go"}
	for _, file := range append(own, "bin/toolcell", "policy.toml", "servers/cursor.json") {
		put(t, filepath.Join(dir, file), "x")
	}
	for _, role := range []Role{Cache, State, Run, IDs, Config, Data} {
		f := look(t, Place{Dir: dir, Role: role})
		f.Remove(t.Context(), Kinds, keepNone)
		f.RemovePlaces()
	}
	var left []string
	for _, path := range tree(t, dir) {
		if info, err := os.Lstat(filepath.Join(dir, path)); err == nil && !info.IsDir() {
			left = append(left, path)
		}
	}
	if !slices.Equal(left, own) {
		t.Errorf("left: %q, want %q", left, own)
	}
}

// ownedStub stands for folders that this user cannot look into.
type ownedStub struct {
	failing error
	paths   []string
}

func (o *ownedStub) Measure(_ context.Context, path string) (bytes, files int64, err error) {
	o.paths = append(o.paths, path)
	return 5 << 20, 7, o.failing
}

func (o *ownedStub) Remove(_ context.Context, path string) error {
	o.paths = append(o.paths, path)
	return cmp.Or(o.failing, os.RemoveAll(path))
}

// TestHomesOfServersAreLeftToTheirOwner, whatever is in them; only what is beside them is not.
func TestHomesOfServersAreLeftToTheirOwner(t *testing.T) {
	for _, whole := range []bool{false, true} {
		for _, failing := range []error{nil, errors.New("needs the user IDs 7")} {
			dir, owned := t.TempDir(), &ownedStub{failing: failing}
			home := dir + "/servers/git-0123456789abcdef/home"
			put(t, home+"/home/file", "")
			put(t, filepath.Dir(home)+"/home.json", "")
			f := look(t, Place{Dir: dir, Role: State, Whole: whole, Owned: owned})
			use := f.Use(Homes)
			if failing == nil && (use.Bytes < 5<<20 || use.Count != 1 || len(f.Problems) > 0) {
				t.Errorf("whole %t: %+v, problems %q", whole, use, f.Problems)
			}
			if failing != nil && (use.Bytes >= 5<<20 || !slices.Equal(f.Problems, []string{failing.Error()})) {
				t.Errorf("whole %t: %+v, problems %q", whole, use, f.Problems)
			}
			done := f.Remove(t.Context(), []Kind{Homes}, keepNone)
			if len(done) != 1 || (done[0].Error != "") != (failing != nil) || failing != nil && (done[0].Error != failing.Error() || !slices.Equal(done[0].Left, []string{home})) {
				t.Errorf("whole %t: %+v", whole, done)
			}
			if !slices.Equal(owned.paths, []string{home, home}) {
				t.Errorf("whole %t: asked about %q", whole, owned.paths)
			}
			if left := tree(t, dir); (len(left) > 0) != (failing != nil) {
				t.Errorf("whole %t: left %q", whole, left)
			}
		}
	}
}

// TestLookEndsWithItsContext: a cache may be large.
func TestLookEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/images/rootfs/a", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Look(ctx, []Place{{Dir: dir, Role: Cache, Whole: true}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
