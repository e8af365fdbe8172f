package pins

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// compared returns a comparison whose pins are in a folder.
func compared(dir string) *Comparison {
	return NewComparison(config.Server{Name: "my files", Command: "files"}, Store{dir}, slog.New(slog.DiscardHandler))
}

// unknown is of a server whose tools are not known.
func unknown() []Definition { return nil }

// hinted makes a definition of tool "a", with annotations.
func hinted(tb testing.TB, about, annotations string) Definition {
	tb.Helper()
	d := define(tb, fmt.Sprintf(`{"name":"a","description":%q,"annotations":%s}`, about, annotations))
	d.Hints = ReadHints(json.RawMessage(annotations))
	return d
}

// BenchmarkPinOfACall is what a call costs whose tool is as it was.
func BenchmarkPinOfACall(b *testing.B) {
	pinned := NewComparison(config.Server{Name: "fake", Command: "fake"}, Store{Dir: b.TempDir()}, slog.New(slog.DiscardHandler))
	tool := Definition{Name: "echo", Digest: "d1"}
	known := func() []Definition { return []Definition{tool} }
	pinned.Record(known())
	for b.Loop() {
		if s := pinned.Standing(tool, known); s.Changed() != "" {
			b.Fatal(s.Changed())
		}
	}
}

// TestToolThatWasNotComparedHasChanged: what holds for changed tools holds for it.
func TestToolThatWasNotComparedHasChanged(t *testing.T) {
	if s := (Standing{}); s.Changed() == "" || s.ReadsOnly {
		t.Errorf("%+v", s)
	}
}

func TestToolsStandAsThePinsSay(t *testing.T) {
	const (
		none    = `null`
		reads   = `{"readOnlyHint":true}`
		ignored = "the server says that it only reads, "
		accept  = ", and you have not accepted that: toolcell servers pins accept 'my files' a"
		notSaid = ignored + "but did not say so when the tool was pinned" + accept
		changed = "its definition has changed since DAY"
	)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := func(about, annotations string) Definition { return hinted(t, about, annotations) }
	other := tools(t, "b: B")[0]
	for name, tt := range map[string]struct {
		dir        string // if not a new one
		pinned     Definition
		accepted   Definition // whose hint the user has accepted, after the pinned one
		now        Definition
		changed    string
		readsOnly  bool
		unaccepted string
	}{
		"no hint":             {pinned: a("A", none), now: a("A", none)},
		"hint":                {pinned: a("A", reads), now: a("A", reads), readsOnly: true},
		"other text":          {pinned: a("A", none), now: a("2", none), changed: changed},
		"other text, hint":    {pinned: a("A", reads), now: a("2", reads), changed: changed, readsOnly: true},
		"hint taken back":     {pinned: a("A", reads), now: a("A", none), changed: changed},
		"hint added":          {pinned: a("A", none), now: a("A", reads), changed: changed, unaccepted: notSaid},
		"hint accepted":       {pinned: a("A", none), accepted: a("A", reads), now: a("A", reads), changed: changed, readsOnly: true},
		"accepted of another": {pinned: a("A", none), accepted: a("A", reads), now: a("2", reads), changed: changed, readsOnly: true},
		"new": {
			pinned: other, now: a("A", reads), changed: "it is a new tool, added on DAY",
			unaccepted: ignored + "but has added it since its tools were pinned" + accept,
		},
		"new, hint accepted": {pinned: other, accepted: a("A", reads), now: a("A", reads), changed: "it is a new tool, added on DAY", readsOnly: true},
		"not kept":           {dir: file, pinned: a("A", none), now: a("2", none), changed: changed},
		"not kept, hint": {
			dir: file, pinned: a("A", reads), now: a("A", reads),
			unaccepted: ignored + "which does not count, since pins cannot be kept: keeping pins: mkdir " + file + ": not a directory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tt.dir
			if dir == "" {
				dir = t.TempDir()
			}
			c := compared(dir)
			c.Record([]Definition{tt.pinned})
			if tt.accepted.Name != "" {
				c.Record([]Definition{tt.accepted})
				if err := c.Store.AcceptHint(c.Key, "a", tt.accepted.Digest); err != nil {
					t.Fatal(err)
				}
			}
			c.Record([]Definition{tt.now})
			got := c.Standing(tt.now, unknown)
			if tt.changed != "" {
				tt.changed += fmt.Sprintf(" (now sha256:%.12s); to see the change: toolcell servers pins 'my files'; to accept it: toolcell servers pins accept 'my files' a", tt.now.Digest)
			}
			if said := strings.ReplaceAll(got.Changed(), day(c.pins.Since), "DAY"); said != tt.changed {
				t.Errorf("changed: %q, want %q", said, tt.changed)
			}
			if got.ReadsOnly != tt.readsOnly || got.Unaccepted != tt.unaccepted || got.Acceptable != strings.HasSuffix(tt.unaccepted, accept) {
				t.Errorf("got %+v, want only reads: %t, unaccepted: %q", got, tt.readsOnly, tt.unaccepted)
			}
		})
	}
}

