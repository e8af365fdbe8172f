package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		f := uiOptions{}.policyFile()
		err := f.Policy.Err()
		if f.Path != file || f.There != c.there || string(f.Text) != c.text || (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %+v, %v", c.name, f, err)
		}
		if c.name == "a good one" && (len(f.Remarks) != 1 || !strings.Contains(f.Remarks[0].Text, "[servers.bank]")) {
			t.Errorf("%s: %+v", c.name, f.Remarks)
		}
	}
	server, tool := uiOptions{}.policyFile().Named("my-bank", "pay")
	if server.Name != "my-bank" || server.Alias != "my_bank" || tool.Name != "pay" {
		t.Errorf("%+v, %+v", server, tool)
	}
}
