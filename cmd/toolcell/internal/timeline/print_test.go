package timeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
)

// call is one that left and was answered.
func call(n, line int, tool string, writes bool) []record.Entry {
	return []record.Entry{
		record.CallStart{Call: n, Line: line, Effect: "tools/call", Server: "bank", Tool: tool, Arguments: record.TextOf(fmt.Sprintf(`{"n":%d}`, n)), Writes: writes},
		record.CallEnd{Call: n, Line: line, Server: "bank", Tool: tool, Outcome: record.OK, Writes: writes, Duration: 2500, Answer: record.TextOf("{}")},
	}
}

// asking is a call that the user was asked about, with the answer.
func asking(answer record.Ask, more ...record.Entry) []record.Entry {
	answer.Question, answer.Calls = "ask-A", []int{1}
	return append([]record.Entry{
		record.RunStart{Policy: "abcdef"},
		record.Verdict{Call: 1, Effect: "tools/call", Server: "bank", Tool: "pay", Decision: "ask", Reasons: []string{"it writes", "it is new"}, Writes: true},
		record.Ask{Question: "ask-A", State: "asked", About: "call", Calls: []int{1}},
		answer,
	}, more...)
}

// TestCallsSayWhereTheServerRan, if that is on record: it is if it is not the default.
func TestCallsSayWhereTheServerRan(t *testing.T) {
	start := record.CallStart{Call: 1, Effect: "tools/call", Server: "bank", Where: "sandboxed", Tool: "look"}
	contain(t, printed(t, recorded(t, record.Options{}, record.RunStart{}, start, record.CallEnd{Call: 1, Server: "bank", Tool: "look", Outcome: record.OK, Duration: 2500}), Options{}),
		"ok  2.5ms  sandboxed\n")
}

// TestHeads say who ran what in what, what it did, what it cost and how it ended.
func TestHeads(t *testing.T) {
	five := 5
	for name, tt := range map[string]struct {
		entries   []record.Entry
		want, not []string
	}{
		"a client": {
			[]record.Entry{
				record.RunStart{
					Command: "serve", Version: "1.2.3", Client: record.Client{Name: "editor", Version: "9", Era: "2026-07-28"}, User: "ada", Host: "vm", PID: 42, Session: "s1",
					Grants: record.Grants{Servers: []string{"bank", "mail"}, Hosts: []string{"example.org"}, Folders: []string{"/home/ada/x:rw"}}, Policy: "0123456789abcdef",
				},
				record.RunReady{
					Image: record.Image{Name: "python:3.14", Digest: "sha256:01"}, Packages: []record.Package{{Name: "a", Version: "1"}, {Name: "b"}}, Folder: "/home/ada", Continued: true,
				},
				record.RunEnd{Status: "success", Duration: 61_400_000},
				record.RunCost{CPU: 1_500_000, Peak: 3 << 20, Sent: 100, Received: 2048},
			},
			[]string{
				"run aaaabbbbcccc  ", "  success after 1m1s\n", "\n  did       no calls\n", "\n  from      editor 9, by toolcell serve (toolcell 1.2.3, MCP 2026-07-28)\n",
				"\n  user      ada@vm, process 42\n", "\n  session   s1, continued\n", "\n  granted   servers bank, mail; hosts example.org; folders /home/ada/x:rw\n",
				"\n  image     python:3.14 (sha256:01)\n", "\n  packages  a 1, b\n", "\n  folder    /home/ada\n", "\n  policy    SHA-256 0123456789ab\n",
				"\n  cost      1m1s, 1.5s of processor time, 3 MiB of memory at most, 100 bytes sent, 2 KiB received\n",
			},
			[]string{"error", "killed", "NOTES", "CODE", "WHAT IT DID"},
		},
		"a dry run of the shell": {
			[]record.Entry{record.RunStart{Command: "exec", Plan: true, Code: record.TextOf("1")}, record.RunEnd{Status: "error", ExitCode: &five, Error: record.TextOf("SystemExit: 5")}},
			[]string{
				"  error, exit code 5\n", "\n  error     SystemExit: 5\n", "\n  from      toolcell exec\n", "\n  plan      a dry run: ", "\n  granted   no servers, hosts or folders\n",
				"\n  image     none: the code never ran\n", "\n  policy    none\n",
			},
			[]string{"session", "cost", "ERROR"},
		},
		"killed": {
			[]record.Entry{record.RunStart{}, record.CallStart{Call: 1, Server: "bank", Tool: "pay", Writes: true}},
			[]string{"  killed\n  killed    its process ended before the run did", "did       1 call, 1 may have changed something, 1 unknown: may have taken effect\n"},
			nil,
		},
		"all ends of calls": {
			append(append([]record.Entry{record.RunStart{}}, call(1, 0, "pay", true)...),
				record.CallStart{Call: 2, Server: "bank", Tool: "pay"}, record.CallEnd{Call: 2, Server: "bank", Tool: "pay", Outcome: record.ToolError},
				record.CallStart{Call: 3, Server: "bank", Tool: "pay"}, record.CallEnd{Call: 3, Server: "bank", Tool: "pay", Outcome: record.Timeout},
				record.CallEnd{Call: 4, Server: "bank", Tool: "nothing", Outcome: record.Refused}, record.RunEnd{Status: "error"}),
			[]string{"did       3 calls, 1 may have changed something, 2 failed, 1 not sent\n", "cost      2 bytes answered by servers, about 1 tokens\n"},
			nil,
		},
		"out of memory": {
			[]record.Entry{
				record.RunStart{},
				record.Limit{Name: "memory", Max: 1 << 30, Unit: "bytes", Effect: "killed"},
				record.Limit{Name: "time", Max: 60, Unit: "seconds", Effect: "killed"},
				record.RunEnd{Status: "memory_limit"},
			},
			[]string{"  memory_limit\n", "  limit     memory: 1 GiB, killed\n", "  limit     time: 60 seconds, killed\n"},
			nil,
		},
		"without its beginning": {
			[]record.Entry{record.RunEnd{Status: "success"}, record.Torn{Lost: 2, Error: "no space left on device"}},
			[]string{"NOTES\n  the beginning of the run is not on record\n", "torn      entries are missing here: no space left on device\n"},
			[]string{"from"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := printed(t, recorded(t, record.Options{}, tt.entries...), Options{})
			contain(t, out, tt.want...)
			for _, not := range tt.not {
				if strings.Contains(out, not) {
					t.Errorf("there is %q in\n%s", not, out)
				}
			}
		})
	}
}

