package run

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/artifacts"
	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// onRecord returns the entries of a run, or its values by field.
func onRecord(t *testing.T, dir, id string) (entries []map[string]any, values map[string]string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*.jsonl"))
	values = map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var l map[string]any
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			switch {
			case l["run"] != id:
			case strings.HasSuffix(file, ".values.jsonl"):
				values[fmt.Sprint(l["field"])] = fmt.Sprint(l["value"])
			default:
				entries = append(entries, l)
			}
		}
	}
	return entries, values
}

func kindsOf(entries []map[string]any) string {
	var kinds []string
	for _, e := range entries {
		kinds = append(kinds, fmt.Sprint(e["kind"]))
	}
	return strings.Join(kinds, " ")
}

// TestARunIsOnRecord from its beginning to its end, whatever becomes of it.
func TestARunIsOnRecord(t *testing.T) {
	dir := t.TempDir()
	s := newServer(t, nil, func(o *Options) {
		o.Record, o.Sessions = record.Open(record.Options{Dir: dir, Command: "serve", Version: "1.2.3", User: "ada"}), 1
	})
	client := &consent.Client{Name: "editor 9", Program: "editor", Version: "9", Protocol: "2025-11-25", Taint: &consent.Taint{}}
	for _, tt := range []struct {
		name, kinds string
		status      string
		req         Request
		values      map[string]string
	}{
		{"a success", "run.start run.ready run.end", "success", Request{Code: "print('one'); 6 * 7"}, map[string]string{"code": "print('one'); 6 * 7", "stdout": "one\n", "result": "42"}},
		{"a failure", "run.start run.ready run.end", "error", Request{Code: "1 / 0"}, map[string]string{"error": "ZeroDivisionError: division by zero"}},
		{
			"a saved tool", "run.start run.ready file file file run.end", "success",
			Request{Code: "from mcp import runtime\ndef f(): return 7\nruntime.save_tool(f)\nimport user_tools\nprint(user_tools.f())\nruntime.remove_tool('f')"},
			map[string]string{"stdout": "7\n"},
		},
		{"a request that is wrong", "run.start run.end", "validation_error", Request{Code: " "}, map[string]string{"error": "code is empty; give Python source"}},
		{"a session", "run.start run.ready run.end", "success", Request{Code: "x = 1; print('first')", Session: "s"}, map[string]string{"stdout": "first\n"}},
		{"a session that goes on", "run.start run.ready run.end", "success", Request{Code: "print(x)", Session: "s"}, map[string]string{"stdout": "1\n"}},
		{"a timeout", "run.start run.ready limit run.end", "timeout", Request{Code: "while True: pass", Timeout: time.Second}, nil},
	} {
		tt.req.Client = client
		r := s.Do(t.Context(), tt.req)
		entries, values := onRecord(t, dir, r.Run)
		if r.Run == "" || kindsOf(entries) != tt.kinds || r.Status != tt.status {
			t.Errorf("%s: %s with the run %q has %q", tt.name, r.Status, r.Run, kindsOf(entries))
			continue
		}
		for field, want := range tt.values {
			if values[field] != want {
				t.Errorf("%s: the %s is %q, want %q", tt.name, field, values[field], want)
			}
		}
		start, end := entries[0], entries[len(entries)-1]
		if fmt.Sprint(start["client"]) != "map[era:2025-11-25 name:editor version:9]" || start["command"] != "serve" || start["version"] != "1.2.3" || start["user"] != "ada" || start["pid"] == nil {
			t.Errorf("%s: who began it is %v", tt.name, start)
		}
		if end["status"] != tt.status || end["durationUs"] == nil || (start["session"] == "s") != (tt.req.Session == "s") {
			t.Errorf("%s: %v … %v", tt.name, start, end)
		}
		if continued := tt.name == "a session that goes on"; len(entries) > 2 && (entries[1]["continued"] == true) != continued {
			t.Errorf("%s: %v", tt.name, entries[1])
		}
	}
}

