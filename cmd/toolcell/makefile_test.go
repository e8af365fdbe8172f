package main

import (
	"os"
	"strings"
	"testing"
)

// TestOnlyBinariesLeaveOutPaths: with -trimpath, go vet and go test of one clone take
// results from Go's cache that name files of cgo in another clone, which may be gone.
func TestOnlyBinariesLeaveOutPaths(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(makefile)) {
		if !strings.Contains(line, "-trimpath") {
			continue
		}
		if found++; !strings.HasPrefix(line, "\tgo build ") {
			t.Errorf("-trimpath is not for go build alone: %s", line)
		}
	}
	if found != 1 {
		t.Errorf("-trimpath is in %d lines, want it where bin/toolcell is built", found)
	}
}