// TestMarginsNameTheCallsOfALine, and whether one of them may have changed something.
func TestMarginsNameTheCallsOfALine(t *testing.T) {
	at := func(lines ...int) (entries []record.Entry) { // the calls 1, 2 and so on
		for i, line := range lines {
			entries = append(entries, call(i+1, line, "look", false)...)
		}
		return entries
	}
	for name, tt := range map[string]struct {
		code    string
		entries []record.Entry
		want    string
	}{
		"none":             {"a\nb\n", nil, "      1  a\n      2  b\n"},
		"one":              {"a\nb", at(2), "        1  a\n  #1    2  b\n  # calls of this line; * may have changed something\n"},
		"some that follow": {"a\nb", at(1, 1, 1), "  #1-3    1  a\n          2  b\n"},
		"others between":   {"a\nb", at(1, 2, 1), "  #1,3    1  a\n    #2    2  b\n"},
		"many":             {"a\nb", at(1, 2, 1, 2, 1, 2, 1), "  #1,3,…7    1  a\n   #2,4,6    2  b\n"},
		"one that writes":  {"a", append(at(1), call(2, 1, "pay", true)...), "  #1-2*    1  a\n"},
		"one not sent":     {"a", append(at(1), record.CallEnd{Call: 2, Line: 1, Server: "bank", Tool: "pay", Outcome: record.Refused, Writes: true}), "  #1-2    1  a\n"},
		"one denied":       {"a", []record.Entry{record.Verdict{Call: 1, Line: 1, Server: "bank", Tool: "pay", Decision: "deny", Writes: true}}, "  #1    1  a\n"},
		"one of a dry run": {"a", []record.Entry{record.Verdict{Call: 1, Line: 1, Server: "bank", Tool: "pay", Decision: "plan", Writes: true}}, "  #1    1  a\n"},
		"no known line":    {"a", at(0, 99, 1), "  #3    1  a\n  #1-2, whose lines are not known or not here\n"},
		"tabs and an end":  {"if x:\n\ty\r\n", at(2), "  #1    2      y\n"},
		"hidden":           {"x = 'a\u202eb\u200b'", at(1), `x = 'a\u202eb\u200b'`},
	} {
		t.Run(name, func(t *testing.T) {
			out := printed(t, recorded(t, record.Options{}, append([]record.Entry{record.RunStart{Code: record.TextOf(tt.code)}}, tt.entries...)...), Options{})
			_, code, _ := strings.Cut(out, "CODE\n")
			contain(t, code, tt.want)
		})
	}
}

