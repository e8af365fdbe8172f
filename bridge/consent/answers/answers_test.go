package answers

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
)

func read(t *testing.T, dir, name string) (all []map[string]any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	for text := range bytes.Lines(data) {
		var l map[string]any
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		all = append(all, l)
	}
	return all
}

func question(calls ...consent.Call) consent.Question {
	return consent.Question{
		ID: "ask-1", Run: "r", Client: "client 1.0", Calls: calls, State: consent.Approved, DecidedAt: time.Unix(1, 0),
		Answer: consent.Answer{Choice: consent.ForRun, By: "toolcell approvals", PID: 7, Remark: "late"},
	}
}

// TestAnAnswerIsALineForEachCall, without arguments.
func TestAnAnswerIsALineForEachCall(t *testing.T) {
	f := Folder{filepath.Join(t.TempDir(), "state")}
	call := consent.Call{Server: "bank\n", Tool: "pay", Arguments: json.RawMessage(`{"to":"secret"}`)}
	if err := f.Keep(question(call, call)); err != nil {
		t.Fatal(err)
	}
	form := consent.Question{
		ID: "ask-2", Form: &consent.Form{Server: "bank", Tool: "pay", Message: "password?"}, State: consent.Answered,
		Answer: consent.Answer{Action: "accept", Content: map[string]any{"x": "secret"}, By: "form"},
	}
	before := consent.Question{ID: "ask-3", Subject: "packages", State: consent.Denied, Answer: consent.Answer{Choice: consent.Deny, By: "terminal"}}
	expired := consent.Question{ID: "ask-4", State: consent.Expired}
	for _, q := range []consent.Question{form, before, expired} {
		if err := f.Keep(q); err != nil {
			t.Fatal(err)
		}
	}
	all := read(t, f.Dir, name)
	if len(all) != 4 {
		t.Fatalf("%d lines: %v", len(all), all)
	}
	for key, want := range map[string]any{
		"time": "1970-01-01T00:00:01Z", "question": "ask-1", "run": "r", "about": "call", "server": "bank\n", "tool": "pay", "argumentsSHA256": call.Digest(),
		"answer": "approved", "scope": "run", "by": "toolcell approvals", "client": "client 1.0", "pid": 7.0, "remark": "late",
	} {
		if all[1][key] != want {
			t.Errorf("%s = %v, want %v", key, all[1][key], want)
		}
	}
	if all[2]["about"] != "input" || all[2]["scope"] != "accept" || all[2]["pid"] != float64(os.Getpid()) || all[3]["about"] != "before" || all[3]["answer"] != "denied" || all[3]["scope"] != nil {
		t.Errorf("%v", all[2:])
	}
	data, _ := os.ReadFile(filepath.Join(f.Dir, name))
	if strings.Contains(string(data), "secret") || strings.Contains(string(data), "password") {
		t.Errorf("what was entered or sent is kept: %s", data)
	}
	if info, err := os.Stat(filepath.Join(f.Dir, name)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestFilesOfAnswersAreBounded, and no line is lost or torn where several write.
func TestFilesOfAnswersAreBounded(t *testing.T) {
	f := Folder{t.TempDir()}
	if err := os.WriteFile(filepath.Join(f.Dir, name), bytes.Repeat([]byte("{}\n"), maxSize/3+1), 0o600); err != nil {
		t.Fatal(err)
	}
	var writing sync.WaitGroup
	for range 8 {
		writing.Go(func() {
			for range 5 {
				if err := f.Keep(question(consent.Call{Server: "bank", Tool: "pay"})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	if all := read(t, f.Dir, name); len(all) != 40 {
		t.Errorf("%d lines, want 40", len(all))
	}
	if info, err := os.Stat(filepath.Join(f.Dir, older)); err != nil || info.Size() < maxSize {
		t.Errorf("the full file: %v", err)
	}
	if entries, _ := os.ReadDir(f.Dir); len(entries) != 3 {
		t.Errorf("%v", entries)
	}
}

func TestAnswersThatCannotBeKeptAreAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (Folder{filepath.Join(file, "x")}).Keep(question()); err == nil {
		t.Error("no error")
	}
	if err := (Folder{}).Keep(question()); err != nil {
		t.Error(err)
	}
}
