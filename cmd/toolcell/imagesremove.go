package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs"
)

// A removedImage is a row of images rm.
type removedImage struct {
	Name  string `json:"name"`
	Freed int64  `json:"freed"` // bytes
	Error string `json:"error,omitempty"`
}

func imagesRemove(ctx context.Context, o Options, store *rootfs.Store) error {
	return eachArgument(ctx, o, func(name string) (*removedImage, string, error) {
		freed, err := store.Remove(name)
		if err != nil {
			return &removedImage{Name: name, Error: err.Error()}, "", o.Settings.Dirs.Explain(err)
		}
		return &removedImage{Name: name, Freed: freed}, fmt.Sprintf("removed %s, freed %s\n", name, text.Size(freed)), nil
	})
}

// A prunedImages is the one row of images prune.
type prunedImages struct {
	Removed []rootfs.Image `json:"removed"`
	Freed   int64          `json:"freed"` // bytes, also of layers that no image had
}

type imagesPruneOptions struct {
	Options
	MaxSize string
}

func imagesPruneCommand(s *console.Streams) *cli.Command {
	do := actionWith(s, func(c *cli.Context, o Options) error {
		return imagesFunc(imagesPruneOptions{o, c.String("max-size")}.run).run(c.Context, o)
	})
	return command("prune", "remove images without a name, and by age or size; never one in use", "", storeSettings, do,
		&cli.StringFlag{Name: "unused", Usage: "also remove images not used for `DAYS`"},
		&cli.StringFlag{Name: "max-size", Usage: "also remove the least recently used images until the others take at most `BYTES` (k, m, g)"})
}

func (o imagesPruneOptions) run(_ context.Context, _ Options, store *rootfs.Store) error {
	p, err := o.parse()
	if err != nil {
		return err
	}
	removed, freed, err := store.Prune(p)
	var lines strings.Builder
	for _, i := range removed {
		fmt.Fprintln(&lines, strings.TrimSpace(fmt.Sprintf("removed %.19s %s", i.Digest, strings.Join(i.Refs, " "))))
	}
	row := prunedImages{append([]rootfs.Image{}, removed...), freed}
	return errors.Join(o.Settings.Dirs.Explain(err), printRow(o.Options, row, "%s%s\n", &lines, pruned(len(removed), "image", freed)))
}

// pruned sums up what prune removed.
func pruned(removed int, what string, freed int64) string {
	if removed == 0 && freed == 0 {
		return "nothing to remove"
	}
	return fmt.Sprintf("removed %s, freed %s", text.Plural(removed, what), text.Size(freed))
}

// leastBytes is the smallest size without a unit that is taken for bytes. A smaller one would
// remove all images, so a unit was probably forgotten.
const leastBytes = 1 << 20

func (o imagesPruneOptions) parse() (p rootfs.PruneOptions, err error) {
	if o.Unused != "" {
		unused, err := parseUnused(o.Unused)
		if err != nil {
			return p, err
		}
		p.Unused = max(1, unused)
	}
	if v := o.MaxSize; v != "" {
		n, err := text.ParseSize(v)
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