// TestCallsOfLinesThatWereCut are named below the gap, which is the end of code.
func TestCallsOfLinesThatWereCut(t *testing.T) {
	code := strings.Repeat("first\n", 20) + strings.Repeat("last\n", 200)
	out := printed(t, recorded(t, record.Options{MaxValue: 64}, append([]record.Entry{record.RunStart{Code: record.TextOf(code)}},
		append(call(1, 2, "look", false), call(2, 230, "look", false)...)...)...), Options{})
	contain(t, out, "\nCODE  (", " left out)\n", "  #1    2  first\n", "   11  firs\n           … 1 KiB left out …\n  #2, whose lines are not known or not here\n")
}

// TestWhoAllowedACall is said below it, in words of what the user did.
func TestWhoAllowedACall(t *testing.T) {
	sent := call(1, 0, "pay", true)
	for name, tt := range map[string]struct {
		entries []record.Entry
		want    string
	}{
		"no policy":       {append([]record.Entry{record.RunStart{}}, sent...), "no policy: not asked"},
		"the policy":      {append([]record.Entry{record.RunStart{Policy: "ab"}}, sent...), "allowed by the policy"},
		"in a form":       {asking(record.Ask{State: "approved", By: "form", Client: "editor", Scope: "call", Waited: 2_000_000}, sent...), "allowed by the user in a form of editor, after 2s (ask-A)"},
		"at the terminal": {asking(record.Ask{State: "approved", By: "terminal", Scope: "call"}, sent...), "allowed by the user at the terminal (ask-A)"},
		"with a command":  {asking(record.Ask{State: "approved", By: "toolcell approvals", Terminal: "pts/4", Remark: "the terminal is new"}, sent...), "allowed by the user with toolcell approvals on pts/4 (ask-A); the terminal is new"},
		"as reading":      {asking(record.Ask{State: "approved", Scope: "reads"}, sent...), "allowed by the user, and the tool counts as only reading (ask-A)"},
		"for the run":     {asking(record.Ask{State: "approved", Scope: "run"}, append(slices.Clone(sent), record.CallStart{Call: 2, Effect: "tools/call", Server: "bank", Tool: "pay", Writes: true, Question: "ask-A"})...), "allowed for the rest of the run: allowed by the user, until the run ends (ask-A)"},
		"for the connection": {
			asking(record.Ask{State: "approved", Scope: "connection-same"}, append(slices.Clone(sent), record.CallStart{Call: 2, Effect: "tools/call", Server: "bank", Tool: "pay", Writes: true, Question: "ask-A"})...),
			"allowed for the connection: allowed by the user, with these arguments until the client disconnects (ask-A)",
		},
		"for the connection, and taken back": {
			asking(record.Ask{State: "approved", Scope: "connection"}, append(slices.Clone(sent), record.CallStart{Call: 2, Effect: "tools/call", Server: "bank", Tool: "pay", Writes: true, Question: "ask-A"}, record.Ask{Question: "ask-A", State: "revoked"})...),
			"allowed for the connection: allowed by the user, and taken back later (ask-A)",
		},
		"in another run": {
			[]record.Entry{record.RunStart{Policy: "ab"}, record.CallStart{Call: 1, Effect: "tools/call", Server: "bank", Tool: "look", Question: "ask-Z"}, record.CallEnd{Call: 1, Server: "bank", Tool: "look", Outcome: record.OK}},
			"allowed for the connection: by the user in another run (ask-Z)",
		},
		"taken back":       {asking(record.Ask{State: "approved", Scope: "run"}, append(slices.Clone(sent), record.Ask{Question: "ask-A", State: "revoked"})...), "allowed by the user, and taken back later (ask-A)"},
		"denied":           {asking(record.Ask{State: "denied", By: "form"}, record.CallEnd{Call: 1, Outcome: record.Refused}), "denied by the user in a form (ask-A)"},
		"with a reason":    {asking(record.Ask{State: "denied", By: "form", Because: record.TextOf("use the test account")}, record.CallEnd{Call: 1, Outcome: record.Refused}), "denied by the user in a form (ask-A): use the test account"},
		"in part":          {asking(record.Ask{State: "approved", By: "form", Allowed: []int{1}, Because: record.TextOf("not twice")}, sent...), "allowed by the user in a form (ask-A)"},
		"left out":         {asking(record.Ask{State: "approved", By: "form", Allowed: []int{2}, Because: record.TextOf("not twice")}, record.CallEnd{Call: 1, Outcome: record.Refused}), "denied by the user in a form, who allowed other calls (ask-A): not twice"},
		"stopped":          {asking(record.Ask{State: "stopped"}, record.CallEnd{Call: 1, Outcome: record.Refused}), "denied by the user, who stopped the run (ask-A)"},
		"expired":          {asking(record.Ask{State: "expired"}), "no answer came in time (ask-A)"},
		"ended":            {asking(record.Ask{State: "ended"}), "the run ended before an answer (ask-A)"},
		"without an end":   {asking(record.Ask{State: "asked"}), "the user was asked, and there is no answer (ask-A)"},
		"refused":          {[]record.Entry{record.RunStart{}, record.Verdict{Call: 1, Server: "bank", Tool: "pay", Decision: "deny", Reasons: []string{"deny = '*'"}}}, "refused by the policy: deny = '*'"},
		"why it was asked": {asking(record.Ask{State: "denied"}), "a rule asks: it writes; it is new"},
	} {
		t.Run(name, func(t *testing.T) {
			contain(t, printed(t, recorded(t, record.Options{}, tt.entries...), Options{}), "                  "+tt.want+"\n")
		})
	}
}

