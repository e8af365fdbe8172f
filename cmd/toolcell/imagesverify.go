package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/rootfs"
	"github.com/urfave/cli/v2"
)

func imagesVerify(c *cli.Context, s *console.Streams) error {
	store, d, err := openImages(c)
	if err != nil {
		return err
	}
	defer store.Close()
	var chosen []*rootfs.Image
	if c.Args().Present() {
		chosen, err = findImages(c, store)
	} else {
		var all []rootfs.Image
		all, err = store.List()
		for i := range all {
			chosen = append(chosen, &all[i])
		}
	}
	if err != nil {
		return err
	}
	damaged := false
	for _, i := range chosen {
		damage, err := store.Verify(c.Context, i)
		if err != nil {
			return d.Explain(err)
		}
		name := strings.Join(append(slices.Clone(i.Refs), i.Digest), " ")
		if len(damage) == 0 {
			fmt.Fprintf(s.Out, "%s: as its digest says\n", name)
			continue
		}
		fmt.Fprintf(s.Out, "%s: damaged\n  %s\n", name, strings.Join(damage, "\n  "))
		if !c.Bool("repair") {
			damaged = true
			continue
		}
		if err := repair(c, s, store, i); err != nil {
			return d.Explain(err)
		}
	}
	if damaged {
		return &console.ExitError{Code: console.ExitFail, Err: &oci.HintError{Err: errors.New("some images are damaged"), Hint: "toolcell images verify --repair"}}
	}
	return nil
}

// repair makes an image anew, under the names that it has.
func repair(c *cli.Context, s *console.Streams, store *rootfs.Store, i *rootfs.Image) error {
	source, err := store.Repair(c.Context, i)
	if err != nil {
		return fmt.Errorf("repairing image %s: %w", i.Digest, err)
	}
	if source == "" {
		fmt.Fprintln(s.Out, "  repaired from its layers")
		return nil
	}
	fmt.Fprintf(s.Out, "  repaired, with layers fetched again from %s\n", source)
	return nil
}