// TestToolsThatNowDestroyDoNotOnlyRead, whatever the user has accepted before.
func TestToolsThatNowDestroyDoNotOnlyRead(t *testing.T) {
	reads, destroys := hinted(t, "A", `{"readOnlyHint":true}`), hinted(t, "A", `{"readOnlyHint":true,"destructiveHint":true}`)
	const says, before = "says meanwhile that it destroys something too", "did not say so when the tool was pinned"
	for name, pinned := range map[string]Definition{"a pin": reads, "an accepted hint": hinted(t, "A", `null`)} {
		c := compared(t.TempDir())
		c.Record([]Definition{pinned})
		c.Record([]Definition{reads})
		if pinned.Digest != reads.Digest {
			if err := c.Store.AcceptHint(c.Key, "a", reads.Digest); err != nil {
				t.Fatal(err)
			}
		}
		c.Record([]Definition{destroys})
		if got := c.Standing(destroys, unknown); got.ReadsOnly || got.Changed() == "" || got.Acceptable || !strings.Contains(got.Unaccepted, map[bool]string{true: says, false: before}[name == "a pin"]) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestWithoutAFolderToolsAreComparedInOneProcess with what it saw first.
func TestWithoutAFolderToolsAreComparedInOneProcess(t *testing.T) {
	t.Chdir(t.TempDir())
	c := compared("")
	first, later := hinted(t, "A", `{"readOnlyHint":true}`), hinted(t, "2", `null`)
	c.Record([]Definition{first})
	if got := c.Standing(first, unknown); got.Changed() != "" || !got.ReadsOnly || got.Unaccepted != "" {
		t.Errorf("%+v", got)
	}
	c.Record([]Definition{later})
	if got := c.Standing(later, unknown); got.Changed() == "" || got.ReadsOnly {
		t.Errorf("%+v", got)
	}
	if notes := c.Notes(everyTool); len(notes) != 1 {
		t.Errorf("got %q", notes)
	}
	if notes := c.Notes(everyTool); notes != nil {
		t.Errorf("again: %q", notes)
	}
}

// TestDamagedPinsAreNoReasonToTrust: nothing counts as accepted.
func TestDamagedPinsAreNoReasonToTrust(t *testing.T) {
	c := compared(t.TempDir())
	var log bytes.Buffer
	c.log = slog.New(slog.NewTextHandler(&log, nil))
	if err := os.WriteFile(c.Store.File(c.Key), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	tool := hinted(t, "A", `{"readOnlyHint":true}`)
	c.Record([]Definition{tool})
	got := c.Standing(tool, unknown)
	if want := "its definition cannot be compared with what is pinned: reading " + c.Store.File(c.Key); !strings.HasPrefix(got.Changed(), want) {
		t.Errorf("got %q, want %q", got.Changed(), want)
	}
	if want := "the server says that it only reads, which does not count, since it cannot be compared with what is pinned"; got.ReadsOnly || got.Acceptable || got.Unaccepted != want {
		t.Errorf("got %+v, want %q", got, want)
	}
	shown := everyTool
	if notes := c.Notes(shown); len(notes) != 1 || !strings.HasPrefix(notes[0], `the tools of server "my files" cannot be compared with what is pinned of them: reading `) {
		t.Errorf("got %q", notes)
	}
	if notes := c.Notes(shown); notes != nil {
		t.Errorf("again: %q", notes)
	}
	if !strings.Contains(log.String(), c.Store.File(c.Key)) {
		t.Errorf("the log has %q", &log)
	}
}

func TestToolsThatAreNotKnownHaveChanged(t *testing.T) {
	c := compared(t.TempDir())
	tool := hinted(t, "A", `{"readOnlyHint":true}`)
	got := c.Standing(tool, unknown)
	if got.Changed() != "its definition cannot be compared with what is pinned" || got.ReadsOnly || got.Acceptable || !strings.HasSuffix(got.Unaccepted, "since it cannot be compared with what is pinned") {
		t.Errorf("%+v", got)
	}
	if got := c.Standing(tool, func() []Definition { return []Definition{tool} }); got.Changed() != "" || !got.ReadsOnly {
		t.Errorf("once they are known: %+v", got)
	}
}

func TestToolsOfAnEarlierProcessAreLearnedOnce(t *testing.T) {
	c := compared(t.TempDir())
	all := tools(t, "a: A")
	asked := 0
	for range 2 {
		c.Learn(func() []Definition { asked++; return all })
	}
	if got := c.Standing(all[0], unknown).Changed(); got != "" || asked != 1 {
		t.Errorf("asked %d times; %q", asked, got)
	}
}

// TestWhatAnotherProcessAcceptsCounts without another list of the server.
func TestWhatAnotherProcessAcceptsCounts(t *testing.T) {
	c := compared(t.TempDir())
	c.Record(tools(t, "a: A"))
	all := tools(t, "a: 2")
	c.Record(all)
	known := func() []Definition { return all }
	if c.Standing(all[0], known).Changed() == "" {
		t.Error("the change is not seen")
	}
	if _, err := (Store{c.Store.Dir}).Accept(c.Key, "a"); err != nil {
		t.Fatal(err)
	}
	if c.Standing(all[0], unknown).Changed() == "" {
		t.Error("accepted, though the tools are not known")
	}
	if got := c.Standing(all[0], known).Changed(); got != "" {
		t.Errorf("accepted, but %q", got)
	}
}

func TestAPanicLeavesNothingAccepted(t *testing.T) {
	broken := false
	contain.Inject(t, func(point string) bool { return broken && point == "pins: locked" })
	c := compared(t.TempDir())
	all := tools(t, "a: A")
	c.Record(all)
	broken = true
	if err := contain.Call("recording", func() error { c.Record(all); return nil }); err == nil {
		t.Error("it did not panic")
	}
	if got := c.Standing(all[0], unknown).Changed(); got != "its definition differs from the one that is pinned (now sha256:"+all[0].Digest[:12]+"); to see the change: toolcell servers pins 'my files'; to accept it: toolcell servers pins accept 'my files' a" {
		t.Errorf("got %q", got)
	}
	known := func() []Definition { return all }
	if got := c.Standing(all[0], known).Changed(); !strings.HasPrefix(got, "an internal error in toolcell while comparing a tool with its pin (ID ") {
		t.Errorf("got %q", got)
	}
	broken = false
	if got := c.Standing(all[0], known).Changed(); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestNotesNameWhatIsNew(t *testing.T) {
	const (
		show    = "toolcell servers pins 'my files' shows "
		hiding  = "which may hide instructions: "
		several = `6 tools of server "my files" ("a", "b", "c", "d", "e" and 1 more) `
	)
	all := func(about string) []Definition {
		return tools(t, "a: "+about, "b: "+about, "c: "+about, "d: "+about, "e: "+about, "f: "+about)
	}
	for name, tt := range map[string]struct {
		pinned, now []Definition
		want        []string
	}{
		"nothing":         {all("A"), all("A"), nil},
		"one new":         {tools(t, "z: Z"), tools(t, "z: Z", "a: A"), []string{`tool "a" of server "my files" is new, added on DAY: ` + show + "it"}},
		"several new":     {tools(t, "z: Z"), all("A"), []string{several + "are new: " + show + "them"}},
		"one changed":     {tools(t, "a: A"), tools(t, "a: 2"), []string{`tool "a" of server "my files" has changed its definition since DAY: ` + show + "how"}},
		"several changed": {all("A"), all("2"), []string{several + "have changed their definitions: " + show + "how"}},
		"one hides":       {nil, tools(t, "a: x\u202e"), []string{`tool "a" of server "my files" has hidden characters in its definition (description: U+202E), ` + hiding + show + "them"}},
		"several hide":    {nil, all("x\u202e"), []string{several + "have hidden characters in their definitions, " + hiding + show + "them"}},
		"each kind": {tools(t, "a: A"), tools(t, "a: x\u202e", "b: B"), []string{
			`tool "a" of server "my files" has changed its definition since DAY: ` + show + "how",
			`tool "a" of server "my files" has hidden characters in its definition (description: U+202E), ` + hiding + show + "them",
			`tool "b" of server "my files" is new, added on DAY: ` + show + "it",
		}},
		"not shown": {tools(t, "z: Z"), tools(t, "z: 2", "y: Y"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := compared(t.TempDir())
			if tt.pinned != nil {
				c.Record(tt.pinned)
			}
			c.Record(tt.now)
			shown := func(tool string) bool { return tool < "y" }
			var got []string
			for _, note := range c.Notes(shown) {
				got = append(got, strings.ReplaceAll(note, day(c.pins.Since), "DAY"))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if again := c.Notes(shown); again != nil {
				t.Errorf("again: %q", again)
			}
		})
	}
}

func everyTool(string) bool { return true }

// TestNoteOfAToolThatIsNotShownWaits until it is.
func TestNoteOfAToolThatIsNotShownWaits(t *testing.T) {
	for name, dir := range map[string]string{"on disk": t.TempDir(), "in memory": ""} {
		c := compared(dir)
		c.Record(tools(t, "a: A", "b: B"))
		c.Record(tools(t, "a: A2", "b: B2"))
		for shown, want := range map[string]string{"a": `tool "a" of`, "b": `tool "b" of`} {
			notes := c.Notes(func(tool string) bool { return tool == shown })
			if len(notes) != 1 || !strings.HasPrefix(notes[0], want) {
				t.Errorf("%s: %s is shown: %q", name, shown, notes)
			}
		}
	}
}

// TestNotesOfAnotherProcessAreLeftToIt: this one may not know the tools yet, and would drop
// their notes.
func TestNotesOfAnotherProcessAreLeftToIt(t *testing.T) {
	dir := t.TempDir()
	one, other := compared(dir), compared(dir)
	one.Record(tools(t, "a: A"))
	other.Record(tools(t, "a: A", "b: B"))
	if notes := one.Notes(func(tool string) bool { return tool == "a" }); notes != nil {
		t.Errorf("got %q", notes)
	}
	if notes := other.Notes(everyTool); len(notes) != 1 {
		t.Errorf("the other got %q", notes)
	}
}
