package inbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"golang.org/x/sys/unix"
)

// helperVariable makes this test binary another process of a test.
const helperVariable = "TOOLCELL_TEST_INBOX"

func TestMain(m *testing.M) {
	helpers := map[string]func(args []string) error{"serve": helpServe, "list": helpList, "orphan": helpOrphan, "approve": helpApprove}
	if help := helpers[os.Getenv(helperVariable)]; help != nil {
		if err := help(os.Args[1:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func helper(what string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), helperVariable+"="+what)
	return cmd
}

// helpServe listens in a folder until it is killed.
func helpServe(args []string) error {
	if _, err := Listen(args[0], consent.NewQueue(consent.Options{}), nil, notStrict, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	fmt.Println("listening")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// helpList lists the questions of a folder by its descriptor 3, which it could not open
// itself.
func helpList(args []string) error {
	conns := folder{os.NewFile(3, "folder"), args[0]}.connect()
	if len(conns) != 1 {
		return fmt.Errorf("%d processes", len(conns))
	}
	_, err := (&Client{conn: conns[0], lines: bufio.NewReader(conns[0])}).List()
	return err
}

// helpOrphan starts helpApprove at the terminal that is its descriptor 3, and leaves it
// behind.
//
// As an agent, it runs a server of its own, and approves as its child.
func helpOrphan(args []string) error {
	if args[0] == "agent" {
		serve := helper("serve", args[1])
		out, err := serve.StdoutPipe()
		if err != nil {
			return err
		}
		if _, err = serve.StdinPipe(); err != nil {
			return err
		}
		if err := serve.Start(); err != nil {
			return err
		}
		defer serve.Process.Kill()
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			return err
		}
		cmd := helper("approve", args...)
		cmd.Stdin, cmd.Stdout = os.NewFile(3, "terminal"), os.Stdout
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		_ = cmd.Run() // it has printed why it fails
		return nil
	}
	cmd := helper("approve", args...)
	cmd.Stdin = os.NewFile(3, "terminal")
	cmd.Stdout = os.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: args[0] == "terminal"}
	cmd.Env = append(cmd.Env, "TOOLCELL_TEST_PARENT="+strconv.Itoa(os.Getpid()))
	return cmd.Start()
}

// helpApprove approves a question once its parent has left it.
func helpApprove(args []string) error {
	for strconv.Itoa(os.Getppid()) == os.Getenv("TOOLCELL_TEST_PARENT") {
		time.Sleep(time.Millisecond)
	}
	all, err := Connect(args[1])
	if err != nil {
		return err
	}
	for _, c := range slices.Clone(all) { // the one that has the question
		if _, err := c.Show(args[2]); err == nil {
			all = []*Client{c}
		}
	}
	if len(all) != 1 {
		return fmt.Errorf("%d processes", len(all))
	}
	begun, err := all[0].Begin(args[2], consent.Choice(args[3]), args[4])
	if err != nil {
		return err
	}
	if begun.Remark != "" {
		fmt.Println(begun.Remark)
	}
	if !strings.Contains(begun.Question.Text, args[2]) && !strings.Contains(begun.Question.Text, "transfer") {
		return errors.New(begun.Question.Text)
	}
	if err := all[0].Approve(args[2], strings.ToLower(begun.Code)); err != nil {
		return err
	}
	fmt.Println("approved")
	return nil
}

// approveElsewhere approves from a process that this test has not started, as far as
// can be seen, and returns what that prints.
func approveElsewhere(t *testing.T, where, dir, id string, choice consent.Choice) string {
	t.Helper()
	return approvePartElsewhere(t, where, dir, id, choice, "")
}

// approvePartElsewhere is approveElsewhere for some of the calls, as their numbers were typed.
func approvePartElsewhere(t *testing.T, where, dir, id string, choice consent.Choice, calls string) string {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err := errors.Join(err, unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)); err != nil {
		t.Fatal(err)
	}
	theirs, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	cmd := helper("orphan", where, dir, id, string(choice), calls)
	cmd.ExtraFiles = []*os.File{theirs}
	out, err := cmd.Output() // reads until the orphan ends, too
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestAPersonAtAnotherTerminalApproves(t *testing.T) {
	queue, dir, _ := open(t, consent.Options{})
	for _, choice := range []consent.Choice{consent.ForCall, consent.ForRun} {
		q, outcome := ask(t, queue, transfer)
		if got := approveElsewhere(t, "terminal", dir, q.ID, choice); got != lateTerminal+"\napproved\n" {
			t.Fatal(got)
		}
		if err := <-outcome; err != nil {
			t.Error(err)
		}
		if got, _ := queue.Question(q.ID); got.State != consent.Approved || got.Answer.Choice != choice || got.Answer.By != By || got.Answer.Remark != lateTerminal || got.Answer.PID == 0 {
			t.Errorf("%+v", got)
		}
	}
}

func TestAPersonAtAnotherTerminalApprovesSomeCalls(t *testing.T) {
	queue, dir, _ := open(t, consent.Options{})
	q, outcome := ask(t, queue, transfer, transfer, transfer)
	if got := approvePartElsewhere(t, "terminal", dir, q.ID, consent.ForCall, "1,3"); got != lateTerminal+"\napproved\n" {
		t.Fatal(got)
	}
	denied := 0
	for range q.Calls {
		if err := <-outcome; errors.Is(err, consent.ErrDenied) {
			denied++
		} else if err != nil {
			t.Error(err)
		}
	}
	shown, err := connect(t, dir).Show(q.ID)
	if denied != 1 || err != nil || shown.State != consent.Approved || !slices.Equal(shown.Allowed, []int{1, 3}) {
		t.Errorf("%d denied, %+v, %v", denied, shown, err)
	}
}

func TestWithoutATerminalNothingIsApproved(t *testing.T) {
	queue, dir, _ := open(t, consent.Options{})
	q, _ := ask(t, queue, transfer)
	if got := approveElsewhere(t, "none", dir, q.ID, consent.ForCall); !strings.Contains(got, ErrTerminal.Error()) {
		t.Error(got)
	}
	if got, _ := queue.Question(q.ID); got.State != consent.Pending {
		t.Errorf("the question is %s", got.State)
	}
}

func TestAChoiceThatIsNotOfferedIsNotApproved(t *testing.T) {
	queue, dir, _ := open(t, consent.Options{})
	once := transfer
	once.Once = true
	q, _ := ask(t, queue, once)
	for _, choice := range []consent.Choice{consent.ForRun, consent.Deny, "all"} {
		if got := approveElsewhere(t, "terminal", dir, q.ID, choice); !strings.Contains(got, "cannot be approved for") {
			t.Error(got)
		}
	}
}

func TestAKilledProcessLeavesNoSocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "approvals")
	cmd := helper("serve", dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "listening\n" {
		t.Fatal(line, err)
	}
	if all, err := Connect(dir); err != nil || len(all) != 1 || all[0].PID != cmd.Process.Pid {
		t.Fatal(all, err)
	}
	if err := errors.Join(cmd.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	left := func() (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if len(left()) != 1 {
		t.Fatalf("it left %v", left())
	}
	if all, err := Connect(dir); err != nil || len(all) != 0 || len(left()) != 0 {
		t.Errorf("%v, %v, and there is %v", all, err, left())
	}
}

func TestAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("to be another user takes root")
	}
	const nobody = 65534
	dir := t.TempDir()
	// As for the kernel: the folder and the socket of one user, and a process of another
	// that got in all the same.
	s, err := Listen(dir, consent.NewQueue(consent.Options{}), nil, notStrict, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, path := range []string{dir, filepath.Join(dir, s.name)} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := helper("list", dir)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Path = copyForAll(t, exe)
	cmd.ExtraFiles = []*os.File{f}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "another user") {
		t.Errorf("%s, %v", out, err)
	}
}

// copyForAll copies a program to where every user can run it.
func copyForAll(t *testing.T, exe string) string {
	t.Helper()
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "inbox")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "helper")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(path, data, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLaunchersReachUpToTheClient: behind a wrapper, whose input is a pipe, is what has
// started the wrapper.
func TestLaunchersReachUpToTheClient(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", "sh -c 'echo $$; read line; :'; :")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	inner, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	found, err := servingOf(inner)
	if err != nil {
		t.Fatal(err)
	}
	all := found.launchers
	has := func(pid int) bool { return slices.ContainsFunc(all, func(p procStat) bool { return p.pid == pid }) }
	if !has(cmd.Process.Pid) || !has(os.Getpid()) || has(inner) || has(1) && os.Getpid() != 1 {
		t.Errorf("%v, with the wrapper %d and the client %d", all, cmd.Process.Pid, os.Getpid())
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Error(err)
	}
}

func TestAProcessOutsideOfTheContainerCannotApprove(t *testing.T) {
	if _, err := mayApprove(0, []serving{{own: true}}); err == nil {
		t.Error("a process that cannot be seen may approve")
	}
}
