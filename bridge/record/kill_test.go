package record_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
)

// TestMain lets tests start this binary again, as a process that records runs until it is killed or
// its disk is full.
func TestMain(m *testing.M) {
	if dir := os.Getenv("RECORD_TEST_DIR"); dir != "" {
		os.Exit(recordRuns(dir, os.Getenv("RECORD_TEST_MODE")))
	}
	os.Exit(m.Run())
}

// recordRuns prints the ID of each run whose end is on record.
func recordRuns(dir, mode string) int {
	runs := 1 << 30
	switch mode {
	case "small disk":
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
			fmt.Println("no tmpfs:", err)
			return 3
		}
		runs = 200
	case "small files":
		signal.Ignore(syscall.SIGXFSZ) // which would end it
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 40_000, Max: 40_000}); err != nil {
			fmt.Println(err)
			return 3
		}
		runs = 200
	}
	j := record.Open(record.Options{Dir: dir, Host: "vm", Shared: mode == "shared"})
	var all sync.WaitGroup
	for worker := range 3 {
		all.Go(func() {
			for n := worker; n < runs; n += 3 {
				recordRun(j, fmt.Sprintf("%d-%d", os.Getpid(), n))
			}
		})
	}
	all.Wait()
	gap := j.Incomplete()
	fmt.Println("gap", gap.Entries, gap.Values, errors.Is(gap.Err, syscall.ENOSPC) || errors.Is(gap.Err, syscall.EFBIG))
	if mode == "small disk" {
		return afterFullDisk(dir, j)
	}
	return 0
}

func recordRun(j *record.Journal, id string) {
	run := j.Begin(id, "")
	err := run.Append(record.RunStart{Code: record.TextOf("print(1)")})
	for range 2 {
		call := run.NextCall()
		err = errors.Join(err, run.Append(record.CallStart{Call: call, Server: "s", Tool: "t", Arguments: record.TextOf("{}")}),
			run.Append(record.CallEnd{Call: call, Server: "s", Tool: "t", Outcome: record.OK}))
	}
	if err = errors.Join(err, run.Append(record.RunEnd{Status: "success"})); err == nil {
		fmt.Println(id)
	}
}

// afterFullDisk makes room on the full disk, and verifies there what is on record.
func afterFullDisk(dir string, j *record.Journal) int {
	if err := j.Ready(); !errors.Is(err, syscall.ENOSPC) {
		fmt.Println("ready on a full disk:", err)
		return 1
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, "size=1m"); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := j.Ready(); err != nil {
		fmt.Println("not ready with room:", err)
		return 1
	}
	recordRun(j, "last")
	if err := j.Close(); err != nil {
		fmt.Println(err)
		return 1
	}
	report, err := history.Open(dir).Verify(nil)
	fmt.Println("problems", report.Problems, err)
	return 0
}

// started starts this binary to record runs.
func started(t *testing.T, dir, mode string) (cmd *exec.Cmd, out io.Reader) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(exe)
	cmd.Env = append(os.Environ(), "RECORD_TEST_DIR="+dir, "RECORD_TEST_MODE="+mode)
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if mode == "small disk" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

// TestKilledProcessLosesNoEntryOfAFinishedRun at moments that are not chosen.
func TestKilledProcessLosesNoEntryOfAFinishedRun(t *testing.T) {
	for _, mode := range []string{"own", "shared"} {
		t.Run(mode, func(t *testing.T) {
			dir := t.TempDir()
			finished := map[string]bool{}
			for range 12 {
				cmd, out := started(t, dir, mode)
				lines := bufio.NewScanner(out)
				for wait := rand.IntN(40); wait >= 0 && lines.Scan(); wait-- {
					finished[lines.Text()] = true
				}
				<-time.After(time.Duration(rand.IntN(300)) * time.Microsecond)
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				for lines.Scan() {
					finished[lines.Text()] = true
				}
				_ = cmd.Wait()
			}
			whole(t, dir)
			compareRuns(t, dir, finished)
		})
	}
}

// compareRuns looks whether all that finished are on record, and no other run looks as if it had.
func compareRuns(t *testing.T, dir string, finished map[string]bool) {
	t.Helper()
	r := history.Open(dir)
	seen, killed := 0, 0
	for run, err := range r.Runs(history.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		switch run.Status {
		case "success":
			seen++
			if run.Calls != 2 || run.Unknown != 0 || run.Lost != 0 {
				t.Errorf("%+v", run)
			}
			delete(finished, run.ID)
		case history.StatusKilled, history.StatusIncomplete: // the latter if it was killed while it wrote
			killed++
			entries, err := r.Show(run.ID)
			if err != nil || len(history.UnknownCalls(entries)) != run.Unknown || run.Unknown != run.Calls-ends(entries) {
				t.Errorf("%+v: %d entries, %v", run, len(entries), err)
			}
		default:
			t.Errorf("%+v", run)
		}
	}
	for id := range finished {
		t.Errorf("run %s has finished and is not on record", id)
	}
	if seen == 0 || killed == 0 {
		t.Errorf("%d runs finished, %d were killed: the test saw too little", seen, killed)
	}
}

func ends(entries []history.Entry) (n int) {
	for _, e := range entries {
		if e.Kind == record.KindCallEnd {
			n++
		}
	}
	return n
}

// TestFullDiskOfTheSystem is a full disk as the kernel has it: a small tmpfs for root.
func TestFullDiskOfTheSystem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small disk")
	}
	cmd, out := started(t, t.TempDir(), "small disk")
	text, _ := io.ReadAll(out)
	err := cmd.Wait()
	if strings.HasPrefix(string(text), "no tmpfs") {
		t.Skip(string(text))
	}
	if err != nil || !strings.Contains(string(text), " true\nlast\nproblems [] <nil>\n") || strings.Contains(string(text), "gap 0") {
		t.Errorf("%v:\n%s", err, text)
	}
}

// TestFilesThatMayNotGrow is the same for any user, by a limit of the process.
func TestFilesThatMayNotGrow(t *testing.T) {
	dir := t.TempDir()
	cmd, out := started(t, dir, "small files")
	text, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	whole(t, dir)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	last := strings.Fields(lines[len(lines)-1])
	if lost, _ := strconv.Atoi(last[1]); lost == 0 || last[3] != "true" || len(lines) < 5 {
		t.Errorf("%d runs, %q", len(lines)-1, last)
	}
}
