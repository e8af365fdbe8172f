package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs/packages"
)

func packagesCommand(s *console.Streams) *cli.Command {
	forRuns := slices.Concat([]string{"image", "policy", "uv", "memory"}, settings.ForImages)
	return group("packages", "get, list and remove the packages of scripts",
		&cli.Command{
			Name: "add", Usage: "get packages ahead of the runs that need them, in the newest versions", ArgsUsage: "REQUIREMENT…|SCRIPT",
			Description: "A requirement is the name of a package, perhaps with versions, such as 'pandas>=2'. A script is\n" +
				"a file whose name ends in .py and which has a # /// script header.",
			Flags:  flags(forRuns, &cli.BoolFlag{Name: "offline", Usage: "fetch nothing; report whether everything is here"}),
			Action: action(s, packagesAdd),
		},
		command("lock", "write the versions that a script gets into pylock.NAME.toml beside it", "SCRIPT", forRuns, action(s, packagesLock),
			&cli.BoolFlag{Name: "offline", Usage: "fetch nothing; write the versions that the script got here"}),
		command("list", "show the sets of packages that are here", "", stateSettings, action(s, packagesList)),
		command("show", "show the packages of a set, by the beginning of its ID", "ID", stateSettings, action(s, packagesShow)),
		command("prune", "remove sets that have not been used for some time; never one in use", "", stateSettings, action(s, packagesPrune),
			&cli.StringFlag{Name: "unused", Value: "30", Usage: "those not used for `DAYS`"}),
	)
}

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
	Layers  []string    `json:"npm,omitempty"` // packages of servers from npm that were removed, with all that they need
	Freed   int64       `json:"freed"`         // bytes
}

// shortID returns the part of an ID that is shown to people.
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
	return printRows(o, listedSets(all), noPackages, noPackagesNext, packageColumns, listedSet.cells)
}

// The message if there are no packages, and what to do then.
const (
	noPackages     = "there are no packages here yet"
	noPackagesNext = "toolcell packages add 'pandas>=2'"
)

var packageColumns = []console.Column{{Name: "ID"}, {Name: "PACKAGES"}, {Name: "SIZE", Right: true}, {Name: "IMAGE", End: true}, {Name: "LAST USED"}}

func (s listedSet) cells() []string {
	return []string{shortID(s.ID), s.names(), text.Size(s.Bytes), s.Image, s.LastUsed.Local().Format(time.DateTime)}
}

func packagesShow(_ context.Context, o Options) error {
	store := openPackages(o.Settings)
	defer store.Close()
	set, err := store.Find(o.Args[0])
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, p := range set.Packages {
		fmt.Fprintf(&lines, "%s %s sha256:%s\n", p.Name, p.Version, p.SHA256)
	}
	return printRow(o, listed(set), "%s\nimage      %s\nsize       %s\nlast used  %s\nfolder     %s\n%s",
		set.ID, set.Ref, text.Size(set.Bytes), set.LastUsed.Local().Format(time.DateTime), set.Dir, &lines)
}

func packagesPrune(_ context.Context, o Options) error {
	unused, err := parseUnused(o.Unused)
	if err != nil {
		return err
	}
	store := openPackages(o.Settings)
	defer store.Close()
	removed, freed, err := store.Prune(unused)
	row := prunedSets{Removed: listedSets(removed), Freed: freed}
	var lines strings.Builder
	for _, set := range row.Removed {
		fmt.Fprintf(&lines, "removed %s: %s\n", shortID(set.ID), set.names())
	}
	ofServers := openNPM(o.Settings)
	defer ofServers.Close()
	layers, errLayers := ofServers.Prune(unused)
	for _, l := range layers {
		row.Layers, row.Freed = append(row.Layers, strings.Join(l.Wanted, ", ")), row.Freed+l.Bytes
		fmt.Fprintf(&lines, "removed %s: %s of npm\n", shortID(l.ID), strings.Join(l.Wanted, ", "))
	}
	return errors.Join(printRow(o, row, "%s%s\n", &lines, pruned(len(removed)+len(layers), "set", row.Freed)), err, errLayers)
}
