package consent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/ostest"
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
		ID: "ask-1", Run: "r", Client: "client <1.0>", Calls: calls, State: Approved, DecidedAt: time.Unix(1, 0),
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
		"answer": "approved", "scope": "run", "by": "toolcell approvals", "client": "client <1.0>", "pid": 7.0, "remark": "late",
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
	if !strings.Contains(string(data), `"client":"client <1.0>"`) { // for those who search the file
		t.Errorf("a name is escaped: %s", data)
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
	// linked prepares a file that leads elsewhere, and no lock: with it the link would be moved away.
	linked := func(target string) func(dir string) error {
		return func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, answersName+".lock"), 0o700), os.Symlink(target, filepath.Join(dir, answersName)))
		}
	}
	for name, tt := range map[string]struct {
		prepare func(dir string) error
		want    error
	}{
		"a file in place of the folder": {func(dir string) error {
			return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600))
		}, syscall.ENOTDIR},
		"a folder in place of the file": {linked("."), syscall.EISDIR},
		"a full disk":                   {linked("/dev/full"), syscall.ENOSPC},
		"no room for the full file": {func(dir string) error {
			full := filepath.Join(dir, answersName)
			return errors.Join(os.WriteFile(full, nil, 0o600), os.Truncate(full, maxAnswers), os.Mkdir(filepath.Join(dir, answersOld), 0o700))
		}, syscall.EEXIST},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := tt.prepare(dir); err != nil {
				t.Fatal(err)
			}
			if err := answers(dir).keep(answered()); !errors.Is(err, tt.want) || !strings.HasPrefix(err.Error(), "keeping an answer in "+dir+": ") {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if info, err := os.Stat(filepath.Join(dir, answersName)); err == nil && info.Mode().IsRegular() && info.Size() > maxAnswers {
				t.Errorf("the full file has %d bytes", info.Size())
			}
		})
	}
	never := answered()
	never.DecidedAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) // JSON has no such time
	if err := answers(t.TempDir()).keep(never); err == nil {
		t.Error("no error")
	}
	if err := answers("").keep(answered()); err != nil {
		t.Error(err)
	}
}

func TestTheFileOfAnswersIsClosed(t *testing.T) {
	f := answers(t.TempDir())
	if err := f.keep(answered()); err != nil {
		t.Fatal(err)
	}
	if open := ostest.OpenFiles(t, filepath.Join(string(f), answersName)); len(open) > 0 {
		t.Errorf("%q are open", open)
	}
}

// TestTheTerminalOfAnAnswerIsKept: that of the process that the answer came through, unless it
// is a form, which is shown elsewhere.
func TestTheTerminalOfAnAnswerIsKept(t *testing.T) {
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err := errors.Join(err, unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("pts/%d", number)
	theirs, err := os.OpenFile("/dev/"+name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	start := func(terminal bool) (pid int) {
		cmd := exec.Command("cat")
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		cmd.ExtraFiles = []*os.File{theirs}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: terminal, Ctty: 3}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
		return cmd.Process.Pid
	}
	at, without := start(true), start(false)
	for name, tt := range map[string]struct {
		by   string
		pid  int
		want string
	}{
		"typed":        {"terminal", at, name},
		"approvals":    {"toolcell approvals", at, name},
		"a form":       {"form", at, ""},
		"no terminal":  {"toolcell approvals", without, ""},
		"it has ended": {"toolcell approvals", 1 << 30, ""}, // no process has such a number
	} {
		q := answered()
		q.Answer.By, q.Answer.PID = tt.by, tt.pid
		if lines := answerLines(q); len(lines) != 1 || lines[0].Terminal != tt.want {
			t.Errorf("%s: got %+v, want the terminal %q", name, lines, tt.want)
		}
	}
}
