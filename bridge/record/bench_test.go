package record

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const benchCode = `
issues = await mcp_github.list_issues(owner="toolcell", repo="toolcell", state="open")
for i in issues:
    if "bug" in i.labels:
        await mcp_github.add_label(number=i.number, label="triage")
print(len(issues))
`

func BenchmarkAppend(b *testing.B) {
	j := Open(Options{Dir: b.TempDir()})
	defer j.Close()
	run := j.Begin("0123456789", "")
	defer reportCPU(b, cpu())
	for b.Loop() {
		must(b, run.Append(CallEnd{Call: 1, Server: "github", Tool: "list_issues", Outcome: OK, Duration: 1200, Answer: TextOf("[1,2,3]")}))
	}
}

// BenchmarkAppendShared is an entry of a command, which takes the lock.
func BenchmarkAppendShared(b *testing.B) {
	j := Open(Options{Dir: b.TempDir(), Shared: true})
	defer j.Close()
	run := j.Begin("0123456789", "")
	defer reportCPU(b, cpu())
	for b.Loop() {
		must(b, run.Append(CallEnd{Call: 1, Server: "github", Tool: "list_issues", Outcome: OK, Duration: 1200, Answer: TextOf("[1,2,3]")}))
	}
}

// BenchmarkRun is what a run with two calls writes.
func BenchmarkRun(b *testing.B) {
	j := Open(Options{Dir: b.TempDir()})
	defer j.Close()
	code, answer := TextOf(strings.Repeat(benchCode, 3)), TextOf(strings.Repeat(`{"number":1,"title":"a bug"},`, 100))
	digest := strings.Repeat("0123456789abcdef", 4)
	defer reportCPU(b, cpu())
	for b.Loop() {
		run := j.Begin("0123456789", "")
		must(b, run.Append(RunStart{
			Command: "serve", Client: Client{"claude-code", "2.1.0", "2025-11-25"}, User: "ada", Code: code,
			Grants: Grants{Servers: []string{"github"}}, Policy: digest, Timeout: 30,
		}))
		must(b, run.Append(RunReady{Image: Image{"python:3.14-slim", "sha256:" + digest}, Tools: digest}))
		for range 2 {
			call := run.NextCall()
			must(b, run.Append(CallStart{Call: call, Effect: "tools/call", Server: "github", Tool: "list_issues", Entry: digest, Definition: digest, Arguments: TextOf(`{"owner":"toolcell","repo":"toolcell","state":"open"}`), By: "pin"}))
			must(b, run.Append(CallEnd{Call: call, Server: "github", Tool: "list_issues", Outcome: OK, Duration: 1200, Answer: answer}))
		}
		out := run.NewStream()
		out.Write([]byte("42\n"))
		must(b, run.Append(RunEnd{Status: "success", Stdout: out.Text(), Calls: 2, Duration: 5000}))
	}
}

func must(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}

// cpu returns the processor time of this process: on a machine that is not idle, the time that
// passes says little.
func cpu() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func reportCPU(b *testing.B, before time.Duration) {
	b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
}
