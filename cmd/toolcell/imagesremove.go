package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/rootfs"
	"github.com/urfave/cli/v2"
)

func imagesRemove(c *cli.Context, s *console.Streams) (err error) {
	if !c.Args().Present() {
		return console.Usagef("images rm takes references or digests of images")
	}
	store, d, err := openImages(c)
	if err != nil {
		return err
	}
	defer store.Close()
	for _, name := range c.Args().Slice() {
		freed, rmErr := store.Remove(name)
		if rmErr != nil {
			err = errors.Join(err, d.Explain(rmErr))
			continue
		}
		fmt.Fprintf(s.Out, "%s: %s free\n", name, megabytes(freed))
	}
	return err
}

func imagesPrune(c *cli.Context, s *console.Streams) error {
	if c.Args().Present() {
		return console.Usagef("images prune takes no arguments, got %q", c.Args().First())
	}
	var p rootfs.PruneOptions
	if v := c.String("unused"); v != "" {
		days, err := strconv.ParseFloat(strings.TrimSuffix(v, "d"), 64)
		if err != nil || days < 0 || days > 1e5 {
			return console.Usagef("--unused: %q is not a number of days", v)
		}
		p.Unused = max(1, time.Duration(days*float64(24*time.Hour)))
	}
	if v := c.String("max-size"); v != "" {
		n, err := settings.ParseBytes(v)
		if err != nil {
			return console.Usagef("--max-size: %q is %v", v, err)
		}
		p.Size = n
	}
	store, d, err := openImages(c)
	if err != nil {
		return err
	}
	defer store.Close()
	removed, freed, err := store.Prune(p)
	for _, i := range removed {
		fmt.Fprintf(s.Out, "%.19s %s\n", i.Digest, strings.Join(i.Refs, " "))
	}
	fmt.Fprintf(s.Out, "%d images removed, %s free\n", len(removed), megabytes(freed))
	return d.Explain(err)
}
