package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/footprint"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/page"
)

// sandbox is what the page shows of what code runs in: what doctor, images list, packages list and status
// find now.
func (o uiOptions) sandbox(ctx context.Context) (view page.SandboxView) {
	now, err := o.again()
	if err != nil {
		view.Problem = err.Error()
		return view
	}
	disk, notes := diskTable(ctx, now)
	view.Tables, view.Notes = []page.Table{imagesTable(now), packagesTable(now), disk}, notes
	if now.Mistake != nil {
		view.Problem = now.Mistake.Error()
		return view
	}
	checks, err := collectChecks(ctx, now, slog.New(slog.DiscardHandler))
	if err != nil {
		view.Problem = err.Error()
		return view
	}
	view.Summary, _ = summary(checks)
	for _, c := range checks {
		view.Checks = append(view.Checks, page.Check{Code: c.Code, Status: c.Status, Text: c.Text, Cure: c.Cure})
	}
	return view
}

// tableOf makes a table of rows as a command prints them.
func tableOf[T any](title string, columns []console.Column, rows []T, cells func(T) []string, err error) page.Table {
	t := page.Table{Title: title, Columns: columns}
	if err != nil {
		t.Problem = err.Error()
	}
	for _, row := range rows[:min(len(rows), page.MaxRows)] {
		t.Rows = append(t.Rows, cells(row))
	}
	t.More = len(rows) - len(t.Rows)
	return t
}

func imagesTable(o Options) page.Table {
	var rows []listedImage
	store, err := openStore(o.Settings, slog.New(slog.DiscardHandler))
	if err == nil {
		rows, err = listImages(store)
		err = errors.Join(err, store.Close())
	}
	t := tableOf("Images", imageColumns, rows, listedImage.cells, err)
	t.None = noImages
	if len(rows) == 0 {
		t.Commands = []page.Command{{Why: "to fetch the default image now", Text: noImagesNext}}
	} else {
		t.Commands = []page.Command{{Why: "to remove those that were not used for 30 days", Text: "toolcell images prune --unused 30"}}
	}
	return t
}

func packagesTable(o Options) page.Table {
	store := openPackages(o.Settings)
	defer store.Close()
	sets, err := store.List()
	t := tableOf("Packages", packageColumns, listedSets(sets), listedSet.cells, err)
	t.None = noPackages
	if len(sets) == 0 {
		t.Commands = []page.Command{{Why: "to get some ahead of the runs that need them", Text: noPackagesNext}}
	} else {
		t.Commands = []page.Command{{Why: "to remove those that were not used for 30 days", Text: "toolcell packages prune"}}
	}
	return t
}

// diskTable is the table of status, and what could not be looked at.
func diskTable(ctx context.Context, o Options) (t page.Table, notes []string) {
	const title = "On the disk"
	found, err := footprint.Look(ctx, places(o.Settings))
	if err != nil {
		return tableOf(title, diskColumns, nil, diskCells, err), nil
	}
	defer found.Close()
	t = tableOf(title, diskColumns, withTotal(found.Uses, found.Total()), diskCells, nil)
	t.Commands = []page.Command{{Why: "to see what removing all of it would remove", Text: "toolcell purge --dry-run"}}
	return t, found.Problems
}