// TestNothingOfPrivateServersIsKept: not in code, nor in what is sent to other servers, nor later in the
// session; what other runs of the client do is kept.
func TestNothingOfPrivateServersIsKept(t *testing.T) {
	for section, kept := range map[string]bool{"": false, "record = 'arguments'\n": true} {
		dir := t.TempDir()
		file := filepath.Join(t.TempDir(), "policy.toml")
		if err := os.WriteFile(file, []byte("[servers.notes]\nprivate = true\n"+section), 0o600); err != nil {
			t.Fatal(err)
		}
		s := newServer(t, nil, func(o *Options) {
			o.Policy = policy.Load(file, true, nil)
			o.Record, o.Sessions = record.Open(record.Options{Dir: dir}), 1
			read := func(context.Context, json.RawMessage) (string, error) { return "secret", nil }
			o.Upstreams = fakeUpstreams{"notes": {"read": read}, "tasks": {"add": read}}.Proxy(t, bridgetest.Options{})
		})
		client := &consent.Client{Taint: &consent.Taint{}}
		for _, tt := range []struct {
			name, session string
			servers       []string
			code          string
			private       bool
		}{
			{"reads", "s", []string{"notes", "tasks"}, "x = await mcp_notes.read()\nawait mcp_tasks.add(text=str(x))\nprint(x)", true},
			{"goes on", "s", []string{"tasks"}, "await mcp_tasks.add(text=str(x))\nprint(x)", true},
			{"may use all", "", []string{"*"}, "print('c')", true},
			{"is another", "", []string{"tasks"}, "await mcp_tasks.add(text='b')\nprint('c')", false},
		} {
			r := s.Do(t.Context(), Request{Code: tt.code, Session: tt.session, Servers: tt.servers, Client: client})
			if r.Status != StatusSuccess {
				t.Fatalf("%s: %s %s", tt.name, r.Status, r.Error)
			}
			_, values := onRecord(t, dir, r.Run)
			delete(values, "answer")
			want := !tt.private || kept
			if got := len(values) > 0; got != want {
				t.Errorf("%q: of a run that %s is kept: %v", section, tt.name, values)
			}
		}
		r := s.Do(t.Context(), Request{Code: "1", Servers: []string{"notes", "nowhere"}, Client: client})
		if _, values := onRecord(t, dir, r.Run); values["error"] != r.Error {
			t.Errorf("what toolcell itself says is not kept: %v", values)
		}
	}
}

// TestWordsOfTheUserAreNotToolcellsOwn: of a run that may have something private they are not kept.
func TestWordsOfTheUserAreNotToolcellsOwn(t *testing.T) {
	for _, private := range []bool{false, true} {
		dir := t.TempDir()
		s := newAsking(t, func(o *Options) {
			file := filepath.Join(t.TempDir(), "policy.toml")
			if err := os.WriteFile(file, fmt.Appendf(nil, "[servers.up]\nask = '*'\nprivate = %t\n", private), 0o600); err != nil {
				t.Fatal(err)
			}
			o.Policy, o.Record = policy.Load(file, true, nil), record.Open(record.Options{Dir: dir})
		})
		stop := func(context.Context, consent.Question) consent.Answer {
			return consent.Answer{Choice: consent.Stop, Because: "Ada is not to get it"}
		}
		r := s.Do(t.Context(), Request{Code: "await mcp_up.ask()", Servers: []string{"up"}, Ask: stop})
		if r.Status != StatusCancelled || r.Error != "the user stopped the run: Ada is not to get it" {
			t.Errorf("private %t: %s %s", private, r.Status, r.Error)
		}
		entries, values := onRecord(t, dir, r.Run)
		if all := fmt.Sprint(entries, values); strings.Contains(all, "Ada") == private || (values["because"] == "") != private {
			t.Errorf("private %t: %s", private, all)
		}
	}
}

// TestARunThatCannotBeRecorded goes on and says so, or does not begin.
func TestARunThatCannotBeRecorded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, required := range []bool{false, true} {
		s := newServer(t, nil, func(o *Options) {
			o.Record, o.RecordRequired = record.Open(record.Options{Dir: filepath.Join(file, "records")}), required
		})
		r := s.Do(t.Context(), Request{Code: "print(1)"})
		notes := strings.Join(r.Notes, " ")
		switch {
		case required && (r.Status != StatusRecord || len(r.Stdout) > 0 || !strings.Contains(r.Error, "nothing runs without a record") || !strings.Contains(r.Error, "not a directory")):
			t.Errorf("required: %s, %s, %v", r.Status, r.Error, r.Stdout)
		case !required && (r.Status != StatusSuccess || !strings.Contains(notes, "the record of this run is incomplete") || !strings.Contains(notes, "not a directory")):
			t.Errorf("not required: %s, %s", r.Status, notes)
		}
	}
}

// TestFilesOfPrivateRunsHaveNoDigest, by which their content could be guessed.
func TestFilesOfPrivateRunsHaveNoDigest(t *testing.T) {
	res := &Result{Files: []artifacts.File{{Name: "a.csv", Size: 3, SHA256: "abc"}}}
	for private, want := range map[bool]string{false: "abc", true: ""} {
		if got := (&Run{}).recordFiles(res, private); len(got) != 1 || got[0].Name != "a.csv" || got[0].SHA256 != want {
			t.Errorf("private %t: %+v", private, got)
		}
	}
}
