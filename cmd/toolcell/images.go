package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs"
)

// The settings of commands that look at the images that are here, and of those that
// may fetch layers. When to pull is what the user just typed.
var (
	storeSettings = []string{"state-dir", "platform"}
	pullSettings  = slices.DeleteFunc(slices.Clone(settings.ForImages), func(name string) bool { return name == "pull" })
)

func imagesCommand(s *console.Streams) *cli.Command {
	inspect := command("inspect", "print everything about images, as JSON", "REF|DIGEST…", storeSettings, action(s, imagesFunc(imagesInspect).run))
	inspect.Aliases = []string{"show"}
	return group("images", "pull, list and remove images",
		imagesPullCommand(s),
		command("list", "list the images on this machine", "", storeSettings, action(s, imagesFunc(imagesList).run)),
		inspect,
		command("rm", "remove images; one with several names loses only the one given", "REF|DIGEST…", storeSettings,
			action(s, imagesFunc(imagesRemove).run)),
		imagesPruneCommand(s), imagesVerifyCommand(s), imagesRefreshCommand(s),
	)
}

// An imagesFunc does the work of a command with the images on this machine.
type imagesFunc func(context.Context, Options, *rootfs.Store) error

// run opens the store of images for do.
func (do imagesFunc) run(ctx context.Context, o Options) error {
	store, err := openStore(o.Settings, newLogger(o.Settings, o.Err, o.Settings.LogLevel))
	if err != nil {
		return err
	}
	defer store.Close()
	return do(ctx, o, store)
}

// listedImage is a row of a list: an image under one of its names.
type listedImage struct {
	Ref string `json:"ref"`
	rootfs.Image
}

func imagesList(_ context.Context, o Options, store *rootfs.Store) error {
	rows, err := listImages(store)
	if err != nil {
		return err
	}
	return printRows(o, rows, noImages, noImagesNext, imageColumns, listedImage.cells)
}

// The message if there are no images, and what to do then.
const (
	noImages     = "there are no images here yet"
	noImagesNext = "toolcell images pull " + settings.DefaultImage
)

// listImages returns a row for each name of each image.
func listImages(store *rootfs.Store) (rows []listedImage, err error) {
	all, err := store.List()
	for _, i := range all {
		if len(i.Refs) == 0 {
			rows = append(rows, listedImage{"", i})
		}
		for _, ref := range i.Refs {
			rows = append(rows, listedImage{ref, i})
		}
	}
	return rows, err
}

var imageColumns = []console.Column{
	{Name: "IMAGE", End: true},
	{Name: "DIGEST"},
	{Name: "SIZE", Right: true},
	{Name: "SHARED", Right: true},
	{Name: "PULLED"},
	{Name: "LAST USED"},
}

func (i listedImage) cells() []string {
	return []string{
		cmp.Or(i.Ref, "<no name>"), fmt.Sprintf("%.19s", i.Digest), text.Size(i.Size), text.Size(i.Shared),
		i.Created.Local().Format(time.DateTime), i.LastUsed.Local().Format(time.DateTime),
	}
}

func imagesInspect(_ context.Context, o Options, store *rootfs.Store) error {
	found, err := findImages(o, store)
	if err != nil {
		return err
	}
	return console.PrintJSON(o.Streams, found)
}

// findImages returns the images that the arguments name.
func findImages(o Options, store *rootfs.Store) (found []*rootfs.Image, err error) {
	for _, name := range o.Args {
		i, err := store.Find(name)
		if err != nil {
			return nil, err
		}
		found = append(found, i)
	}
	return found, nil
}
