package pins

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// tools makes definitions, given as "name: description".
func tools(tb testing.TB, all ...string) (out []Definition) {
	tb.Helper()
	for _, one := range all {
		name, about, _ := strings.Cut(one, ": ")
		out = append(out, define(tb, fmt.Sprintf(`{"name":%q,"description":%q}`, name, about)))
	}
	return out
}

// changes returns how tools differ from their pins.
func changes(s *Server) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
		if c := s.Tools[name].Change(); c != Unchanged {
			all = append(all, name+" "+string(c))
		}
	}
	return strings.Join(all, ", ")
}

func TestPinsKeepTheFirstDefinitions(t *testing.T) {
	s := Store{t.TempDir()}
	record := func(want string, all ...string) {
		t.Helper()
		got, err := s.Record("k", "srv", nil, tools(t, all...))
		if err != nil || changes(got) != want {
			t.Fatalf("%q: got %q, want %q; %v", all, changes(got), want, err)
		}
		if kept, err := s.Read("k"); err != nil || changes(kept) != want || kept.Name != "srv" {
			t.Fatalf("%q: kept %q, want %q; %v", all, changes(kept), want, err)
		}
	}
	record("", "a: A", "b: B")
	record("", "b: B", "a: A")
	record("a changed", "a: evil", "b: B")
	record("a changed, c added", "a: evil", "b: B", "c: C")
	record("", "a: A", "b: B") // it is as it was
	record("b removed", "a: A")
	record("b changed", "a: A", "b: evil") // a pin outlives the tool
	record("a removed, b removed")
	record("b removed", "a: A")
	record("a changed, b removed, c added", "a: 2", "c: C")

	taken, err := s.Accept("k", "c")
	if err != nil || len(taken) != 1 || taken["c"].Pinned != nil {
		t.Errorf("took %v, %v", taken, err)
	}
	record("a changed, b removed", "a: 2", "c: C")
	record("a changed, b removed, c changed", "a: 2", "c: evil")
	if taken, err := s.Accept("k", ""); err != nil || len(taken) != 3 {
		t.Errorf("took %v, %v", taken, err)
	}
	record("", "a: 2", "c: evil")
	record("b added", "a: 2", "c: evil", "b: B")
	record("", "a: 2", "c: evil")
	record("b added", "a: 2", "c: evil", "b: B")
	if taken, err := s.Accept("k", "nothing"); err != nil || len(taken) != 0 {
		t.Errorf("took %v, %v", taken, err)
	}
}

func TestChangesAreToldOnce(t *testing.T) {
	s := Store{t.TempDir()}
	note := func(want string) {
		t.Helper()
		_, names, err := s.Note("k", everyTool)
		if err != nil || strings.Join(names, " ") != want {
			t.Errorf("got %q, want %q; %v", names, want, err)
		}
	}
	record := func(all ...string) {
		t.Helper()
		if _, err := s.Record("k", "srv", nil, tools(t, all...)); err != nil {
			t.Fatal(err)
		}
	}
	note("")
	record("a: A", "b: B", "hidden: x\u202e")
	note("hidden")
	note("")
	record("a: 2", "b: B", "hidden: x\u202e", "c: C")
	note("a c")
	note("")
	record("a: 3", "b: B", "hidden: x\u202e", "c: C")
	note("a")
	record("a: 3", "c: C")
	note("")
	record("a: 3", "c: C", "i: I", "h: H", "g: G", "f: F", "e: E", "d: D")
	note("d e f g h i")
}

