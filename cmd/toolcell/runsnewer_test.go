package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
)

// TestRunsOfANewerToolcellAreToldOf by each command that passes over them, once for each file.
func TestRunsOfANewerToolcellAreToldOf(t *testing.T) {
	r := newRecorded(t, record.Options{})
	r.write(t, "aaaabbbbcccc", aRun(twoCalls)...)
	r.close(t)
	heads, _, _ := r.types(t, "runs", "head")
	name := fields(heads)[0][2]
	path := filepath.Join(r.state, "state", "records", name)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.ReplaceAll(string(data), `{"v":1,`, `{"v":2,`)
	if err := os.WriteFile(path, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	note := "toolcell: note: " + name + ": written by a newer toolcell (record version 2)\n"
	for command, before := range map[string]string{
		"list":   "toolcell: no runs that this version of toolcell can read are on record\nhint: use the newer one\n",
		"stats":  "toolcell: no calls are on record\nhint: toolcell runs list shows the runs\n",
		"export": "",
	} {
		out, errs, code := r.types(t, "runs", command)
		if code != 0 || out != "" || errs != before+note {
			t.Errorf("%s: exit %d, %s%s", command, code, out, errs)
		}
	}
}
