package packages

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/rootfs/cachedir"
)

func twoWheels(t *testing.T) map[string][]byte {
	return map[string][]byte{
		"a-1.0-py3-none-any.whl": makeWheel(t, "a", wheelFile{name: "a/__init__.py", content: "A = 1"}, wheelFile{name: "shared/__init__.py", content: "of a"}, wheelFile{name: "a/tool", content: "#!", mode: 0o755}),
		"b-1.0-py3-none-any.whl": makeWheel(t, "b", wheelFile{name: "b.py", content: "B = 1"}, wheelFile{name: "shared/__init__.py", content: "of b"}),
	}
}

func TestPackagesAreFetchedOnce(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	var last Progress
	set, err := s.Ensure(t.Context(), x.request("a>=1", "b"), func(p Progress) { last = p })
	if err != nil {
		t.Fatal(err)
	}
	want := []string{".toolcell-hidden", "a/__init__.py", "a/tool", "a-1.0.dist-info/METADATA", "a-1.0.dist-info/RECORD", "b-1.0.dist-info/METADATA", "b-1.0.dist-info/RECORD", "b.py", "shared/__init__.py"}
	if got := tree(t, set.Dir); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if text, _ := os.ReadFile(filepath.Join(set.Dir, "shared/__init__.py")); string(text) != "of a" {
		t.Errorf("of two wheels with one file: %q", text)
	}
	for name, mode := range map[string]os.FileMode{"a": 0o755, "a/tool": 0o755, "b.py": 0o644} {
		if info, err := os.Stat(filepath.Join(set.Dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if text, _ := os.ReadFile(filepath.Join(set.Dir, HiddenName)); string(text) != "pandas\nmpl_toolkits\n" {
		t.Errorf("hidden: %q", text)
	}
	if len(set.Packages) != 2 || set.Packages[0].Name != "a" || set.Bytes == 0 || last.Text == "" {
		t.Errorf("got %+v, %+v", set, last)
	}
	// From now on neither the index nor a sandbox is asked, by other processes too.
	x.Close()
	r := x.request("b", "a>=1")
	r.Run = nil
	again, err := openStore(t, s.dir).Ensure(t.Context(), r, nil)
	if err != nil || again.Dir != set.Dir {
		t.Errorf("the second time: %+v, %v", again, err)
	}
	r.Offline = true
	if again, err := s.Ensure(t.Context(), r, nil); err != nil || again.Dir != set.Dir {
		t.Errorf("offline: %+v, %v", again, err)
	}
	// The policy may have changed since.
	r.Check = func(name, _ string) error { return fmt.Errorf("%s is denied", name) }
	if _, err := s.Ensure(t.Context(), r, nil); err == nil || !strings.Contains(err.Error(), "a is denied") {
		t.Errorf("denied since: %v", err)
	}
}

func TestOfflineNothingIsFetched(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	r := x.request("a")
	offline := r
	offline.Offline = true
	refuse := func(want string) {
		t.Helper()
		asked := x.count() + x.solved
		if _, err := s.Ensure(t.Context(), offline, nil); !errors.Is(err, ErrOffline) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if x.count()+x.solved > asked {
			t.Error("the network was asked")
		}
	}
	refuse("the packages for a are not here")
	if _, err := s.Resolve(t.Context(), offline); !errors.Is(err, ErrOffline) {
		t.Errorf("a lock: %v", err)
	}
	set, err := s.Ensure(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := s.Resolve(t.Context(), offline)
	if err != nil || !strings.Contains(string(lock), "lock-version") {
		t.Errorf("a lock: %q, %v", lock, err)
	}
	locked := offline // as a script that has the lock beside it
	locked.Lock = lock
	if again, err := s.Ensure(t.Context(), locked, nil); err != nil || again.Dir != set.Dir || !s.Has(locked) {
		t.Errorf("with the lock: %+v, %v", again, err)
	}
	if locked.Lock = append([]byte("# edited\n"), lock...); s.Has(locked) {
		t.Error("another lock counts as known")
	}
	// A set is put together again from wheels that are here.
	s.cache.ReleaseAll()
	if err := s.removeSet(set.ID); err != nil {
		t.Fatal(err)
	}
	if again, err := s.Ensure(t.Context(), offline, nil); err != nil || again.Dir != set.Dir {
		t.Errorf("from the wheels: %+v, %v", again, err)
	}
	s.cache.ReleaseAll()
	if err := errors.Join(s.removeSet(set.ID), os.Remove(filepath.Join(s.wheels.path(wheelName(set.Packages[0].SHA256)), "wheel.json"))); err != nil {
		t.Fatal(err)
	}
	refuse("of the packages for a, " + set.Packages[0].Name + " " + set.Packages[0].Version + " is not here")
}

func TestResolverIsToldWhatCounts(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	r := x.request("a>=1 ; python_version > '3'")
	r.Constraints, r.ExcludeNewer = []string{"b>=1"}, 72*time.Hour
	if _, err := s.Ensure(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	args := strings.Join(toStrings(x.task["args"]), " ")
	for _, want := range []string{"--only-binary :all:", "--no-config", "--no-sources", "--default-index " + x.URL + "/simple", "--keyring-provider disabled", "--exclude-newer 20", "--python /usr/bin/python3", "--no-python-downloads"} {
		if !strings.Contains(args, want) {
			t.Errorf("%q is not in %s", want, args)
		}
	}
	files, env := x.task["files"].(map[string]any), x.task["env"].(map[string]any)
	if files["requirements.txt"] != "a>=1 ; python_version > '3'\n" || files["constraints.txt"] != "b>=1\n" || files["roots.pem"] != "PEM" {
		t.Errorf("files: %v", files)
	}
	for name := range env {
		if !strings.HasPrefix(name, "UV_") && !strings.HasSuffix(name, "_PROXY") && !slices.Contains([]string{"HOME", "TMPDIR", "LANG", "SSL_CERT_FILE", "TOKIO_WORKER_THREADS", "RAYON_NUM_THREADS"}, name) {
			t.Errorf("the environment has %s", name)
		}
	}
}

func toStrings(v any) (all []string) {
	for _, each := range v.([]any) {
		all = append(all, each.(string))
	}
	return all
}

func TestConcurrentRequestsShareTheWork(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	other := openStore(t, s.dir)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			if _, err := []*Store{s, other}[i%2].Ensure(t.Context(), x.request("a", "b"), nil); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if x.solved != 1 || x.count() != 2 {
		t.Errorf("resolved %d times, %d requests", x.solved, x.count())
	}
}

func TestWhatAKilledProcessLeftIsSwept(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	name := "sha256-" + strings.Repeat("0", 64)
	var left []string
	for _, dir := range []string{"wheels", "sets", "uv"} {
		path := filepath.Join(s.dir, dir, ".tmp-"+name+"-123")
		left = append(left, path)
		if err := os.MkdirAll(filepath.Join(path, "files"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// A wheel, a set and a request without their last file, or with half of it.
	wheel := filepath.Join(s.dir, "wheels", wheelName(sha(x.wheels["a-1.0-py3-none-any.whl"])))
	if err := errors.Join(os.MkdirAll(filepath.Join(wheel, "files", "junk"), 0o755), os.WriteFile(s.knownFile(x.request("a").key()), []byte(`{"lock":"lock-v`), 0o644)); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, s.dir)
	for _, path := range left {
		if exists(path) {
			t.Errorf("%s is still there", path)
		}
	}
	set, err := s.Ensure(t.Context(), x.request("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !exists(filepath.Join(set.Dir, "a/__init__.py")) || exists(filepath.Join(set.Dir, "junk")) {
		t.Errorf("got %q", tree(t, set.Dir))
	}
}

func TestPruneLeavesWhatIsInUse(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	set, err := s.Ensure(t.Context(), x.request("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	other := openStore(t, s.dir)
	if removed, freed, err := other.Prune(0); len(removed) != 0 || freed != 0 || err != nil || !exists(set.Dir) {
		t.Errorf("in use: %v, %d, %v", removed, freed, err)
	}
	s.Close()
	if removed, _, err := other.Prune(time.Hour); len(removed) != 0 || err != nil {
		t.Errorf("used lately: %v, %v", removed, err)
	}
	if removed, freed, err := other.Prune(0); len(removed) != 1 || freed == 0 || err != nil || exists(set.Dir) {
		t.Errorf("unused: %v, %d, %v", removed, freed, err)
	}
	if left, _ := state.Match(filepath.Join(s.dir, "wheels"), "*"); left != nil {
		t.Errorf("wheels stay: %q", left)
	}
	// The same versions come back.
	if _, err := other.Ensure(t.Context(), x.request("a"), nil); err != nil || x.solved != 1 {
		t.Errorf("again: %v, resolved %d times", err, x.solved)
	}
}

// TestPruneRemovesWhatAKilledOneLeft: the record of a set goes first.
func TestPruneRemovesWhatAKilledOneLeft(t *testing.T) {
	for name, damage := range map[string]func(record string) error{
		"killed":         os.Remove,
		"another format": func(record string) error { return os.WriteFile(record, []byte(`{"format": 0}`), 0o644) },
	} {
		x, s := newIndex(t, twoWheels(t)), newStore(t)
		set, err := s.Ensure(t.Context(), x.request("a"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := damage(s.sets.record(set.ID)); err != nil {
			t.Fatal(err)
		}
		other := openStore(t, s.dir)
		if _, _, err := other.Prune(0); err != nil || !exists(set.Dir) {
			t.Errorf("%s, in use: %v", name, err)
		}
		s.Close()
		if _, freed, err := other.Prune(time.Hour); err != nil || exists(s.sets.path(set.ID)) {
			t.Errorf("%s: freed %d, %v, and it is still there", name, freed, err)
		}
	}
}

// TestPruneForgetsRequestsOnceTheirSetsAreGone: a script that runs each day keeps its
// versions, and needs no network.
func TestPruneForgetsRequestsOnceTheirSetsAreGone(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	r := x.request("a")
	if _, err := s.Ensure(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	record := s.knownFile(r.key())
	old := time.Now().Add(-forgottenAfter - time.Hour)
	if err := os.Chtimes(record, old, old); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, _, err := s.Prune(time.Hour); err != nil || !exists(record) {
		t.Errorf("the set is here: %v", err)
	}
	if removed, _, err := s.Prune(0); err != nil || len(removed) != 1 || exists(record) {
		t.Errorf("the set is gone: %v, %v", removed, err)
	}
}

func TestLockBesideAScriptIsKeptTo(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	r := x.request("a")
	r.Lock = x.lock()
	if _, err := s.Ensure(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	if got := x.task["files"].(map[string]any)["constraints.txt"]; got != "a==1.0\nb==1.0\n" {
		t.Errorf("constraints: %q", got)
	}
	for name, lock := range map[string]string{
		"does not have b 1.0":      strings.Split(string(r.Lock), "[[packages]]\nname = \"b\"")[0],
		"with the wheel that this": strings.Replace(string(r.Lock), sha(x.wheels["b-1.0-py3-none-any.whl"]), strings.Repeat("0", 64), 1),
		"no wheels of an index":    strings.Replace(string(r.Lock), "wheels = ", "sdists = ", 1),
		"has no SHA-256":           strings.Replace(string(r.Lock), "sha256 = ", "md5 = ", 1),
		"lock-version":             "x = 1",
		"line 1":                   "= 1",
		"not the name":             strings.Replace(string(r.Lock), `name = "a"`, `name = "a\n-r b"`, 1),
		"marker":                   strings.Replace(string(r.Lock), "wheels = ", "marker = \"x # y\"\nwheels = ", 1),
	} {
		r := x.request("a")
		r.Lock = []byte(lock)
		_, err := s.Ensure(t.Context(), r, nil)
		var wrong *RequestError
		if err == nil || !strings.Contains(err.Error(), name) || !errors.As(err, &wrong) {
			t.Errorf("want %q, got %v", name, err)
		}
	}
	// Versions that the lock does not allow, or that nothing does.
	x.stderr = "error: No solution found when resolving dependencies"
	for _, lock := range [][]byte{nil, x.lock()} {
		r := x.request("a>1")
		r.Lock = lock
		_, err := s.Ensure(t.Context(), r, nil)
		var wrong *RequestError
		if !errors.As(err, &wrong) || wrong.Locked != (lock != nil) {
			t.Errorf("lock %q: got %v", lock, err)
		}
	}
}

func TestChosenPackagesAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(x *fakeIndex, r *Request)
		want   string
	}{
		"foreign host": {func(x *fakeIndex, _ *Request) {
			x.hosts["a-1.0-py3-none-any.whl"] = "https://evil.example/a-1.0-py3-none-any.whl"
		}, `comes from "evil.example", which is not the index's host`},
		"other port": {func(x *fakeIndex, _ *Request) {
			x.hosts["a-1.0-py3-none-any.whl"] = "http://127.0.0.1:1/a-1.0-py3-none-any.whl"
		}, "not with https"},
		"file":        {func(x *fakeIndex, _ *Request) { x.hosts["a-1.0-py3-none-any.whl"] = "file:///etc/passwd.whl" }, "not understood"},
		"user":        {func(x *fakeIndex, _ *Request) { x.hosts["a-1.0-py3-none-any.whl"] = "https://u:p@evil.example/a.whl" }, "not understood"},
		"no address":  {func(x *fakeIndex, _ *Request) { x.hosts["a-1.0-py3-none-any.whl"] = "http://[::1/a.whl" }, `"" is not the name of a wheel`},
		"not a wheel": {func(x *fakeIndex, _ *Request) { x.hosts["a-1.0-py3-none-any.whl"] = x.URL + "/a.tar.gz" }, "not the name of a wheel"},
		"wrong hash":  {func(x *fakeIndex, _ *Request) { x.hashes["a-1.0-py3-none-any.whl"] = strings.Repeat("0", 64) }, "its SHA-256 is"},
		"no hash":     {func(x *fakeIndex, _ *Request) { x.hashes["a-1.0-py3-none-any.whl"] = "x" }, "no SHA-256"},
		"too many":    {func(_ *fakeIndex, r *Request) { r.MaxCount = 1 }, "needs 2 packages with all that they need; the most is 1"},
		"too large":   {func(_ *fakeIndex, r *Request) { r.MaxBytes = 100 }, "; the most is 100 bytes ([packages] maxBytes)"},
		"denied":      {func(_ *fakeIndex, r *Request) { r.Check = func(string, string) error { return errors.New("denied") } }, "denied"},
		"unchecked":   {func(_ *fakeIndex, r *Request) { r.Check = nil }, "nothing checks the package"},
		"no such file": {func(x *fakeIndex, _ *Request) {
			x.hosts["a-1.0-py3-none-any.whl"] = x.URL + "/gone/a-1-py3-none-any.whl"
		}, "404"},
		"another's": {func(x *fakeIndex, _ *Request) { x.wheels["a-1.0-py3-none-any.whl"] = makeWheel(x.t, "other") }, `a wheel of "other-1.0.dist-info", not of a`},
		"no zip":    {func(x *fakeIndex, _ *Request) { x.wheels["a-1.0-py3-none-any.whl"] = []byte("no") }, "no wheel"},
	} {
		x, s := newIndex(t, twoWheels(t)), newStore(t)
		r := x.request("a")
		c.change(x, &r)
		if set, err := s.Ensure(t.Context(), r, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v; want %q", name, set, err, c.want)
		}
		for _, dir := range []string{"sets", "requests"} {
			if left, _ := state.Match(filepath.Join(s.dir, dir), "*"); left != nil {
				t.Errorf("%s: %q stay", name, left)
			}
		}
	}
}

// TestWheelsAreOfThePackageThatTheLockNames, also those that are here already: the policy was
// asked about what the lock names.
func TestWheelsAreOfThePackageThatTheLockNames(t *testing.T) {
	x, s := newIndex(t, map[string][]byte{"a-1.0-py3-none-any.whl": makeWheel(t, "a")}), newStore(t)
	if _, err := s.Ensure(t.Context(), x.request("a"), nil); err != nil {
		t.Fatal(err)
	}
	wheel := x.wheels["a-1.0-py3-none-any.whl"]
	for _, c := range []struct{ name, version, file, want string }{
		{"a", "1.0.0", "a-1-py3-none-any.whl", ""},
		{"a", "9.0", "a-9.0-py3-none-any.whl", "not of a 9.0"},
		{"a", "9.0", "a-1.0-py3-none-any.whl", "not a wheel of a 9.0"},
		{"b", "1.0", "b-1.0-py3-none-any.whl", "not of b"},
		{"b", "1.0", "a-1.0-py3-none-any.whl", "not a wheel of b 1.0"},
	} {
		for _, empty := range []bool{false, true} {
			store := s
			if empty {
				store = newStore(t)
			}
			p := lockedPackage{Name: c.name, Version: c.version, Wheels: []lockedWheel{{Name: c.file, URL: x.URL + "/files/a-1.0-py3-none-any.whl", SHA256: sha(wheel)}}}
			j, err := store.begin(x.request("a"), nil)
			if err != nil {
				t.Fatal(err)
			}
			err = j.ensureWheel(t.Context(), p, newBudget(1<<20), func(int64) {})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s %s, %s: got %v, want %q", c.name, c.version, c.file, err, c.want)
			}
		}
	}
}

// TestPackagesThatOthersCanChangeAreNotUsed, though they are here.
func TestPackagesThatOthersCanChangeAreNotUsed(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	r := x.request("a")
	if _, err := s.Ensure(t.Context(), r, nil); err != nil || !s.Has(r) {
		t.Fatal(err)
	}
	for _, name := range []string{"", "wheels", "sets", "requests", "uv"} {
		dir := filepath.Join(s.dir, name)
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		var foreign *cachedir.UntrustedError
		if set, err := s.Ensure(t.Context(), r, nil); !errors.As(err, &foreign) || foreign.Dir != dir || s.Has(r) {
			t.Errorf("%q: got %v, %v", name, set, err)
		}
		offline := r
		offline.Offline = true
		for _, r := range []Request{r, offline} {
			if _, err := s.Resolve(t.Context(), r); !errors.As(err, &foreign) {
				t.Errorf("%q: resolving, offline %t: %v", name, r.Offline, err)
			}
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Ensure(t.Context(), r, nil); err != nil {
		t.Errorf("as it was: %v", err)
	}
}

// TestLimitsCountForWhatIsHere: a policy may have changed since it was fetched.
func TestLimitsCountForWhatIsHere(t *testing.T) {
	x := newIndex(t, map[string][]byte{"a-1.0-py3-none-any.whl": makeWheel(t, "a", wheelFile{name: "a.bin", content: strings.Repeat("\x00", 500_000)})})
	s := newStore(t)
	r := x.request("a")
	if _, err := s.Ensure(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	r.MaxBytes = 100_000 // more than the wheel has, packed
	for _, anew := range []bool{false, true} {
		r.Anew = anew
		set, err := s.Ensure(t.Context(), r, nil)
		var wrong *RequestError
		if set != nil || !errors.As(err, &wrong) || !strings.Contains(err.Error(), "[packages] maxBytes") {
			t.Errorf("anew %t: got %v, %v", anew, set, err)
		}
	}
	r.MaxBytes = 1 << 20
	if _, err := s.Ensure(t.Context(), r, nil); err != nil {
		t.Errorf("within the limit again: %v", err)
	}
}

func TestRedirectsStayWithTheIndex(t *testing.T) {
	evil := newIndex(t, twoWheels(t))
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	var to atomic.Value
	to.Store(evil.URL)
	x.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/files/") {
			http.Redirect(w, r, to.Load().(string)+"/elsewhere/"+filepath.Base(r.URL.Path), http.StatusFound)
			return true
		}
		return false
	})
	if _, err := s.Ensure(t.Context(), x.request("a"), nil); err == nil || evil.count() > 0 {
		t.Errorf("got %v, and the other host %d requests", err, evil.count())
	}
	to.Store(x.URL)
	if _, err := s.Ensure(t.Context(), x.request("a"), nil); err != nil {
		t.Errorf("within the index: %v", err)
	}
}

func TestBusyServersAreAskedAgain(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	var mu sync.Mutex
	tries := map[string]int{}
	x.answers(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		tries[r.URL.Path]++
		switch tries[r.URL.Path] {
		case 1:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			w.WriteHeader(http.StatusBadGateway)
		case 3: // the connection breaks in the middle
			w.Header().Set("Content-Length", "1000000")
			_, _ = w.Write([]byte("PK"))
			panic(http.ErrAbortHandler)
		default:
			return false
		}
		return true
	})
	if _, err := s.Ensure(t.Context(), x.request("a"), nil); err != nil {
		t.Error(err)
	}
	x.answers(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	before := x.count()
	if _, err := newStore(t).Ensure(t.Context(), x.request("a"), nil); err == nil || !strings.Contains(err.Error(), "429") || x.count() > before+2 {
		t.Errorf("asked to wait for an hour: %v, %d requests", err, x.count()-before)
	}
}

func TestStalledDownloadsAreGivenUp(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	s.client.Stall = 20 * time.Millisecond
	x.answers(func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = w.Write([]byte("PK"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	})
	if _, err := s.Ensure(t.Context(), x.request("a"), nil); err == nil || !strings.Contains(err.Error(), "sent nothing for") {
		t.Errorf("got %v", err)
	}
}

func TestTimeIsBounded(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	r := x.request("a")
	r.MaxTime = 10 * time.Millisecond
	r.Run = func(ctx context.Context, _ Command) (Output, error) {
		<-ctx.Done()
		return Output{}, ctx.Err()
	}
	if _, err := s.Ensure(t.Context(), r, nil); err == nil || !strings.Contains(err.Error(), "longer than 10ms ([packages] maxTime)") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Ensure(ctx, x.request("a"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestVersionOfPythonIsAskedOnce(t *testing.T) {
	x, s := newIndex(t, nil), newStore(t)
	image := x.request().Image
	asked := 0
	ask := func(ctx context.Context, c Command) (Output, error) {
		asked++
		return x.run(ctx, c)
	}
	for range 2 {
		if v, err := s.PythonVersion(t.Context(), image, ask); v != "3.13.1" || err != nil {
			t.Errorf("got %q, %v", v, err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	says := func(context.Context, Command) (Output, error) { return Output{Stdout: []byte("3.13; evil")}, nil }
	if v, err := s.PythonVersion(t.Context(), Image{ID: "other"}, says); err == nil {
		t.Errorf("got %q", v)
	}
}

func TestStoreThatCannotBeMadeIsAnErrorOfRequests(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	x, s := newIndex(t, twoWheels(t)), openStore(t, filepath.Join(file, "packages"))
	if all, err := s.List(); len(all) != 0 || err != nil {
		t.Errorf("listed %v, %v", all, err)
	}
	if set, err := s.Ensure(t.Context(), x.request("a"), nil); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("got %v, %v", set, err)
	}
}

// A countedConn counts those that are open.
type countedConn struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

func TestCloseEndsConnections(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	var open, made atomic.Int64
	s.client.HTTP.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		open.Add(1)
		made.Add(1)
		return &countedConn{Conn: conn, open: &open}, nil
	}
	if _, err := s.Ensure(t.Context(), x.request("a"), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil || made.Load() == 0 || open.Load() > 0 {
		t.Errorf("%v, %d of %d connections stay", err, open.Load(), made.Load())
	}
}
