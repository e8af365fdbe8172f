package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs/packages"
)

// listedSet is a set of packages as --json prints it.
type listedSet struct {
	ID       string             `json:"id"`
	Image    string             `json:"image"`
	Packages []packages.Package `json:"packages"`
	Bytes    int64              `json:"bytes"`
	LastUsed time.Time          `json:"lastUsed"`
}

func listed(set *packages.Set) listedSet {
	return listedSet{set.ID, set.Ref, set.Packages, set.Bytes, set.LastUsed.UTC()}
}

func listedSets(sets []packages.Set) []listedSet {
	rows := make([]listedSet, len(sets))
	for i := range sets {
		rows[i] = listed(&sets[i])
	}
	return rows
}

// prunedSets is the row of packages prune.
type prunedSets struct {
	Removed []listedSet `json:"removed"`
	Freed   int64       `json:"freed"` // bytes
}

// shortID is as much of an ID as a person needs.
func shortID(id string) string { return fmt.Sprintf("%.12s", strings.TrimPrefix(id, "sha256-")) }

// names are those of the packages of a set, on one line.
func (s listedSet) names() string {
	names := make([]string, len(s.Packages))
	for i, p := range s.Packages {
		names[i] = p.Name + " " + p.Version
	}
	return strings.Join(names, ", ")
}

func packagesList(_ context.Context, o Options) error {
	store := openPackages(o.Settings)
	defer store.Close()
	all, err := store.List()
	if err != nil {
		return err
	}
	columns := []console.Column{{Name: "ID"}, {Name: "PACKAGES"}, {Name: "SIZE", Right: true}, {Name: "IMAGE", End: true}, {Name: "LAST USED"}}
	return printRows(o, listedSets(all), "there are no packages here yet", "toolcell packages add 'pandas>=2'", columns, func(r listedSet) []string {
		return []string{shortID(r.ID), r.names(), text.Size(r.Bytes), r.Image, r.LastUsed.Local().Format(time.DateTime)}
	})
}

func packagesShow(_ context.Context, o Options) error {
	if len(o.Args) != 1 {
		return console.Usagef("packages show takes the beginning of an ID; toolcell packages list shows them")
	}
	store := openPackages(o.Settings)
	defer store.Close()
	set, err := store.Find(o.Args[0])
	if err != nil {
		return err
	}
	if o.JSON {
		return console.PrintJSON(o.Streams, []listedSet{listed(set)})
	}
	out := o.Stdout()
	fmt.Fprintf(out, "%s\nimage      %s\nsize       %s\nlast used  %s\nfolder     %s\n", set.ID, set.Ref, text.Size(set.Bytes), set.LastUsed.Local().Format(time.DateTime), set.Dir)
	for _, p := range set.Packages {
		fmt.Fprintf(out, "%s %s sha256:%s\n", p.Name, p.Version, p.SHA256)
	}
	return nil
}

func packagesPrune(_ context.Context, o packagesOptions) error {
	unused, err := parseUnused(o.Unused)
	if err != nil {
		return err
	}
	store := openPackages(o.Settings)
	defer store.Close()
	removed, freed, err := store.Prune(unused)
	if o.JSON {
		return errors.Join(console.PrintJSON(o.Streams, []prunedSets{{listedSets(removed), freed}}), err)
	}
	out := o.Stdout()
	for _, set := range listedSets(removed) {
		fmt.Fprintf(out, "removed %s: %s\n", shortID(set.ID), set.names())
	}
	fmt.Fprintln(out, pruned(len(removed), "set", freed))
	return err
}
