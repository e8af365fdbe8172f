package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/rootfs"
)

// A verifiedImage is a row of images verify.
type verifiedImage struct {
	Digest      string   `json:"digest"`
	Refs        []string `json:"refs"`
	Damage      []string `json:"damage"` // empty if there is none
	Repaired    bool     `json:"repaired"`
	FetchedFrom string   `json:"fetchedFrom,omitempty"` // what the repair needed
	Error       string   `json:"error,omitempty"`       // why the image could not be read or repaired
}

type imagesVerifyOptions struct {
	Options
	Repair bool
}

func imagesVerifyCommand(s *console.Streams) *cli.Command {
	do := actionWith(s, func(c *cli.Context, o Options) error {
		return imagesFunc(imagesVerifyOptions{o, c.Bool("repair")}.run).run(c.Context, o)
	})
	return command("verify", "check the files of images against their digests", "[REF|DIGEST…]", pullSettings, do,
		&cli.BoolFlag{Name: "repair", Usage: "repair damaged images, fetching what that needs"})
}

func (o imagesVerifyOptions) run(ctx context.Context, _ Options, store *rootfs.Store) error {
	chosen, err := imagesToVerify(o.Options, store)
	if err != nil {
		return err
	}
	if len(chosen) == 0 && !o.JSON {
		return printNone(o.Streams, "there are no images here to verify", "toolcell images pull "+settings.DefaultImage)
	}
	var rows []verifiedImage
	for _, i := range chosen {
		row, failure := o.verify(ctx, store, i)
		rows = append(rows, row)
		if !o.JSON {
			_, printErr := fmt.Fprint(o.Out, row.text())
			failure = errors.Join(failure, printErr)
		}
		if err = o.Settings.Dirs.Explain(failure); err != nil {
			break
		}
	}
	if o.JSON {
		err = errors.Join(err, console.PrintJSON(o.Streams, rows))
	}
	if err == nil && slices.ContainsFunc(rows, func(r verifiedImage) bool { return len(r.Damage) > 0 && !r.Repaired }) {
		return &console.ExitError{Code: console.ExitFail, Err: &doctor.HintError{Err: errors.New("some images are damaged"), Hint: "toolcell images verify --repair"}}
	}
	return err
}

// imagesToVerify returns the images that the arguments name, or all.
func imagesToVerify(o Options, store *rootfs.Store) (chosen []*rootfs.Image, err error) {
	if len(o.Args) > 0 {
		return findImages(o, store)
	}
	all, err := store.List()
	for i := range all {
		chosen = append(chosen, &all[i])
	}
	return chosen, err
}

func (o imagesVerifyOptions) verify(ctx context.Context, store *rootfs.Store, i *rootfs.Image) (row verifiedImage, err error) {
	row = verifiedImage{Digest: i.Digest, Refs: append([]string{}, i.Refs...), Damage: []string{}}
	damage, err := store.Verify(ctx, i)
	row.Damage = append(row.Damage, damage...)
	if err == nil && len(damage) > 0 && o.Repair {
		if row.FetchedFrom, err = store.Repair(ctx, i); err != nil {
			err = fmt.Errorf("repairing image %s: %w", i.Digest, err)
		}
		row.Repaired = err == nil
	}
	if err != nil {
		row.Error = err.Error()
	}
	return row, err
}

// text returns the lines about an image.
func (r verifiedImage) text() string {
	name := strings.Join(append(slices.Clone(r.Refs), r.Digest), " ")
	var text string
	switch {
	case len(r.Damage) > 0:
		text = fmt.Sprintf("%s: damaged\n  %s\n", name, strings.Join(r.Damage, "\n  "))
	case r.Error == "":
		text = name + ": ok\n"
	}
	switch {
	case r.Repaired && r.FetchedFrom == "":
		text += "  repaired from its layers\n"
	case r.Repaired:
		text += "  repaired, with layers fetched again from " + r.FetchedFrom + "\n"
	}
	return text
}
