package history

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
)

// TestCountsThatAreNone in lines that others wrote neither go below zero nor over what can be added up.
func TestCountsThatAreNone(t *testing.T) {
	r := Open(t.TempDir())
	j := record.Open(record.Options{Dir: r.dir, Host: "vm"})
	writeRun(t, j, "aaaaaaaaaa")
	must(t, j.Close())
	name := onlyFile(t, r)
	const huge = "99999999999999999999"
	edit(t, r, name, func(l lines) lines {
		for i := range l {
			s := strings.NewReplacer(`"answer":{"size":14`, `"answer":{"size":`+huge, `"calls":2`, `"calls":`+huge, `"durationUs":4000`, `"durationUs":-4000`).Replace(string(l[i]))
			l[i] = []byte(s)
		}
		return l
	})
	if run := collect(t, r, Filter{})[0]; run.Calls != record.MaxNumber || run.Duration != 0 {
		t.Errorf("%+v", run)
	}
	all, err := r.Stats(Filter{})
	if err != nil || len(all) != 3 || all[0].Calls != record.MaxNumber-2 || all[1].Bytes != record.MaxNumber {
		t.Errorf("%+v %v", all, err)
	}
	entries, err := r.Show("aaaaaaaaaa")
	if err != nil || len(entries) != 6 || entries[5].Body != nil || entries[2].Body != nil || entries[1].Body == nil {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

// TestCodesMayBeNegative: JSON-RPC has its errors below zero, and Python exits with the signal.
func TestCodesMayBeNegative(t *testing.T) {
	r := Open(t.TempDir())
	j := record.Open(record.Options{Dir: r.dir, Host: "vm"})
	run, signal := j.Begin("aaaaaaaaaa", ""), -9
	must(t, run.Append(record.RunStart{Code: record.TextOf("1")}))
	must(t, run.Append(record.CallEnd{Call: 1, Server: "s", Outcome: record.ProtocolError, Code: -32602}))
	must(t, run.Append(record.RunEnd{Status: "error", ExitCode: &signal}))
	must(t, j.Close())
	entries, err := r.Show("aaaaaaaaaa")
	must(t, err)
	if end, ok := entries[1].Body.(*record.CallEnd); !ok || end.Code != -32602 {
		t.Errorf("%+v", entries[1])
	}
	if end, ok := entries[2].Body.(*record.RunEnd); !ok || *end.ExitCode != -9 {
		t.Errorf("%+v", entries[2])
	}
}

// TestIDsThatAreTooLong make a line none, in all that reads it.
func TestIDsThatAreTooLong(t *testing.T) {
	r, name := writeRecord(t)
	long := strings.Repeat("b", record.MaxID+1)
	edit(t, r, name, func(l lines) lines {
		for i := range l {
			l[i] = []byte(strings.Replace(string(l[i]), "bbbbbbbbbb", long, 1))
		}
		return l
	})
	if got := fmt.Sprint(ids(collect(t, r, Filter{}))); got != "[aaaaaaaaaa]" {
		t.Errorf("runs %s", got)
	}
	if id, err := r.Resolve("b"); err == nil {
		t.Errorf("there is %s", id)
	}
	if got := texts(name, verify(t, r).Problems); len(got) == 0 || got[0] != "NAME:7: this line is not a valid entry" {
		t.Errorf("%q", got)
	}
	samePython(t, r)
}
