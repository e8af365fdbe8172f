package savedtools

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestFieldsOfASavedToolAreBounded: in what a worker sends, and in a file that was changed.
func TestFieldsOfASavedToolAreBounded(t *testing.T) {
	s := Open(t.TempDir(), "")
	sent := Tool{
		Name: "f", Doc: "Red\x1b[31m.", Source: "x\n", Schema: json.RawMessage(`["no object"]`),
		Private: append([]string{"bank\x1b\n accounts"}, make([]string, maxPrivate)...), Imports: make([]string, maxImports+1),
	}
	if err := s.Save(sent); err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T) {
		t.Helper()
		f, err := s.Show("f")
		if err != nil || f.Doc != "Red[31m." || len(f.Imports) != maxImports || f.Schema != nil {
			t.Errorf("%+v, %v", f, err)
		}
		if len(f.Private) != maxPrivate || f.Private[0] != "bank accounts" {
			t.Errorf("it may hold %q", f.Private)
		}
	}
	check(t)
	sent.Private[0] = "bank\x1b\n accounts"
	about, err := json.Marshal(sent)
	if err == nil {
		err = os.WriteFile(s.file("f"), []byte(mark+string(about)+"\nx\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	check(t)
}

// TestToolIsSavedWithoutASchemaThatIsNone: what it does is worth more.
func TestToolIsSavedWithoutASchemaThatIsNone(t *testing.T) {
	s := Open(t.TempDir(), "")
	for _, schema := range []string{`{"type":`, `[1]`, `"object"`} {
		if err := s.Save(Tool{Name: "f", Source: "x\n", Schema: json.RawMessage(schema)}); err != nil {
			t.Errorf("with the schema %s: %v", schema, err)
		}
		if f, err := s.Show("f"); err != nil || f.Source != "x\n" || f.Schema != nil {
			t.Errorf("with the schema %s: %+v, %v", schema, f, err)
		}
	}
}

// TestLargestToolIsReadBack: what JSON has to escape is longer in the file.
func TestLargestToolIsReadBack(t *testing.T) {
	s := Open(t.TempDir(), "")
	for _, char := range []string{`"`, "<", "\u2028"} {
		long := func(size int) string { return strings.Repeat(char, size/len(char)) }
		lines := func(n int) []string { return slices.Repeat([]string{long(maxImport - noteRoom)}, n) }
		schema := json.RawMessage(`{"title":"` + strings.ReplaceAll(long(maxSchema/2-16), `"`, `\"`) + `"}`)
		tool := Tool{
			Name: "f", Source: long(MaxSource), Doc: long(maxDoc), Signature: long(maxSignature),
			Schema: schema, Imports: lines(maxImports), Private: lines(maxPrivate),
		}
		if err := s.Save(tool); err != nil {
			t.Fatal(err)
		}
		f, err := s.Show("f")
		if err != nil || f.Source != tool.Source || f.Schema == nil || len(f.Imports) != maxImports || len(f.Private) != maxPrivate {
			t.Errorf("of %q: %d bytes of source, %d of schema, %d imports, %v", char, len(f.Source), len(f.Schema), len(f.Imports), err)
		}
	}
}

// TestNoteOnWhatWasCutIsRight: a tool is read as it was saved, and not cut again.
func TestNoteOnWhatWasCutIsRight(t *testing.T) {
	s := Open(t.TempDir(), "")
	const doc, signature, line = 20000, 5000, 1000
	tool := Tool{
		Name: "f", Doc: strings.Repeat("d", doc), Signature: strings.Repeat("s", signature),
		Imports: []string{strings.Repeat("i", line)}, Private: []string{strings.Repeat("p", line)},
	}
	if err := s.Save(tool); err != nil {
		t.Fatal(err)
	}
	f, err := s.Show("f")
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []struct {
		got         string
		sent, limit int
	}{
		{f.Doc, doc, maxDoc}, {f.Signature, signature, maxSignature}, {f.Imports[0], line, maxImport}, {f.Private[0], line, maxImport},
	} {
		letters := strings.TrimRight(cut.got[:cut.limit-noteRoom], " ")
		if want := fmt.Sprintf("%s [… %d bytes left out …]", letters, cut.sent-len(letters)); cut.got != want || len(want) > cut.limit {
			t.Errorf("got %d bytes that end in %q", len(cut.got), cut.got[len(letters):])
		}
	}
}

// TestLinesAboveTheFirstHideNothing: an editor may put a comment there.
func TestLinesAboveTheFirstHideNothing(t *testing.T) {
	s := Open(t.TempDir(), "")
	if err := s.Save(Tool{Name: "f", Doc: "Adds.", Private: []string{"bank accounts"}, Source: "def f(): pass\n"}); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(s.file("f"))
	if err != nil {
		t.Fatal(err)
	}
	for _, above := range []string{"#!/usr/bin/env python3\n", "\n# -*- coding: utf-8 -*-\r\n"} {
		if err := os.WriteFile(s.file("f"), append([]byte(above), body...), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := s.Show("f")
		if err != nil || f.Doc != "Adds." || len(f.Private) != 1 || f.Source != above+"def f(): pass\n" {
			t.Errorf("below %q: %+v, %v", above, f, err)
		}
	}
}

func TestExportHasEachNamedToolOnceAndTheFutureFirst(t *testing.T) {
	s := Open(t.TempDir(), "")
	const future = "from __future__ import annotations\n"
	for _, tool := range []Tool{
		{Name: "a", Source: "def a(): pass\n"},
		{Name: "b", Source: future + "def b(): pass\n"},
		{Name: "c", Source: future + "def c(): pass\n"},
		{Name: "d", Source: future + "from __future__ import division\ndef d(): pass\n"},
		{Name: "f", Source: "from __future__ import (\n    annotations)\ndef f(): pass\n"},
		{Name: "e", Source: "# By hand\nfrom __future__ import annotations\r\ndef e(): pass\n"},
	} {
		if err := s.Save(tool); err != nil {
			t.Fatal(err)
		}
	}
	const title = `"""Functions saved by run_python."""` + "\n"
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"a", "b", "c"}, title + future + "\n\ndef a(): pass\n\n\ndef b(): pass\n\n\ndef c(): pass\n"},
		{[]string{"c", "b", "c"}, title + future + "\n\ndef c(): pass\n\n\ndef b(): pass\n"},
		{[]string{"a", "a"}, title + "\n\ndef a(): pass\n"},
		{[]string{"f"}, title + "\n\nfrom __future__ import (\n    annotations)\ndef f(): pass\n"}, // over lines: as it is
		{[]string{"e", "d"}, title + future + "from __future__ import division\n" + "\n\n# By hand\ndef e(): pass\n\n\ndef d(): pass\n"},
	} {
		var module strings.Builder
		if err := s.Export(&module, c.names...); err != nil || module.String() != c.want {
			t.Errorf("%v: %v\ngot:\n%s\nwant:\n%s", c.names, err, module.String(), c.want)
		}
	}
}

func TestReservedNameSaysWhatItStandsFor(t *testing.T) {
	s := Open(t.TempDir(), "")
	for name, want := range map[string]string{
		"json": "json is the name of a module,", "pd": "pd is the usual name for something of the module pandas,",
		"date": "date is the usual name for something of the module datetime,",
	} {
		if err := s.Save(Tool{Name: name, Source: "x\n"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestNamesThatAToolMayHave(t *testing.T) {
	for name, want := range map[string]bool{
		"net_2": true, "_x": true, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "2x": false, "a\n": false, "": false,
	} {
		if IsName(name) != want {
			t.Errorf("%q may be a tool's name: %v", name, !want)
		}
	}
}