// TestAReasonIsShownOnce: the error that the code got has it, too.
func TestAReasonIsShownOnce(t *testing.T) {
	for state, err := range map[string]string{"denied": "denied by the user, who says: not twice", "stopped": "the user stopped the run: not twice"} {
		entries := asking(record.Ask{State: state, Because: record.TextOf("not twice")}, record.CallEnd{Call: 1, Outcome: record.Refused, Error: record.TextOf(err)})
		if out := printed(t, recorded(t, record.Options{}, entries...), Options{}); strings.Count(out, "not twice") != 1 {
			t.Errorf("%s:\n%s", state, out)
		}
		out := printed(t, recorded(t, record.Options{}, entries...), Options{Hide: func(string) bool { return true }, ToShow: "--values"})
		contain(t, out, "(ask-A): (9 bytes, not shown: --values)\n")
	}
	before := []record.Entry{record.RunStart{}, record.Ask{Question: "ask-B", State: "asked", About: "before"}, record.Ask{Question: "ask-B", State: "denied", About: "before", Because: record.TextOf("no packages")}}
	contain(t, printed(t, recorded(t, record.Options{}, before...), Options{}), "question  asked before the code ran: denied by the user (ask-B): no packages\n")
}

// TestOutcomesInWords, so that nobody takes a call for one that had no effect.
func TestOutcomesInWords(t *testing.T) {
	for outcome, want := range map[record.Outcome]string{
		record.OK: "ok  2.5ms", record.ToolError: "tool_error  2.5ms", record.ProtocolError: "protocol_error  2.5ms", record.Unknown: "unknown: may have taken effect  2.5ms",
		record.Timeout: "timeout, may have taken effect  2.5ms", record.Cancelled: "cancelled, may have taken effect  2.5ms", record.Refused: "refused, nothing was sent  2.5ms",
		"": "unknown: may have taken effect",
	} {
		entries := []record.Entry{record.RunStart{}, record.CallStart{Call: 1, Effect: "resources/read", Server: "bank", Tool: "x://1", Writes: true}}
		if outcome != "" {
			entries = append(entries, record.CallEnd{Call: 1, Server: "bank", Tool: "x://1", Outcome: outcome, Duration: 2500, Error: record.TextOf("it said no")})
		}
		out := printed(t, recorded(t, record.Options{Keep: record.KeepAll}, entries...), Options{})
		contain(t, out, "#1   bank resources/read x://1  writes  "+want+"\n")
		if outcome != "" {
			contain(t, out, "error: it said no\n")
		}
	}
	for decision, want := range map[string]string{"plan": "planned, nothing was sent", "deny": "refused, nothing was sent"} {
		contain(t, printed(t, recorded(t, record.Options{}, record.RunStart{}, record.Verdict{Call: 1, Server: "bank", Tool: "pay", Decision: decision, Writes: true, Arguments: record.TextOf(`{"to":"Ada"}`)}), Options{}),
			"#1   bank.pay  writes  "+want+"\n", `{"to":"Ada"}`)
	}
	contain(t, printed(t, recorded(t, record.Options{}, asking(record.Ask{State: "asked"})...), Options{}), "did       no calls, 1 not sent\n", "#1   bank.pay  writes  unanswered, nothing was sent\n")
	waiting := recorded(t, record.Options{}, asking(record.Ask{State: "asked"})...)
	waiting.Run.Status = history.StatusWaiting
	contain(t, printed(t, New(waiting.Run, waiting.entries), Options{}), "  waiting\n", "did       no calls, 1 waiting for you\n", "#1   bank.pay  writes  waits for the user\n")
}

