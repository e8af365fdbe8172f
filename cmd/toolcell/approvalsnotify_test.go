package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/terminaltest"
)

// waits is a question about a tool.
func waits(id, server, tool string) inbox.Question {
	return inbox.Question{ID: id, Server: server, Tool: tool, State: consent.Pending, Choices: []consent.Choice{consent.ForCall, consent.Deny}}
}

// fakeNotifySend puts a script on PATH in place of notify-send, and returns a file that gets
// its arguments, each on a line.
func fakeNotifySend(t *testing.T, script string) (shown string) {
	t.Helper()
	dir := t.TempDir()
	shown = filepath.Join(dir, "shown")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	text := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"$@\" >>'%s'\n%s\n", shown, script)
	if err := os.WriteFile(filepath.Join(dir, "notify-send"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return shown
}

// newTestNotifier returns one whose standard error is a file.
func newTestNotifier(t *testing.T, out *os.File) (n *notifier, errs func() string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	if out == nil {
		out = file
	}
	n, err = newNotifier(t.Context(), &console.Streams{Out: out, Err: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.close)
	return n, func() string {
		data, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
}

// lookAndWait looks at questions, and waits for the end of notify-send.
func (n *notifier) lookAndWait(all ...inbox.Question) {
	n.look(all)
	if n.sending != nil {
		err := <-n.sending
		n.sending <- err
		n.collect()
	}
}

func TestNotificationsSayWhatWaits(t *testing.T) {
	several := waits("ask-A", "bank", "")
	several.Calls = []inbox.Call{{Server: "bank", Tool: "pay"}, {Server: "mail", Tool: "send"}, {Server: "mail", Tool: "send"}}
	input := waits("ask-A", "bank", "pay")
	input.Choices, input.Message = nil, "your password"
	for want, news := range map[string][]inbox.Question{
		"bank.pay waits for your approval":                        {waits("ask-A", "bank", "pay")},
		"bank.pay and 2 more calls wait for your approval":        {several},
		"bank.pay asks you for input":                             {input},
		"a run asks what it may have before it starts":            {{ID: "ask-A", Subject: "network access to https://evil.example", Choices: several.Choices}},
		"3 questions wait for your answer":                        {waits("ask-A", "a", "b"), waits("ask-B", "a", "b"), waits("ask-C", "a", "b")},
		"s.<b>&?]9;1? --help`?074 waits for your approval":        {waits("ask-A", "s", "<b>&\x1b]9;1\a --help`\\074")},
		"--help.????? waits for your approval":                    {waits("ask-A", "--help", "\u202eé\n\x9b\U0001F600")},
		strings.Repeat("x", 40) + "....t waits for your approval": {waits("ask-A", strings.Repeat("x", 50_000), "t")},
	} {
		if got := notificationText(news); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// TestQuestionsAreNotifiedOnce, and those that come soon after each other together.
func TestQuestionsAreNotifiedOnce(t *testing.T) {
	shown := fakeNotifySend(t, "")
	n, errs := newTestNotifier(t, nil)
	first, second, third := waits("ask-A", "a", "one"), waits("ask-B", "<b>", "--help"), waits("ask-C", "a", "three")
	gone := waits("ask-D", "a", "gone")
	n.lookAndWait(first)
	n.lookAndWait(first, second, gone)
	gone.State = consent.Denied
	n.lookAndWait(first, second, gone, third)
	n.last = time.Now().Add(-notifyEvery)
	n.lookAndWait(first, second, gone, third)
	n.last = time.Time{}
	n.lookAndWait(first, second, gone, third)
	n.lookAndWait(waits("ask-E", "<b>&amp;", "--help"))
	const head = "--app-name=toolcell\n--\ntoolcell\n"
	want := head + "a.one waits for your approval\n" + head + "2 questions wait for your answer\n" + head + "&lt;b&gt;&amp;amp;.--help waits for your approval\n"
	if got, err := os.ReadFile(shown); err != nil || string(got) != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
	}
	if errs() != "" {
		t.Error(errs())
	}
}

func TestTheTerminalRings(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // without notify-send
	for term, want := range map[string]string{"xterm": "\a\x1b]9;toolcell: s.?[2J? waits for your approval\a", "dumb": "\a", "": "\a"} {
		t.Setenv("TERM", term)
		ours, theirs := terminaltest.Open(t, 80)
		n, _ := newTestNotifier(t, theirs)
		n.lookAndWait(waits("ask-A", "s", "\x1b[2J\a"))
		theirs.Close()
		buf := make([]byte, 1000)
		got, _ := ours.Read(buf)
		if string(buf[:got]) != want {
			t.Errorf("TERM=%s: the terminal got %q, want %q", term, buf[:got], want)
		}
	}
}

func TestNothingRingsOutsideOfATerminal(t *testing.T) {
	shown := fakeNotifySend(t, "")
	n, errs := newTestNotifier(t, nil) // whose standard output is a file
	n.lookAndWait(waits("ask-A", "a", "b"))
	if _, err := os.Stat(shown); err != nil || errs() != "" {
		t.Errorf("%v, and on the streams is %q", err, errs())
	}
}

// TestAFailureOfNotifySendIsNotedOnce, and its text cannot do anything.
func TestAFailureOfNotifySendIsNotedOnce(t *testing.T) {
	shown := fakeNotifySend(t, `printf 'no \033[2Jdesktop' >&2; exit 3`)
	n, errs := newTestNotifier(t, nil)
	for i := range 3 {
		n.last = time.Time{}
		n.lookAndWait(waits(fmt.Sprint("ask-", i), "a", "b"))
	}
	if got := errs(); strings.Count(got, "notify-send failed") != 1 || !strings.Contains(got, "exit status 3: no [2Jdesktop") {
		t.Errorf("it is said: %q", got)
	}
	if got, err := os.ReadFile(shown); err != nil || strings.Count(string(got), "waits") != 3 {
		t.Errorf("%v, it was called so: %s", err, got)
	}
}

// TestClosingEndsNotifySend, also one that would not end.
func TestClosingEndsNotifySend(t *testing.T) {
	fakeNotifySend(t, "exec sleep 1000")
	n, errs := newTestNotifier(t, nil)
	n.look([]inbox.Question{waits("ask-A", "a", "b")})
	n.last = time.Time{}
	n.look([]inbox.Question{waits("ask-B", "a", "b")}) // no other is started beside it
	n.close()
	if errs() != "" {
		t.Error(errs())
	}
}

func TestNotifyNeedsATerminalOrAProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if _, err := newNotifier(t.Context(), &console.Streams{Out: null, Err: null}); err == nil || !strings.Contains(err.Error(), "no notify-send") {
		t.Errorf("error %v", err)
	}
}
