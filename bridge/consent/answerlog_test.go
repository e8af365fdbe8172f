package consent

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func readAnswers(t *testing.T, dir, name string) (all []map[string]any) {
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

func answered(calls ...Call) Question {
	return Question{
		ID: "ask-1", Run: "r", Client: "client 1.0", Calls: calls, State: Approved, DecidedAt: time.Unix(1, 0),
		Answer: Answer{Choice: ForRun, By: "toolcell approvals", PID: 7, Remark: "late"},
	}
}

// TestAnAnswerIsALineForEachCall, without arguments.
func TestAnAnswerIsALineForEachCall(t *testing.T) {
	f := answers(filepath.Join(t.TempDir(), "state"))
	call := Call{Server: "bank\n", Tool: "pay", Arguments: json.RawMessage(`{"to":"secret"}`)}
	if err := f.keep(answered(call, call)); err != nil {
		t.Fatal(err)
	}
	form := Question{
		ID: "ask-2", Form: &Form{Server: "bank", Tool: "pay", Message: "password?"}, State: Answered,
		Answer: Answer{Action: "accept", Content: map[string]any{"x": "secret"}, By: "form"},
	}
	before := Question{ID: "ask-3", Subject: "packages", State: Denied, Answer: Answer{Choice: Deny, By: "terminal"}}
	expired := Question{ID: "ask-4", State: Expired}
	for _, q := range []Question{form, before, expired} {
		if err := f.keep(q); err != nil {
			t.Fatal(err)
		}
	}
	all := readAnswers(t, string(f), answersName)
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
	data, _ := os.ReadFile(filepath.Join(string(f), answersName))
	if strings.Contains(string(data), "secret") || strings.Contains(string(data), "password") {
		t.Errorf("what was entered or sent is kept: %s", data)
	}
	if info, err := os.Stat(filepath.Join(string(f), answersName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestFilesOfAnswersAreBounded, and no line is lost or torn where several write.
func TestFilesOfAnswersAreBounded(t *testing.T) {
	f := answers(t.TempDir())
	if err := os.WriteFile(filepath.Join(string(f), answersName), bytes.Repeat([]byte("{}\n"), maxAnswers/3+1), 0o600); err != nil {
		t.Fatal(err)
	}
	var writing sync.WaitGroup
	for range 8 {
		writing.Go(func() {
			for range 5 {
				if err := f.keep(answered(Call{Server: "bank", Tool: "pay"})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	if all := readAnswers(t, string(f), answersName); len(all) != 40 {
		t.Errorf("%d lines, want 40", len(all))
	}
	if info, err := os.Stat(filepath.Join(string(f), answersOld)); err != nil || info.Size() < maxAnswers {
		t.Errorf("the full file: %v", err)
	}
	if entries, _ := os.ReadDir(string(f)); len(entries) != 3 {
		t.Errorf("%v", entries)
	}
}

func TestAnswersThatCannotBeKeptAreAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := answers(filepath.Join(file, "x")).keep(answered()); err == nil {
		t.Error("no error")
	}
	if err := answers("").keep(answered()); err != nil {
		t.Error(err)
	}
}
