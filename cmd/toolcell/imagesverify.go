package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/rootfs"
	"github.com/urfave/cli/v2"
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

func imagesVerify(c *cli.Context, s *console.Streams) error {
	store, d, err := openImages(c)
	if err != nil {
		return err
	}
	defer store.Close()
	chosen, err := imagesToVerify(c, store)
	if err != nil {
		return err
	}
	if len(chosen) == 0 && !c.Bool("json") {
		printNone(s, "there are no images here to verify", "toolcell images pull "+settings.DefaultImage)
		return nil
	}
	var rows []verifiedImage
	for _, i := range chosen {
		row, failure := verifyImage(c, store, i)
		rows = append(rows, row)
		if !c.Bool("json") {
			_, printErr := fmt.Fprint(s.Out, row.text())
			failure = errors.Join(failure, printErr)
		}
		if err = d.Explain(failure); err != nil {
			break
		}
	}
	if c.Bool("json") {
		err = errors.Join(err, console.PrintJSON(s, rows))
	}
	if err == nil && slices.ContainsFunc(rows, func(r verifiedImage) bool { return len(r.Damage) > 0 && !r.Repaired }) {
		return &console.ExitError{Code: console.ExitFail, Err: &doctor.HintError{Err: errors.New("some images are damaged"), Hint: "toolcell images verify --repair"}}
	}
	return err
}

// imagesToVerify returns the images that the arguments name, or all.
func imagesToVerify(c *cli.Context, store *rootfs.Store) (chosen []*rootfs.Image, err error) {
	if c.Args().Present() {
		return findImages(c, store)
	}
	all, err := store.List()
	for i := range all {
		chosen = append(chosen, &all[i])
	}
	return chosen, err
}

func verifyImage(c *cli.Context, store *rootfs.Store, i *rootfs.Image) (row verifiedImage, err error) {
	row = verifiedImage{Digest: i.Digest, Refs: append([]string{}, i.Refs...), Damage: []string{}}
	damage, err := store.Verify(c.Context, i)
	row.Damage = append(row.Damage, damage...)
	if err == nil && len(damage) > 0 && c.Bool("repair") {
		if row.FetchedFrom, err = store.Repair(c.Context, i); err != nil {
			err = fmt.Errorf("repairing image %s: %w", i.Digest, err)
		}
		row.Repaired = err == nil
	}
	if err != nil {
		row.Error = err.Error()
	}
	return row, err
}

// text returns what is printed of an image.
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
