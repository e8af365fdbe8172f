package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs/packages"
	"github.com/urfave/cli/v2"
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

// packageList names the packages of a set on one line.
func packageList(set *packages.Set) string {
	names := make([]string, len(set.Packages))
	for i, p := range set.Packages {
		names[i] = p.Name + " " + p.Version
	}
	return strings.Join(names, ", ")
}

// openOnlyPackages opens the store of packages for a command that needs no image.
func openOnlyPackages(c *cli.Context) (*packages.Store, error) {
	d, err := settings.FindDirs(c.String("state-dir"))
	if err != nil {
		return nil, err
	}
	return openPackages(d, settings.Settings{})
}

func packagesList(c *cli.Context, s *console.Streams) error {
	if c.Args().Present() {
		return console.Usagef("packages list takes no arguments, got %q", c.Args().First())
	}
	store, err := openOnlyPackages(c)
	if err != nil {
		return err
	}
	defer store.Close()
	all, err := store.List()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return console.PrintJSON(s, listedSets(all))
	}
	if len(all) == 0 {
		printNone(s, "there are no packages here yet", "toolcell packages add 'pandas>=2'")
		return nil
	}
	var cells [][]string
	for _, set := range all {
		cells = append(cells, []string{
			shortID(set.ID), packageList(&set), text.Size(set.Bytes), set.Ref, set.LastUsed.Local().Format(time.DateTime),
		})
	}
	return console.PrintTable(s.Out, []console.Column{{Name: "ID"}, {Name: "PACKAGES"}, {Name: "SIZE", Right: true}, {Name: "IMAGE", End: true}, {Name: "LAST USED"}}, cells)
}

func packagesShow(c *cli.Context, s *console.Streams) error {
	if c.NArg() != 1 {
		return console.Usagef("packages show takes the beginning of an ID; toolcell packages list shows them")
	}
	store, err := openOnlyPackages(c)
	if err != nil {
		return err
	}
	defer store.Close()
	set, err := store.Find(c.Args().First())
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return console.PrintJSON(s, []listedSet{listed(set)})
	}
	out := s.Stdout()
	fmt.Fprintf(out, "%s\nimage      %s\nsize       %s\nlast used  %s\nfolder     %s\n", set.ID, set.Ref, text.Size(set.Bytes), set.LastUsed.Local().Format(time.DateTime), set.Dir)
	for _, p := range set.Packages {
		fmt.Fprintf(out, "%s %s sha256:%s\n", p.Name, p.Version, p.SHA256)
	}
	return nil
}

func packagesPrune(c *cli.Context, s *console.Streams) error {
	if c.Args().Present() {
		return console.Usagef("packages prune takes no arguments, got %q", c.Args().First())
	}
	unused, err := parseUnused(c.String("unused"))
	if err != nil {
		return err
	}
	store, err := openOnlyPackages(c)
	if err != nil {
		return err
	}
	defer store.Close()
	removed, freed, err := store.Prune(unused)
	if c.Bool("json") {
		return errors.Join(console.PrintJSON(s, []prunedSets{{listedSets(removed), freed}}), err)
	}
	out := s.Stdout()
	for _, set := range removed {
		fmt.Fprintf(out, "removed %s: %s\n", shortID(set.ID), packageList(&set))
	}
	fmt.Fprintln(out, pruned(len(removed), "set", freed))
	return err
}
