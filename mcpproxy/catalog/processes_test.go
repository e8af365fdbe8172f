package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// recordOf returns a record with this body, whatever it is.
func recordOf(t *testing.T, h head, body string) []byte {
	t.Helper()
	digest := sha256.Sum256([]byte(body))
	h.Format, h.Size, h.Digest = recordFormat, len(body), hex.EncodeToString(digest[:])
	line, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	return append(append(line, '\n'), body...)
}

// keep writes the record that another process has made.
func keep(t *testing.T, dir string, s config.Server, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, s.Fingerprint()+recordSuffix), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestListsOfOtherProcessesAreTaken instead of asking the server, if they are newer than one that is too old.
func TestListsOfOtherProcessesAreTaken(t *testing.T) {
	s := config.Server{Name: "s", Command: "x"}
	const one, two = `{"tools":[{"name":"a"}]}`, `{"tools":[{"name":"a"},{"name":"b"}]}`
	listed := func(age time.Duration, body string) []byte {
		return recordOf(t, head{Listed: time.Now().Add(-age)}, body)
	}
	damaged := listed(time.Minute, two)
	damaged[len(damaged)-1] ^= 0x20
	for name, tt := range map[string]struct {
		age   time.Duration
		other []byte // what another process writes meanwhile
		older bool   // than an hour
		tools int
	}{
		"not too old":           {30 * time.Minute, listed(time.Minute, two), false, 1},
		"too old":               {2 * time.Hour, nil, true, 1},
		"renewed":               {2 * time.Hour, listed(time.Minute, two), false, 2},
		"renewed, but long ago": {4 * time.Hour, listed(2*time.Hour, two), true, 2},
		"another is older":      {2 * time.Hour, listed(3*time.Hour, two), true, 1},
		"renewed and damaged":   {2 * time.Hour, damaged, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			keep(t, dir, s, listed(tt.age, one))
			r := recordIn(dir, s)
			if list, _ := r.Tools(); list == nil || list.Count() != 1 {
				t.Fatalf("list = %+v", list)
			}
			if tt.other != nil {
				keep(t, dir, s, tt.other)
			}
			if got := r.OlderThan(time.Hour); got != tt.older {
				t.Errorf("older than an hour: %t", got)
			}
			if list, _ := r.Tools(); list == nil || list.Count() != tt.tools || r.Count() != tt.tools {
				t.Errorf("list = %+v, counted as %d, want %d tools", list, r.Count(), tt.tools)
			}
		})
	}
	if recordIn(t.TempDir(), s).OlderThan(time.Hour) {
		t.Error("there is no list to be too old")
	}
}

func TestListIsOutdatedUntilTheServerIsAskedAgain(t *testing.T) {
	r, d := recordIn(t.TempDir(), config.Server{Name: "s", Command: "x"}), definitionsOf(t, `{"name":"a"}`)
	asked := r.ChangeCount()
	r.Outdated()
	r.Put(d, asked)
	if _, changed := r.Tools(); !changed {
		t.Error("a list that was asked for before the change counts as that after it")
	}
	r.Put(d, r.ChangeCount())
	if _, changed := r.Tools(); changed {
		t.Error("the new list counts as outdated")
	}
}

// TestInfoAndToolsDoNotUndoEachOther: each process writes the record as a whole.
func TestInfoAndToolsDoNotUndoEachOther(t *testing.T) {
	dir, s := t.TempDir(), config.Server{Name: "s", Command: "x"}
	fails := func(why string) func(*ServerInfo) { return func(m *ServerInfo) { m.Failure = why } }
	recordIn(dir, s).Remember(fails("it did not start"))
	if list, _ := recordIn(dir, s).Tools(); list != nil {
		t.Errorf("a server that gave no list has %d tools", list.Count())
	}
	recordIn(dir, s).Put(definitionsOf(t, `{"name":"a"}`), 0)
	if got := recordIn(dir, s).Info().Failure; got != "it did not start" {
		t.Errorf("after a list, the failure is %q", got)
	}
	recordIn(dir, s).Remember(fails(""))
	if got := recordIn(dir, s).Info().Failure; got != "" {
		t.Errorf("the failure is still %q", got)
	}
	if list, _ := recordIn(dir, s).Tools(); list == nil || list.Count() != 1 {
		t.Errorf("after the info changed: list = %+v", list)
	}

	mine, other := recordIn(dir, s), recordIn(dir, s)
	mine.Info()
	other.Remember(func(m *ServerInfo) { m.Title = "Other" })
	mine.Remember(fails("it ended"))
	if got := recordIn(dir, s).Info(); got.Title != "Other" || got.Failure != "it ended" {
		t.Errorf("of two processes, the info is %+v", got)
	}
}