// TestACallThatOnlyReadsHadNoEffect, however it ended.
func TestACallThatOnlyReadsHadNoEffect(t *testing.T) {
	for outcome, want := range map[record.Outcome]string{record.Timeout: "timeout  2.5ms", record.Cancelled: "cancelled  2.5ms", "": "unknown: no answer came"} {
		entries := []record.Entry{record.RunStart{}, record.CallStart{Call: 1, Effect: "tools/call", Server: "bank", Tool: "look"}}
		if outcome != "" {
			entries = append(entries, record.CallEnd{Call: 1, Server: "bank", Tool: "look", Outcome: outcome, Duration: 2500})
		}
		contain(t, printed(t, recorded(t, record.Options{}, entries...), Options{}), "#1   bank.look  reads   "+want+"\n")
	}
}

// TestACallOfARunThatGoesOnIsUnderWay, unless its answer is known to be lost.
func TestACallOfARunThatGoesOnIsUnderWay(t *testing.T) {
	killed := recorded(t, record.Options{}, record.RunStart{}, record.CallStart{Call: 1, Server: "bank", Tool: "pay", Writes: true},
		record.CallStart{Call: 2, Server: "bank", Tool: "pay", Writes: true}, record.CallEnd{Call: 2, Server: "bank", Tool: "pay", Outcome: record.Unknown, Writes: true})
	contain(t, StatusOf(killed.Run), "killed (2 unknown)")
	for _, status := range []string{history.StatusRunning, history.StatusWaiting} {
		run := killed.Run
		run.Status = status
		goesOn := New(run, killed.entries)
		contain(t, printed(t, goesOn, Options{}), "did       2 calls, 2 may have changed something, 1 unknown: may have taken effect, 1 under way\n",
			"#1   bank.pay  writes  under way for ", "#2   bank.pay  writes  unknown: may have taken effect")
		if first := goesOn.Calls[0]; first.Outcome() != UnderWay || first.RecordedOutcome() != string(record.Unknown) {
			t.Errorf("%s: it is %s, on record %s", status, first.Outcome(), first.RecordedOutcome())
		}
		if got := goesOn.Summary().Uncertain; !slices.Equal(got, []int{1, 2}) {
			t.Errorf("%s: unknown are %v", status, got)
		}
	}
	for underWay, want := range map[int]string{1: "running (1 call under way, 2 unknown)", 2: "running (2 calls under way, 1 unknown)", 3: "running (3 calls under way)"} {
		if got := StatusOf(history.Run{Status: history.StatusRunning, Unknown: 3, UnderWay: underWay}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestWhatIsBetweenTheCalls is in the story, in words.
func TestWhatIsBetweenTheCalls(t *testing.T) {
	for want, entry := range map[string]record.Entry{
		"granted   packages: the policy asks": record.Verdict{Effect: "grant", Tool: "packages", Decision: "allow", Reasons: []string{"the policy asks"}},
		"network   a.org:443: 2 requests, 1 KiB sent, 2 KiB received, 1 refused or failed (allow a.org)\n": record.Egress{
			Host: "a.org", Port: 443, Requests: 2, Sent: 1024, Received: 2048, Refused: 1, Rule: "allow a.org",
		},
		"not granted hosts: no":      record.Verdict{Effect: "grant", Tool: "hosts", Decision: "deny", Reasons: []string{"no"}},
		"pin       bank.pay changed": record.Pin{Server: "bank", Tool: "pay", Change: "changed"},
		"pin       bank.pay accepted in a question: it counts as only reading":      record.Pin{Server: "bank", Tool: "pay", Change: "accepted", By: record.ByQuestion},
		"question  asked before the code ran: the user was asked, and there is no ": record.Ask{Question: "ask-B", State: "asked", About: "before"},
		"question  bank pay asked for input: the user was asked, and there is no ":  record.Ask{Question: "ask-C", State: "asked", About: "input", Server: "bank", Tool: "pay"},
	} {
		contain(t, printed(t, recorded(t, record.Options{}, record.RunStart{}, entry), Options{}), "s  "+want)
	}
}

// TestOutputStandsBehindAMark, what was printed apart from what the error says, which is there once.
func TestOutputStandsBehindAMark(t *testing.T) {
	const traceback = "Traceback (most recent call last):\n  1 / 0\nZeroDivisionError"
	for name, tt := range map[string]struct {
		end  record.RunEnd
		want string
	}{
		"nothing":          {record.RunEnd{}, ""},
		"printed":          {record.RunEnd{Stdout: record.TextOf("one\n\n\ttwo\n"), Result: record.TextOf("3")}, "OUTPUT\n  | one\n  | \n  |     two\n\nRESULT\n  | 3\n"},
		"an error":         {record.RunEnd{Error: record.TextOf("no image")}, ""}, // the head has it
		"a long error":     {record.RunEnd{Error: record.TextOf(strings.Repeat("long ", 80))}, "ERROR\n  | " + strings.Repeat("long ", 80) + "\n"},
		"an error of two":  {record.RunEnd{Error: record.TextOf("no image\nbuild it")}, "ERROR\n  | no image\n  | build it\n"},
		"odd characters":   {record.RunEnd{Stderr: record.TextOf("slow\r\n" + traceback + ": a\rb\x00c\r\n"), Traceback: record.TextOf(traceback + ": a bc")}, "STANDARD ERROR\n  | slow\n\nTRACEBACK\n  | Traceback (most recent call last):\n  |   1 / 0\n  | ZeroDivisionError: a bc\n"},
		"another's error":  {record.RunEnd{Stderr: record.TextOf("slow\n" + traceback), Traceback: record.TextOf("Traceback")}, "STANDARD ERROR\n  | slow\n  | Traceback (most recent call last):\n  |   1 / 0\n  | ZeroDivisionError\n\nTRACEBACK\n  | Traceback\n"},
		"a traceback":      {record.RunEnd{Stderr: record.TextOf(traceback), Traceback: record.TextOf(traceback), Error: record.TextOf("ZeroDivisionError")}, "TRACEBACK\n  | Traceback (most recent call last):\n  |   1 / 0\n  | ZeroDivisionError\n"},
		"a warning before": {record.RunEnd{Stderr: record.TextOf("slow\n" + traceback + "\n"), Traceback: record.TextOf(traceback)}, "STANDARD ERROR\n  | slow\n\nTRACEBACK\n  | Traceback (most recent call last):\n  |   1 / 0\n  | ZeroDivisionError\n"},
		"another error":    {record.RunEnd{Traceback: record.TextOf("Traceback"), Error: record.TextOf("time is up")}, "TRACEBACK\n  | Traceback\n"}, // the head has it
	} {
		out := printed(t, recorded(t, record.Options{}, record.RunStart{}, tt.end), Options{})
		_, got, _ := strings.Cut(out, "policy    none\n")
		if got = strings.TrimPrefix(got, "\n"); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

// TestTextsThatAreNotAsTheyWere are marked as such, in place of a value that is not there.
func TestTextsThatAreNotAsTheyWere(t *testing.T) {
	const secret = "ghp_aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3"
	entries := []record.Entry{
		record.RunStart{Code: record.TextOf("key = '" + secret + "'")},
		record.CallStart{Call: 1, Line: 1, Server: "bank", Tool: "pay", Arguments: record.TextOf(`{"to":"Ada"}`)},
		record.RunEnd{Status: "success", Stdout: record.TextOf("to Ada\n")},
	}
	as := func(o record.Options, change func(*history.Value) *history.Value) *Timeline {
		timeline := recorded(t, o, entries...)
		for _, e := range timeline.entries {
			for field, v := range e.Values {
				if e.Values[field] = change(v); e.Values[field] == nil {
					delete(e.Values, field)
				}
			}
		}
		return timeline
	}
	same := func(v *history.Value) *history.Value { return v }
	for name, tt := range map[string]struct {
		timeline *Timeline
		o        Options
		want     []string
	}{
		"as they were": {as(record.Options{}, same), Options{}, []string{`{"to":"Ada"}`, "| to Ada", "CODE  (blacked out: ", "[hidden:"}},
		"not kept":     {as(record.Options{Keep: record.KeepNone}, same), Options{}, []string{"CODE  (48 bytes, not kept)\n", "    (12 bytes, not kept)\n", "OUTPUT  (7 bytes, not kept)\n"}},
		"forgotten":    {as(record.Options{}, func(*history.Value) *history.Value { return nil }), Options{}, []string{"(12 bytes, forgotten or removed)\n", "OUTPUT  (7 bytes, forgotten or removed)\n"}},
		"private":      {as(record.Options{}, same), Options{Hide: func(server string) bool { return server == "bank" }}, []string{"(12 bytes, not shown: --values)\n", "OUTPUT  (7 bytes, not shown: --values)\n", "CODE  (48 bytes, not shown: --values)"}},
		"changed": {as(record.Options{}, func(v *history.Value) *history.Value {
			return &history.Value{Value: record.Value{Value: "to Eve"}, Wrong: true}
		}), Options{}, []string{"to Eve (this is NOT what was recorded)\n", "OUTPUT  (this is NOT what was recorded)\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := printed(t, tt.timeline, tt.o)
			contain(t, out, tt.want...)
			if gone := strings.Contains(out, "Ada"); gone != (name == "as they were") || strings.Contains(out, secret) {
				t.Errorf("got\n%s", out)
			}
		})
	}
}

// TestNumbersInAQuestionAreNotThoseOfTheRun, which it says of those that are asked together.
func TestNumbersInAQuestionAreNotThoseOfTheRun(t *testing.T) {
	odd := Question{}
	for n := range 100 {
		odd.Calls = append(odd.Calls, 2*n+1)
	}
	for want, calls := range map[string][]int{
		"":                                {7},
		"1-2 are #1-#2":                   {1, 2},
		"1 is #9, 2-4 are #4-#6":          {9, 4, 5, 6},
		"1-2 are #3-#4, 3 is #3":          {3, 4, 3},
		"1 is #5, 2 is #4, 3-4 are #7-#8": {5, 4, 7, 8},
	} {
		if got := (&Question{Calls: calls}).Numbering(); got != want {
			t.Errorf("%v: %q, want %q", calls, got, want)
		}
	}
	if got := odd.Numbering(); !strings.HasSuffix(got, "20 is #39 and so on") {
		t.Errorf("got %q", got)
	}
	if got := (&Question{Calls: []int{0, 1}}).Numbering(); got != "" {
		t.Errorf("without a number: %q", got)
	}
}

// TestThePolicyOfARun is told from that of now.
func TestThePolicyOfARun(t *testing.T) {
	timeline := recorded(t, record.Options{}, record.RunStart{Policy: "0123456789abcdef"})
	for want, o := range map[string]Options{
		"policy    SHA-256 0123456789ab\n":                           {},
		"policy    SHA-256 0123456789ab, p.toml as it is now\n":      {PolicyFile: "p.toml", Policy: "0123456789abcdef"},
		"policy    SHA-256 0123456789ab; p.toml has changed since\n": {PolicyFile: "p.toml", Policy: "0123"},
	} {
		contain(t, printed(t, timeline, o), want)
	}
}

// TestArgumentsThatDidNotLeave are those of the verdict; the whole has the question too.
func TestArgumentsThatDidNotLeave(t *testing.T) {
	const one, many = "toolcell asks: may Python code make this call?\narguments: …", "toolcell asks: may Python code make these 3 calls?\n…\nand 1 more call"
	denied := func(text string, calls ...int) (all []record.Entry) {
		all = append(all, record.RunStart{})
		for _, c := range calls {
			all = append(all, record.Verdict{Call: c, Server: "bank", Tool: "pay", Decision: "ask", Writes: true, Arguments: record.TextOf(fmt.Sprintf(`{"to":"Ada","n":%d}`, c))})
		}
		return append(all, record.Ask{Question: "ask-A", State: "asked", About: "call", Calls: calls, Shown: record.TextOf(text)},
			record.Ask{Question: "ask-A", State: "denied", About: "call", Calls: calls},
			record.CallEnd{Call: calls[0], Server: "bank", Tool: "pay", Outcome: record.Refused, Error: record.TextOf("denied by the user")}, record.RunEnd{Status: "error"})
	}
	out := printed(t, recorded(t, record.Options{}, denied(one, 1)...), Options{})
	contain(t, out, "writes  refused, nothing was sent\n                  {\"to\":\"Ada\",\"n\":1}\n                  denied by the user (ask-A)\n")
	if strings.Contains(out, "error: denied") {
		t.Errorf("it says twice that the user denied it:\n%s", out)
	}
	timeline := recorded(t, record.Options{}, denied(many, 4, 5, 6)...)
	contain(t, printed(t, timeline, Options{}), "                  {\"to\":\"Ada\",\"n\":4}\n", "                  {\"to\":\"Ada\",\"n\":6}\n")
	whole := printed(t, timeline, Options{Whole: true})
	contain(t, whole, "the user was shown this, in which 1-3 are #4-#6:\n                  | toolcell asks: may Python code make these 3 calls?\n", "denied by the user (ask-A, call 2 of 3)\n", "                  | and 1 more call\n")
	if strings.Count(whole, "the user was shown") != 1 {
		t.Errorf("got\n%s", whole)
	}
	hidden := Options{Hide: func(server string) bool { return server == "bank" }}
	contain(t, printed(t, timeline, hidden), "bytes, not shown: --values)\n")
	if got := timeline.ArgumentsOf(timeline.Calls[1], Options{}, 80); got != `{"to":"Ada","n":5}` {
		t.Errorf("got %s", got)
	}
	if got := timeline.ArgumentsOf(timeline.Calls[1], hidden, 80); strings.Contains(got, "Ada") {
		t.Errorf("got %s", got)
	}
}

// TestWhyToolcellRefused is with the call, also if no policy has looked at it.
func TestWhyToolcellRefused(t *testing.T) {
	timeline := recorded(t, record.Options{}, record.RunStart{Policy: "ab"},
		record.CallEnd{Call: 1, Server: "up", Tool: "nothing", Outcome: record.Refused, Error: record.TextOf("there is no tool nothing\nup has others")},
		record.Verdict{Call: 2, Server: "up", Tool: "pay", Decision: "ask", Reasons: []string{"it writes"}, Writes: true},
		record.CallEnd{Call: 2, Server: "up", Tool: "pay", Writes: true, Outcome: record.Refused, Error: record.TextOf("no user can be asked")},
		record.CallEnd{Call: 3, Server: "up", Tool: "gone", Outcome: record.Refused},
	)
	for i, want := range []string{"refused: there is no tool nothing up has others", "refused: no user can be asked", "refused: the record does not say why"} {
		if got, _ := timeline.WhoAllowed(timeline.Calls[i], Options{}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got, _ := timeline.WhoAllowed(timeline.Calls[0], Options{Hide: func(string) bool { return true }}); got != "refused: 38 bytes, not shown: --values" {
		t.Errorf("got %q", got)
	}
	if does := []string{timeline.Calls[0].Does(), timeline.Calls[1].Does()}; does[0] != "" || does[1] != "writes" {
		t.Errorf("got %q", does)
	}
	contain(t, printed(t, timeline, Options{}), "#2   up.pay      writes  refused, nothing was sent\n                  a rule asks: it writes\n                  error: no user can be asked\n")
}

// TestManyWritesAlikeAreSummedUp by what allowed them, and each that failed is there.
func TestManyWritesAlikeAreSummedUp(t *testing.T) {
	entries := []record.Entry{record.RunStart{Policy: "ab"}}
	for i := range 600 {
		some := call(i+1, 1, "pay", true)
		if i == 300 {
			some[1] = record.CallEnd{Call: i + 1, Server: "bank", Tool: "pay", Outcome: record.ToolError, Writes: true}
		}
		if i >= 590 {
			some = []record.Entry{record.Verdict{Call: i + 1, Server: "bank", Tool: "pay", Decision: "deny", Reasons: []string{"limit = 590"}, Writes: true}}
		}
		entries = append(entries, some...)
	}
	timeline := recorded(t, record.Options{}, entries...)
	out := printed(t, timeline, Options{})
	contain(t, out, "297 more writes like this, #4-300: ok, answered 594 bytes; --values shows them\n", "#301 bank.pay  writes  tool_error",
		"286 more writes like this, #305-590: ok", "7 more writes like this, #594-600: refused; --values shows them\n")
	if n := strings.Count(out, "bank.pay  writes"); n != 10 {
		t.Errorf("%d calls are shown:\n%s", n, out)
	}
	if n := strings.Count(printed(t, timeline, Options{Whole: true}), "bank.pay  writes"); n != 600 {
		t.Errorf("all are %d", n)
	}
}