// TestProcessesShareThePins while they learn different things.
func TestProcessesShareThePins(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			s := Store{dir}
			for n := range 10 {
				if _, err := s.Record("k", "srv", nil, tools(t, "a: A", fmt.Sprintf("b: %d", (i+n)%3))); err != nil {
					t.Error(err)
				}
				if _, _, err := s.Note("k", everyTool); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got, err := Store{dir}.Read("k")
	if err != nil || got.Tools["a"].Change() != Unchanged || got.Tools["b"].Pinned == nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAKilledWriterLeavesThePinsWhole(t *testing.T) {
	s := Store{t.TempDir()}
	if _, err := s.Record("k", "srv", nil, tools(t, "a: A")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.File("k")+".new", []byte(`{"server":"srv","to`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Record("k", "srv", nil, tools(t, "a: evil")); err != nil || changes(got) != "a changed" {
		t.Errorf("%v, %v", got, err)
	}
}

// TestDamagedPinsAreAnError, not a first use: who can damage the file would have
// everything pinned anew.
func TestDamagedPinsAreAnError(t *testing.T) {
	s := Store{t.TempDir()}
	for _, text := range []string{"", "{", `{"tools":{"a":null}}`, `{"tools":{"a":{}}}`, `{"tools":[]}`, "null", "{}", `{"server":"up","tools":{}}`, `{"since":"2026-01-02T03:04:05Z","tools":{"a":null}}`, `{"since":"2026-01-02T03:04:05Z","tools":{"a":{}}}`} {
		if err := os.WriteFile(s.File("k"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := s.Record("k", "srv", nil, tools(t, "a: A"))
		if got != nil || err == nil || !strings.Contains(err.Error(), "k.json: ") || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		if _, err := s.Accept("k", ""); err == nil {
			t.Errorf("%q: it can be accepted", text)
		}
	}
}

func TestPinsOfNoToolsAreComparedWith(t *testing.T) {
	s := Store{t.TempDir()}
	if err := os.WriteFile(s.File("k"), []byte(`{"server":"srv","since":"2026-01-02T03:04:05Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Record("k", "srv", nil, tools(t, "a: A")); err != nil || changes(got) != "a added" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestOnlyTheHintThatWasShownIsAccepted(t *testing.T) {
	const another = "the server defines the tool in another way by now"
	shown := hinted(t, "A", `{"readOnlyHint":true}`)
	destroys := hinted(t, "A", `{"readOnlyHint":true,"destructiveHint":true}`)
	for name, tt := range map[string]struct {
		now          Definition
		tool, digest string // that are accepted
		want         string // the error
	}{
		"as shown":      {shown, "a", shown.Digest, ""},
		"another text":  {hinted(t, "2", `{"readOnlyHint":true}`), "a", shown.Digest, another},
		"another tool":  {shown, "b", shown.Digest, another},
		"no hint":       {hinted(t, "2", `null`), "a", hinted(t, "2", `null`).Digest, another},
		"it destroys":   {destroys, "a", destroys.Digest, another},
		"of the pin":    {shown, "a", tools(t, "a: A")[0].Digest, another},
		"without a sum": {shown, "a", "", another},
	} {
		s := Store{t.TempDir()}
		for _, all := range [][]Definition{tools(t, "a: A"), {tt.now}} {
			if _, err := s.Record("k", "srv", nil, all); err != nil {
				t.Fatal(err)
			}
		}
		said := ""
		if err := s.AcceptHint("k", tt.tool, tt.digest); err != nil {
			said = err.Error()
		}
		got, err := s.Read("k")
		if err != nil || said != tt.want || got.Tools["a"].ReadsOnly != (tt.want == "") || got.Tools["a"].Change() != Changed {
			t.Errorf("%s: got %q, want %q; %+v, %v", name, said, tt.want, got.Tools["a"], err)
		}
	}
	if err := (Store{t.TempDir()}).AcceptHint("k", "a", shown.Digest); err == nil || err.Error() != another {
		t.Errorf("nothing is pinned: %v", err)
	}
}

// TestAnAcceptedHintEndsWhenItIsTakenBack: the next time that the server says it, the user is
// asked again.
func TestAnAcceptedHintEndsWhenItIsTakenBack(t *testing.T) {
	const reads = `{"readOnlyHint":true}`
	for name, tt := range map[string]struct {
		then []Definition
		want bool // it still is accepted
	}{
		"another text": {[]Definition{hinted(t, "2", reads)}, true},
		"taken back":   {[]Definition{hinted(t, "2", `null`)}, false},
		"as pinned":    {[]Definition{hinted(t, "A", `null`)}, false},
		"destroys":     {[]Definition{hinted(t, "A", `{"readOnlyHint":true,"destructiveHint":true}`)}, false},
		"gone":         {tools(t, "b: B"), false},
	} {
		s := Store{t.TempDir()}
		record := func(all []Definition) *Server {
			got, err := s.Record("k", "srv", nil, all)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		hint := []Definition{hinted(t, "A", reads)}
		record([]Definition{hinted(t, "A", `null`)})
		record(hint)
		if err := s.AcceptHint("k", "a", hint[0].Digest); err != nil {
			t.Fatal(err)
		}
		record(tt.then)
		if got := record(hint).Tools["a"]; got.Change() != Changed || got.ReadsOnly != tt.want {
			t.Errorf("%s: %+v, want accepted: %t", name, got, tt.want)
		}
	}
}

// TestWithoutAFolderNothingIsReadOrWritten: the current folder may be a project of others.
func TestWithoutAFolderNothingIsReadOrWritten(t *testing.T) {
	t.Chdir(t.TempDir())
	var s Store
	check := func(want int) {
		t.Helper()
		got, err := s.Record("k", "srv", nil, tools(t, "a: A"))
		if err != nil || changes(got) != "" {
			t.Errorf("recorded %q, %v", changes(got), err)
		}
		if got, err := s.Read("k"); err != nil || got != nil {
			t.Errorf("read %+v, %v", got, err)
		}
		if got, err := s.Accept("k", ""); err != nil || len(got) != 0 {
			t.Errorf("accepted %+v, %v", got, err)
		}
		if err := s.AcceptHint("k", "a", "d"); err == nil || err.Error() != "there is no folder to keep pins in" {
			t.Errorf("hint: %v", err)
		}
		if got, names, err := s.Note("k", everyTool); err != nil || got != nil || names != nil {
			t.Errorf("noted %+v, %q, %v", got, names, err)
		}
		if files, err := os.ReadDir("."); err != nil || len(files) != want {
			t.Errorf("it has %d files, %v", len(files), err)
		}
	}
	check(0)
	if err := os.WriteFile(s.File("k"), []byte(`{"since":"2026-01-02T03:04:05Z","tools":{"a":{"seen":{"sha256":"d","hints":{"readOnly":true}}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	check(1)
}

func TestDefinitionsAreKeptWhileThereIsRoom(t *testing.T) {
	version := func(size int) *Version {
		return &Version{Digest: fmt.Sprint(size), Shown: Shown{"description": strings.Repeat("x", size)}}
	}
	kept := func(s *Server) string {
		var all []string
		for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
			if s.Tools[name].Now().Shown != nil {
				all = append(all, name)
			}
		}
		return strings.Join(all, " ")
	}
	const half = maxAllShown / 2
	s := &Server{Tools: map[string]*Tool{
		"a": {Pinned: version(half)}, "b": {Pinned: version(half + 1)}, "c": {Pinned: version(half - 1)}, "d": {Seen: version(1)},
	}}
	s.bound()
	if got := kept(s); got != "a c d" {
		t.Errorf("kept %q", got)
	}
	// What did not fit is kept when others are smaller.
	s.Tools["a"].Pinned, s.Tools["c"].Pinned.Shown = version(half-3), nil
	var all []Definition
	for _, name := range []string{"a", "b", "c", "d"} {
		all = append(all, Definition{Name: name, Digest: s.Tools[name].Now().Digest, Shown: Shown{"description": "x"}, Hidden: []string{name}})
	}
	all[1].Shown, all[2].Shown = version(half+1).Shown, version(half-1).Shown
	if changed := s.record(all, time.Now()); !changed || kept(s) != "a b d" || s.Tools["b"].Pinned.Hidden == nil || s.Tools["a"].Pinned.Hidden != nil {
		t.Errorf("changed: %t, kept %q", changed, kept(s))
	}
	if s.record(all, time.Now()) {
		t.Error("it has changed again")
	}
}

// TestPinsThatCannotBeKeptStillCompare what one process sees.
func TestPinsThatCannotBeKeptStillCompare(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Store{file}.Record("k", "srv", nil, tools(t, "a: A"))
	if err == nil || got == nil || got.Tools["a"].Change() != Unchanged {
		t.Errorf("%v, %v", got, err)
	}
	if again, err := (Store{file}).Record("k", "srv", got, tools(t, "a: evil")); err == nil || changes(again) != "a changed" {
		t.Errorf("%v, %v", again, err)
	}
	s := Store{t.TempDir()}
	if err := os.MkdirAll(filepath.Join(s.File("k")+".new", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Record("k", "srv", nil, tools(t, "a: A")); err == nil || !strings.HasPrefix(err.Error(), "keeping pins: ") || got == nil {
		t.Errorf("%v, %v", got, err)
	}
}

//test:alone
func TestTenThousandToolsAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes thousands of tools")
	}
	s := Store{t.TempDir()}
	var all []Definition
	for i := range 10_000 {
		all = append(all, define(t, fmt.Sprintf(`{"name":"t%d","description":%q}`, i, strings.Repeat(fmt.Sprint(i), 300))))
	}
	all = append(all, define(t, `{"name":"huge","description":"`+strings.Repeat("x", 10<<20)+`"}`))
	if got, err := s.Record("k", "srv", nil, all); err != nil || len(got.Tools) != len(all) {
		t.Fatal(err)
	}
	info, err := os.Stat(s.File("k"))
	if err != nil || info.Size() > maxAllShown+int64(len(all))*300 {
		t.Fatalf("%d bytes, %v", info.Size(), err)
	}
	before := s.Stamp("k")
	for range 2 { // what fits by chance may be added once
		before = s.Stamp("k")
		if got, err := s.Record("k", "srv", nil, all); err != nil || changes(got) != "" {
			t.Fatalf("%s, %v", changes(got), err)
		}
	}
	if s.Stamp("k") != before {
		t.Error("it is written each time")
	}
	for i := range all {
		all[i] = define(t, fmt.Sprintf(`{"name":%q,"description":"2"}`, all[i].Name))
	}
	got, err := s.Record("k", "srv", nil, all)
	if err != nil || len(got.Unnoted(everyTool)) != len(all) {
		t.Fatalf("%d changes, %v", len(got.Unnoted(everyTool)), err)
	}
	// Names that never come again do not stay.
	for range 3 {
		if got, err = s.Record("k", "srv", nil, tools(t, "one: 1", "two: 2")); err != nil || len(got.Tools) != len(all)+2 {
			t.Fatalf("%d tools, %v", len(got.Tools), err)
		}
	}
}

func TestServersThatAreNotUsedAreForgotten(t *testing.T) {
	s := Store{t.TempDir()}
	for _, key := range []string{"new", "old", "kept"} {
		if _, err := s.Record(key, key, nil, tools(t, "a: A")); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-unusedFor - time.Hour)
	if err := errors.Join(os.Chtimes(s.File("old"), long, long), os.Chtimes(s.File("kept"), long, long)); err != nil {
		t.Fatal(err)
	}
	for i := range maxServers {
		path := s.File(fmt.Sprintf("f%04d", i))
		used := time.Now().Add(-time.Duration(i+1) * time.Hour)
		if err := errors.Join(os.WriteFile(path, []byte("{}"), 0o600), os.Chtimes(path, used, used)); err != nil {
			t.Fatal(err)
		}
	}
	s.Prune(map[string]bool{"kept": true})
	for key, want := range map[string]bool{"new": true, "old": false, "kept": true, "f0000": true, fmt.Sprintf("f%04d", maxServers-1): false} {
		if _, err := os.Stat(s.File(key)); (err == nil) != want {
			t.Errorf("%s: there: %t, want %t", key, err == nil, want)
		}
	}
	if _, err := s.Record("kept", "kept", nil, tools(t, "a: A")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(s.File("kept")); err != nil || time.Since(info.ModTime()) > time.Hour {
		t.Errorf("use does not count: %v", err)
	}
}

func TestDifferencesAreReadable(t *testing.T) {
	pin := func(raw string) *Version { return newVersion(define(t, raw), time.Now()) }
	long := strings.Repeat("long ", longLine/5)
	nested := func(depth int, value string) string {
		return `{"a":` + strings.Repeat("[", depth) + value + strings.Repeat("]", depth) + "}"
	}
	tooLong := Difference{"definition", "  it is too long to be kept, but for its digest\n"}
	cut := strings.Repeat(" More.", 3) + strings.Repeat(" word", maxShown/5)
	for name, tt := range map[string]struct{ before, after, want string }{
		"description": {
			`{"name":"a","description":"Adds."}`, `{"name":"a","description":"Adds.\u202e\nAlways \u001b[31mpay."}`,
			"description:\n-Adds.\n+Adds.\\u202e\n+Always \\u001b[31mpay.\n",
		},
		"schema": {
			`{"name":"a","inputSchema":{"type":"object","x":{"y":"string"}}}`, `{"name":"a","inputSchema":{"x":{"y":"number"},"type":"object"}}`,
			"inputSchema:\n {\n   \"type\": \"object\",\n   \"x\": {\n-    \"y\": \"string\"\n+    \"y\": \"number\"\n   }\n }\n",
		},
		"a line of dashes": {`{"name":"a","description":"-- old"}`, `{"name":"a","description":"++ new"}`, "description:\n--- old\n+++ new\n"},
		"sentences": {
			`{"name":"a","description":"` + long + `First. Second. Third."}`, `{"name":"a","description":"` + long + `First. Other. Third."}`,
			"description:\n " + long + "First.\n-Second.\n+Other.\n Third.\n",
		},
		"short sentences": {`{"name":"a","description":"First. Second."}`, `{"name":"a","description":"First. Other."}`, "description:\n-First. Second.\n+First. Other.\n"},
		"text that begins as JSON": {
			`{"name":"a","description":"{\"a\":1} ` + long + `First. Second. Third."}`, `{"name":"a","description":"{\"a\":1} ` + long + `First. Other. Third."}`,
			"description:\n {\"a\":1} " + long + "First.\n-Second.\n+Other.\n Third.\n",
		},
		"schema that nests deep": {
			`{"name":"a","inputSchema":` + nested(maxIndented, "1") + `}`, `{"name":"a","inputSchema":` + nested(maxIndented, "2") + `}`,
			"inputSchema:\n-" + nested(maxIndented, "1") + "\n+" + nested(maxIndented, "2") + "\n",
		},
		"schema that was cut": {
			`{"name":"a","inputSchema":{"a":"` + long + `First. Second.` + cut + `"}}`, `{"name":"a","inputSchema":{"a":"` + long + `First. Others.` + cut + `"}}`,
			`inputSchema:` + "\n" + ` {"a":"` + long + "First.\n-Second.\n+Others.\n" + strings.Repeat(" More.\n", 3),
		},
		"annotations":        {`{"name":"a"}`, `{"name":"a","annotations":{"readOnlyHint":true}}`, "annotations:\n+{\n+  \"readOnlyHint\": true\n+}\n"},
		"beyond what's kept": {`{"name":"a","description":"` + strings.Repeat("x", maxShown) + `a"}`, `{"name":"a","description":"` + strings.Repeat("x", maxShown) + `b"}`, "definition:\n  the change is beyond what is kept of it\n"},
	} {
		tool := Tool{Pinned: pin(tt.before), Seen: pin(tt.after)}
		var got strings.Builder
		for _, d := range tool.Differences() {
			got.WriteString(d.Part + ":\n" + d.Diff)
		}
		if got.String() != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got.String(), tt.want)
		}
	}
	for name, tt := range map[string]struct {
		tool Tool
		want []Difference
	}{
		"unchanged":      {Tool{Pinned: pin(`{"name":"a","title":"A"}`)}, nil},
		"pin is unknown": {Tool{Pinned: &Version{}, Seen: pin(`{"name":"a","title":"A"}`)}, []Difference{tooLong}},
		"now unknown":    {Tool{Pinned: pin(`{"name":"a","title":"A"}`), Seen: &Version{}}, []Difference{tooLong}},
		"added":          {Tool{Seen: pin(`{"name":"a","title":"A"}`)}, []Difference{{"title", "+A\n"}}},
	} {
		if got := tt.tool.Differences(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
	added := Tool{Seen: pin(`{"name":"a","description":"` + strings.Repeat(`line\n`, 3000) + `"}`)}
	got := added.Differences()
	if len(got) != 1 || strings.Count(got[0].Diff, "\n") != maxDiffLines+1 || !strings.HasSuffix(got[0].Diff, "more lines left out]\n") {
		t.Errorf("%+v", got)
	}
}