// TestCountIsThatOfTheTools, as far as is known, whatever the head says.
func TestCountIsThatOfTheTools(t *testing.T) {
	s := config.Server{Name: "s", Command: "x"}
	const body = `{"tools":[{"name":"a"}]}`
	for name, tt := range map[string]struct {
		tools int
		more  string
		want  int // before the tools are read
	}{
		"right":      {1, "", 1},
		"wrong":      {5, "", 5},
		"below zero": {-5, "", 0},
		"huge":       {1 << 40, "", maxTools},
		"longer":     {1, "x", 0},
	} {
		dir := t.TempDir()
		keep(t, dir, s, append(recordOf(t, head{Listed: time.Now(), Tools: tt.tools}, body), tt.more...))
		r := recordIn(dir, s)
		if got := r.Count(); got != tt.want {
			t.Errorf("%s: %d tools by the head, want %d", name, got, tt.want)
		}
		if list, _ := r.Tools(); list != nil && r.Count() != 1 {
			t.Errorf("%s: %d tools are counted, there is one", name, r.Count())
		}
	}
}

// TestAliasesOnDiskDoNotCount: the same tools are the same list.
func TestAliasesOnDiskDoNotCount(t *testing.T) {
	dir, s := t.TempDir(), config.Server{Name: "s", Command: "x"}
	d := definitionsOf(t, `{"name":"a-b"}`)
	written := definitionsOf(t, `{"name":"a-b"}`)
	written.tools[0].Alias = "other"
	data, err := encodeRecord(head{Listed: time.Now(), Tools: 1}, written)
	if err != nil {
		t.Fatal(err)
	}
	keep(t, dir, s, data)
	r := recordIn(dir, s)
	list, _ := r.Tools()
	if list == nil || list.At(0).Alias != "a_b" {
		t.Fatalf("list = %+v", list)
	}
	if r.Put(d, 0) != list {
		t.Error("an equal list is another")
	}
}

// TestStoreWithoutAFolderKeepsNothing, nor takes files of the start directory for its own.
func TestStoreWithoutAFolderKeepsNothing(t *testing.T) {
	dir, s := t.TempDir(), config.Server{Name: "s", Command: "x"}
	t.Chdir(dir)
	recordIn("", s).Put(definitionsOf(t, `{"name":"a"}`), 0)
	if files, _ := filepath.Glob("*"); len(files) > 0 {
		t.Errorf("files = %q", files)
	}
	keep(t, dir, s, recordOf(t, head{Listed: time.Now(), Tools: 1}, `{"tools":[{"name":"a"}]}`))
	if n := recordIn("", s).Count(); n != 0 {
		t.Errorf("%d tools", n)
	}
}

func TestLogSaysWhyARecordIsNotUsedOrKept(t *testing.T) {
	s := config.Server{Name: "s", Command: "x"}
	const unused, unkept = "not using what is kept of a server's tools", "keeping a server's tools"
	whole := recordOf(t, head{Listed: time.Now(), Tools: 1}, `{"tools":[{"name":"a"}]}`)
	for name, tt := range map[string]struct {
		data []byte
		file bool // in place of the folder
		none bool // nothing is to be kept
		want []string
	}{
		"no record":     {},
		"damaged":       {data: []byte("hello\n"), want: []string{unused}},
		"damaged tools": {data: append(whole[:len(whole)-1:len(whole)-1], ' '), want: []string{unused}},
		"no folder":     {file: true, want: []string{unused, unkept}},
		"no store":      {none: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.data != nil {
				keep(t, dir, s, tt.data)
			}
			if tt.file {
				dir = filepath.Join(dir, "file")
				if err := os.WriteFile(dir, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tt.none {
				dir = ""
			}
			var log bytes.Buffer
			r := NewRecord(s, Store{dir, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
			r.Tools()
			r.Put(definitionsOf(t, `{"name":"a"}`), 0)
			if lines := strings.Count(log.String(), "\n"); lines != len(tt.want) {
				t.Errorf("%d lines are logged, want %d: %s", lines, len(tt.want), log.String())
			}
			for _, want := range tt.want {
				if !strings.Contains(log.String(), want) {
					t.Errorf("logged: %s, want %q", log.String(), want)
				}
			}
		})
	}
}
