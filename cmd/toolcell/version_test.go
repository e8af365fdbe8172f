package main

import "testing"

func TestVersionNamesTheCommitIfItIsKnown(t *testing.T) {
	commitBefore, dateBefore := commit, date
	t.Cleanup(func() { commit, date = commitBefore, dateBefore })
	commit, date = "", ""
	if got, want := versionText(), "toolcell "+version+"\n"; got != want {
		t.Errorf("without a commit it is %q, want %q", got, want)
	}
	commit, date = "3a6d055e", "2026-11-25"
	if got, want := versionText(), "toolcell "+version+" (3a6d055e, 2026-11-25)\n"; got != want {
		t.Errorf("with a commit it is %q, want %q", got, want)
	}
}
