package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
)

// A shownRun is the one row of runs show.
type shownRun struct {
	Run     timeline.Summary  `json:"run"`
	Entries []json.RawMessage `json:"entries"` // as they are on record, with the file they are in and their values
}

func runsShow(_ context.Context, o runsOptions) error {
	r := o.history()
	run, err := o.shownRun(r)
	if err != nil {
		return err
	}
	entries, err := r.Show(run.ID)
	if err != nil {
		return o.Settings.Dirs.Explain(err)
	}
	t := timeline.New(run, entries)
	shown := timeline.Options{Whole: o.Values, Hide: o.hide()}
	if !o.JSON {
		shown.PolicyFile, shown.Policy = policyNow(o.Options)
		return t.Print(o.Out, shown)
	}
	row := shownRun{Run: t.Summary()}
	if row.Entries, err = jsonEntries(t, shown, entries); err != nil {
		return err
	}
	return console.PrintJSON(o.Streams, []shownRun{row})
}

// policyNow returns the user's policy file, "" if there is none, and its SHA-256, "" if it is not there
// or not understood.
func policyNow(o Options) (file, digest string) {
	file, _ = o.Settings.PolicyFile()
	return file, loadPolicy(o.Settings, slog.New(slog.DiscardHandler)).NewEnforcer().Digest()
}

// shownRun returns the run that is meant.
func (o runsOptions) shownRun(r *history.Record) (history.Run, error) {
	if len(o.Args) > 0 {
		return o.resolve(r, o.Args[0])
	}
	all, _, err := newest(r, history.Filter{}, 1)
	switch {
	case err != nil:
		return history.Run{}, o.Settings.Dirs.Explain(err)
	case len(all) == 0:
		return history.Run{}, errors.New("no runs are on record yet")
	}
	return all[0], nil
}

func jsonEntries(t *timeline.Timeline, shown timeline.Options, entries []history.Entry) (all []json.RawMessage, err error) {
	for i := range entries {
		e, err := t.JSON(shown, &entries[i])
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// hide returns which servers' values are not printed: those of private servers, unless a person
// reads them at a terminal or asked for them.
func (o runsOptions) hide() func(server string) bool {
	if o.Values || console.Terminal(o.Out) {
		return nil
	}
	return privateServers(o.Options)
}
