package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/sandboxes"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/rootfs"
	"github.com/toolcell/toolcell/rootfs/packages"
	"github.com/urfave/cli/v2"
)

func packagesCommand(s *console.Streams) *cli.Command {
	forRuns := settings.Flags(slices.Concat([]string{"image", "policy", "uv", "memory"}, settings.ForImages)...)
	withJSON := append(settings.Flags("state-dir"), jsonFlag())
	forImage := settings.Flags(slices.Concat([]string{"image"}, settings.ForImages)...)
	return &cli.Command{
		Name:         "packages",
		Usage:        "get, list and remove the packages of scripts",
		OnUsageError: usageError,
		Subcommands: []*cli.Command{
			{
				Name: "add", Usage: "get packages ahead of the runs that need them, in the newest versions", ArgsUsage: "REQUIREMENT…|SCRIPT",
				Description: "A requirement is a name and perhaps versions, as in 'pandas>=2'. A script is a file\n" +
					"that ends in .py and has a # /// script header.",
				Flags:        append([]cli.Flag{&cli.BoolFlag{Name: "offline", Usage: "fetch nothing: say whether all is here"}, jsonFlag()}, forRuns...),
				OnUsageError: usageError,
				Action:       func(c *cli.Context) error { return packagesAdd(c, s) },
			},
			{
				Name: "lock", Usage: "write the versions that a script gets into pylock.NAME.toml beside it", ArgsUsage: "SCRIPT",
				Flags:        append([]cli.Flag{&cli.BoolFlag{Name: "offline", Usage: "fetch nothing: write the versions that the script got here"}, jsonFlag()}, forRuns...),
				OnUsageError: usageError,
				Action:       func(c *cli.Context) error { return packagesLock(c, s) },
			},
			{
				Name: "list", Usage: "show the sets of packages that are here",
				Flags: withJSON, OnUsageError: usageError,
				Action: func(c *cli.Context) error { return packagesList(c, s) },
			},
			{
				Name: "show", Usage: "show the packages of a set, by the beginning of its ID", ArgsUsage: "ID",
				Flags: withJSON, OnUsageError: usageError,
				Action: func(c *cli.Context) error { return packagesShow(c, s) },
			},
			{
				Name: "prune", Usage: "remove sets that were not used for some time; never one in use",
				Flags:        append([]cli.Flag{&cli.StringFlag{Name: "unused", Value: "30", Usage: "those not used for `DAYS`"}}, withJSON...),
				OnUsageError: usageError,
				Action:       func(c *cli.Context) error { return packagesPrune(c, s) },
			},
			{
				Name: "compile", Hidden: true, ArgsUsage: "ID", OnUsageError: usageError,
				Flags:  append([]cli.Flag{&cli.BoolFlag{Name: "until-eof"}}, forImage...),
				Action: func(c *cli.Context) error { return packagesCompile(c, s) },
			},
		},
		Action: needSubcommand,
	}
}

// packagesCompile gives a set of packages bytecode of its modules.
func packagesCompile(c *cli.Context, s *console.Streams) (err error) {
	if c.NArg() != 1 {
		return console.Usagef("packages compile takes the ID of a set")
	}
	ctx, cancel := untilEOF(c, s)
	defer cancel()
	conf, d, err := settings.ReadWithDirs(c)
	if err != nil {
		return err
	}
	images, err := openStore(d, conf, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer images.Close()
	images.Policy = rootfs.PullNever
	root, err := images.Ensure(ctx, conf.Image, nil)
	if err != nil {
		return err
	}
	store, err := openPackages(d, conf)
	if err != nil {
		return err
	}
	defer store.Close()
	set, err := store.Find(c.Args().First())
	if err != nil {
		return err
	}
	runtime, err := oci.Open(d.Run, conf.UID, conf.GID)
	if err != nil {
		return d.Explain(err)
	}
	defer func() { err = errors.Join(err, runtime.Close()) }()
	ctx, stop := context.WithTimeout(ctx, compileTime)
	defer stop()
	bind := spec.Bind{Source: set.Dir, Target: packages.Target}
	return store.AddBytecode(ctx, set, compilesIn(runtime, sandboxes.SandboxRoot(root), root.Env, conf.Limits, bind))
}
