package main

import (
	"context"
	"fmt"
	"os"

	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/text"
)

// A verifiedRecord is the one row of runs verify.
type verifiedRecord struct {
	Whole    bool              `json:"whole"`
	Files    int               `json:"files"`
	Entries  int               `json:"entries"`
	Values   int               `json:"values"`
	Heads    int               `json:"heads"` // that it was compared with
	Problems []history.Finding `json:"problems"`
	Notes    []history.Finding `json:"notes"`

	differ int // heads that the record does not match
}

// runsVerify fails unless the record is whole.
func runsVerify(_ context.Context, o runsOptions) error {
	heads, err := readHeads(o.Head)
	if err != nil {
		return err
	}
	report, err := o.history().Verify(heads)
	if err != nil {
		return o.Settings.Dirs.Explain(err)
	}
	row := verifiedRecord{
		Whole: len(report.Problems) == 0, Files: report.Files, Entries: report.Entries, Values: report.Values, Heads: len(heads),
		Problems: append([]history.Finding{}, report.Problems...), Notes: append([]history.Finding{}, report.Notes...),
		differ: report.HeadsDiffer,
	}
	if o.JSON {
		err = console.PrintJSON(o.Streams, []verifiedRecord{row})
	} else {
		row.print(o)
	}
	if err != nil || row.Whole {
		return err
	}
	return fmt.Errorf("the record is not as it was written: %s", text.Plural(len(row.Problems), "problem"))
}

// readHeads reads a file of heads.
func readHeads(path string) ([]history.Head, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, console.Invalidf("--head: %w", err)
	}
	defer f.Close()
	heads, err := history.ReadHeads(f)
	if err != nil {
		return nil, console.Invalidf("--head %s: %w", path, err)
	}
	if len(heads) == 0 {
		return nil, console.Invalidf("--head %s: it has no hashes; toolcell runs head prints them", path)
	}
	return heads, nil
}

// print says what was found, and what it does not prove.
func (v verifiedRecord) print(o runsOptions) {
	out := o.Stdout()
	for _, f := range v.Problems {
		fmt.Fprintf(out, "problem: %s\n", console.Plain(f.String()))
	}
	for _, f := range v.Notes {
		fmt.Fprintf(out, "note: %s\n", console.Plain(f.String()))
	}
	counts := fmt.Sprintf("%s with %s and %s", text.Plural(v.Files, "file"), counted(v.Entries, "entry", "entries"), text.Plural(v.Values, "value"))
	switch {
	case !v.Whole:
		fmt.Fprintf(out, "not whole: %s\n", counts)
	case v.Files == 0:
		fmt.Fprintln(out, "there is no record yet")
	default:
		fmt.Fprintf(out, "whole: %s\n", counts)
	}
	switch kept := counted(v.Heads, "hash", "hashes"); {
	case v.differ > 0:
		fmt.Fprintf(out, "The record does not match %d of the %s kept elsewhere.\n", v.differ, kept)
	case v.Heads > 0:
		fmt.Fprintf(out, "The record matches the %s kept elsewhere.\n", kept)
	case v.Files > 0:
		fmt.Fprintln(out, "This does not show whether somebody wrote the whole record anew, as every program can that runs as you.\n"+
			"For that, keep what toolcell runs head prints where they cannot write, and compare with --head FILE.")
	}
}

// runsHead prints the last hashes.
func runsHead(_ context.Context, o runsOptions) error {
	heads, err := o.history().Heads()
	switch {
	case err != nil:
		return o.Settings.Dirs.Explain(err)
	case o.JSON:
		return console.PrintJSON(o.Streams, heads)
	case len(heads) == 0:
		return o.printNoRuns()
	}
	for _, h := range heads {
		fmt.Fprintln(o.Stdout(), console.Plain(h.String()))
	}
	return nil
}

// counted returns a count with a noun that has a plural of its own.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
