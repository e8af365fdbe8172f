package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
)

// TestThePolicyOfThePage is the one that counts: with no file all is allowed, and with one that cannot be
// read nothing is, and no lines are proposed for it.
func TestThePolicyOfThePage(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("HOME", t.TempDir())
	file := filepath.Join(config, "toolcell", "policy.toml")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	ui := uiOptions{policySeen: &atomic.Int64{}}
	for _, c := range []struct {
		name  string
		write func() error
		there bool
		text  string
		wrong string
	}{
		{"no file", func() error { return nil }, false, "", ""},
		{"a link to nothing", func() error { return os.Symlink("/nowhere", file) }, false, "", "is a link to nothing"},
		{"an empty one", func() error { return os.WriteFile(file, nil, 0o600) }, true, "", ""},
		{"a good one", func() error { return os.WriteFile(file, []byte("[servers.bank]\nask = 'pay'\n"), 0o600) }, true, "[servers.bank]\nask = 'pay'\n", ""},
		{"a wrong one", func() error { return os.WriteFile(file, []byte("[servers.bank]\nsk = 'pay'\n"), 0o600) }, true, "", ":2:1:"},
	} {
		_ = os.Remove(file)
		if err := c.write(); err != nil {
			t.Fatal(err)
		}
		f := ui.policyFile()
		err := f.Policy.Err()
		if f.Path != file || f.There != c.there || string(f.Text) != c.text || (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %+v, %v", c.name, f, err)
		}
		if c.name == "a good one" && (len(f.Remarks) != 1 || !strings.Contains(f.Remarks[0].Text, "[servers.bank]")) {
			t.Errorf("%s: %+v", c.name, f.Remarks)
		}
	}
	server, tool := ui.policyFile().Named("my-bank", "pay")
	if server.Name != "my-bank" || server.Alias != "my_bank" || tool.Name != "pay" {
		t.Errorf("%+v, %+v", server, tool)
	}
}

// TestServesWithAPolicyAreKnown: those that began while the page saw the file, and those with a run on
// record that had one. A process that had the same number before does not count.
func TestServesWithAPolicyAreKnown(t *testing.T) {
	dir := t.TempDir()
	j := record.Open(record.Options{Dir: dir})
	for pid, digest := range map[int]string{11: "abcd", 12: "", 13: "abcd", 14: "abcd"} {
		host := map[bool]string{true: "another-host"}[pid == 14]
		if err := j.Begin(fmt.Sprintf("run%07d", pid), "").Append(record.RunStart{Command: "serve", PID: pid, Host: host, Policy: digest}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	serve := func(pid int, ago time.Duration) runningProcess {
		return runningProcess{PID: pid, Command: "serve", Since: now.Add(-ago)}
	}
	all := []runningProcess{
		serve(11, time.Minute), serve(12, time.Minute), serve(13, -time.Minute), serve(14, time.Minute), serve(15, time.Minute), serve(16, time.Hour),
		{PID: 17, Command: "exec", Since: now.Add(-time.Hour)},
		{PID: 18, Command: "serve"},
		{},
	}
	for seen, want := range map[time.Time]string{{}: "11", now.Add(-10 * time.Minute): "16 11", now: "11 12 14 15 16"} {
		var got []string
		for _, p := range withPolicy(all, seen, history.Open(dir)) {
			got = append(got, strconv.Itoa(p.PID))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("seen %s: %q, want %q", seen, got, want)
		}
	}
}
