package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs"
	"github.com/urfave/cli/v2"
)

// A removedImage is a row of images rm.
type removedImage struct {
	Name  string `json:"name"`
	Freed int64  `json:"freed"` // bytes
	Error string `json:"error,omitempty"`
}

func imagesRemove(c *cli.Context, s *console.Streams) error {
	if !c.Args().Present() {
		return console.Usagef("images rm takes references or digests of images")
	}
	store, d, err := openImages(c)
	if err != nil {
		return err
	}
	defer store.Close()
	var rows []removedImage
	var failures []error
	for _, name := range c.Args().Slice() {
		row := removedImage{Name: name}
		if row.Freed, err = store.Remove(name); err != nil {
			err = nearImage(err)
			failures = append(failures, d.Explain(err))
			row.Error = err.Error()
		} else if !c.Bool("json") {
			if _, err := fmt.Fprintf(s.Out, "removed %s, freed %s\n", name, text.Size(row.Freed)); err != nil {
				failures = append(failures, err)
			}
		}
		rows = append(rows, row)
	}
	if c.Bool("json") {
		failures = append(failures, console.PrintJSON(s, rows))
	}
	return errors.Join(failures...)
}

// A prunedImages is the one row of images prune.
type prunedImages struct {
	Removed []rootfs.Image `json:"removed"`
	Freed   int64          `json:"freed"` // bytes, also of layers that no image had
}

func imagesPrune(c *cli.Context, s *console.Streams) error {
	p, err := pruneOptions(c)
	if err != nil {
		return err
	}
	store, d, err := openImages(c)
	if err != nil {
		return err
	}
	defer store.Close()
	removed, freed, err := store.Prune(p)
	if c.Bool("json") {
		return errors.Join(console.PrintJSON(s, []prunedImages{{append([]rootfs.Image{}, removed...), freed}}), d.Explain(err))
	}
	var lines strings.Builder
	for _, i := range removed {
		fmt.Fprintln(&lines, strings.TrimSpace(fmt.Sprintf("removed %.19s %s", i.Digest, strings.Join(i.Refs, " "))))
	}
	_, printErr := fmt.Fprintln(s.Out, lines.String()+pruned(len(removed), "image", freed))
	return errors.Join(d.Explain(err), printErr)
}

// pruned says what prune has done.
func pruned(removed int, what string, freed int64) string {
	if removed == 0 && freed == 0 {
		return "nothing to remove"
	}
	return fmt.Sprintf("removed %s, freed %s", text.Plural(removed, what), text.Size(freed))
}

// leastBytes is the smallest size without a unit that is taken for bytes: every image is
// larger, so that a smaller one removes them all.
const leastBytes = 1 << 20

func pruneOptions(c *cli.Context) (p rootfs.PruneOptions, err error) {
	if c.Args().Present() {
		return p, console.Usagef("images prune takes no arguments, got %q", c.Args().First())
	}
	if v := c.String("unused"); v != "" {
		unused, err := parseUnused(v)
		if err != nil {
			return p, err
		}
		p.Unused = max(1, unused)
	}
	if v := c.String("max-size"); v != "" {
		n, err := settings.ParseBytes(v)
		if err != nil {
			return p, console.Invalidf("--max-size: %q is %v", v, err)
		}
		if _, err := strconv.ParseFloat(v, 64); err == nil && n < leastBytes { // a unit was forgotten
			return p, console.Usagef("--max-size: %q is %s; to keep so many GiB: --max-size %sg", v, text.Plural(int(n), "byte"), v)
		}
		p.Size = n
	}
	return p, nil
}

// parseUnused reads the days of --unused.
func parseUnused(v string) (time.Duration, error) {
	days, err := strconv.ParseFloat(strings.TrimSuffix(v, "d"), 64)
	if err != nil || !(days >= 0 && days <= 1e5) {
		return 0, console.Invalidf("--unused: %q is not a number of days", v)
	}
	return time.Duration(days * float64(24*time.Hour)), nil
}
