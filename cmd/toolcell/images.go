package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs"
	"github.com/urfave/cli/v2"
)

// The settings of commands that look at the images that are here, and of those that
// may fetch layers. When to pull is what the user just typed.
var (
	storeSettings = []string{"state-dir", "platform"}
	pullSettings  = slices.DeleteFunc(slices.Clone(settings.ForImages), func(name string) bool { return name == "pull" })
)

func imagesCommand(s *console.Streams) *cli.Command {
	withSettings := func(names []string, own ...cli.Flag) []cli.Flag {
		return append(append(own, jsonFlag()), settings.Flags(names...)...)
	}
	return &cli.Command{
		Name:         "images",
		Usage:        "pull, list and remove images",
		OnUsageError: usageError,
		Subcommands: []*cli.Command{
			{
				Name: "pull", Usage: "fetch images and unpack them, asking the registry even if a tag is here",
				ArgsUsage: "REF…", OnUsageError: usageError,
				Flags: withSettings(pullSettings,
					&cli.BoolFlag{Name: "no-compile", Usage: "leave compiling the images' modules to the first run"},
					&cli.StringFlag{Name: "creds", Usage: "log in to the registry as `USER[:PASSWORD]`; a password that is not given is asked for, or read from standard input"}),
				Action: func(c *cli.Context) error { return imagesPull(c, s) },
			},
			{
				Name: "list", Usage: "list the images on this machine",
				Flags: withSettings(storeSettings), OnUsageError: usageError,
				Action: func(c *cli.Context) error { return imagesList(c, s) },
			},
			{
				Name: "inspect", Aliases: []string{"show"}, Usage: "print everything about images, as JSON",
				ArgsUsage: "REF|DIGEST…", Flags: withSettings(storeSettings), OnUsageError: usageError,
				Action: func(c *cli.Context) error { return imagesInspect(c, s) },
			},
			{
				Name: "rm", Usage: "remove images; one with several names loses only the one given",
				ArgsUsage: "REF|DIGEST…", Flags: withSettings(storeSettings), OnUsageError: usageError,
				Action: func(c *cli.Context) error { return imagesRemove(c, s) },
			},
			{
				Name: "prune", Usage: "remove images without a name, and by age or size; never one in use",
				Flags: withSettings(storeSettings,
					&cli.StringFlag{Name: "unused", Usage: "also remove images not used for `DAYS`"},
					&cli.StringFlag{Name: "max-size", Usage: "also remove the least recently used images until the others take at most `BYTES` (k, m, g)"}),
				OnUsageError: usageError,
				Action:       func(c *cli.Context) error { return imagesPrune(c, s) },
			},
			{
				Name: "verify", Usage: "check the files of images against their digests",
				ArgsUsage: "[REF|DIGEST…]", OnUsageError: usageError,
				Flags:  withSettings(pullSettings, &cli.BoolFlag{Name: "repair", Usage: "repair damaged images, fetching what that needs"}),
				Action: func(c *cli.Context) error { return imagesVerify(c, s) },
			},
			{
				Name: "refresh", Hidden: true, ArgsUsage: "REF", OnUsageError: usageError,
				Flags:  append([]cli.Flag{&cli.BoolFlag{Name: "ask"}, &cli.BoolFlag{Name: "until-eof"}}, settings.Flags(settings.ForImages...)...),
				Action: func(c *cli.Context) error { return imagesRefresh(c, s) },
			},
		},
		Action: needSubcommand,
	}
}

// needSubcommand is the action of a command that only has subcommands.
func needSubcommand(c *cli.Context) error {
	if c.Args().Present() {
		return noCommand(c.Command.Subcommands, c.Args().First())
	}
	return cli.ShowSubcommandHelp(c)
}

// listedImage is a row of a list: an image under one of its names.
type listedImage struct {
	Ref string `json:"ref"`
	rootfs.Image
}

func imagesList(c *cli.Context, s *console.Streams) error {
	if c.Args().Present() {
		return console.Usagef("images list takes no arguments, got %q", c.Args().First())
	}
	store, _, err := openImages(c)
	if err != nil {
		return err
	}
	defer store.Close()
	all, err := store.List()
	if err != nil {
		return err
	}
	var rows []listedImage
	for _, i := range all {
		if len(i.Refs) == 0 {
			rows = append(rows, listedImage{"", i})
		}
		for _, ref := range i.Refs {
			rows = append(rows, listedImage{ref, i})
		}
	}
	if c.Bool("json") {
		return console.PrintJSON(s, rows)
	}
	if len(rows) == 0 {
		printNone(s, "there are no images here yet", "toolcell images pull "+settings.DefaultImage)
		return nil
	}
	var cells [][]string
	for _, r := range rows {
		if r.Ref == "" {
			r.Ref = "<no name>"
		}
		cells = append(cells, []string{
			r.Ref, fmt.Sprintf("%.19s", r.Digest), text.Size(r.Size), text.Size(r.Shared),
			r.Created.Local().Format(time.DateTime), r.LastUsed.Local().Format(time.DateTime),
		})
	}
	return console.PrintTable(s.Out, []console.Column{
		{Name: "IMAGE", End: true},
		{Name: "DIGEST"},
		{Name: "SIZE", Right: true},
		{Name: "SHARED", Right: true},
		{Name: "PULLED"},
		{Name: "LAST USED"},
	}, cells)
}

func imagesInspect(c *cli.Context, s *console.Streams) error {
	store, _, err := openImages(c)
	if err != nil {
		return err
	}
	defer store.Close()
	found, err := findImages(c, store)
	if err != nil {
		return err
	}
	return console.PrintJSON(s, found)
}

// findImages returns the images that the arguments name.
func findImages(c *cli.Context, store *rootfs.Store) (found []*rootfs.Image, err error) {
	if !c.Args().Present() {
		return nil, console.Usagef("images %s takes references or digests of images", c.Command.Name)
	}
	for _, name := range c.Args().Slice() {
		i, err := store.Find(name)
		if err != nil {
			return nil, nearImage(err)
		}
		found = append(found, i)
	}
	return found, nil
}

// nearImage adds to the error of an image that is not here the name that was meant.
func nearImage(err error) error {
	var unknown *rootfs.UnknownError
	if !errors.As(err, &unknown) {
		return err
	}
	if meant := text.Meant(unknown.Name, unknown.Refs); meant != "" {
		return fmt.Errorf("there is no image %q here; did you mean %q?", unknown.Name, meant)
	}
	return err
}

// openImages opens the store for a command that looks at images.
func openImages(c *cli.Context) (*rootfs.Store, settings.Dirs, error) {
	conf, d, err := settings.ReadWithDirs(c)
	if err != nil {
		return nil, d, err
	}
	store, err := openStore(d, conf, newLogger(conf, c.App.ErrWriter))
	return store, d, err
}
