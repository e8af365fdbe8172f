package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
)

func serveCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name: "serve", Aliases: []string{"run"}, Usage: "run the MCP server on stdin/stdout",
		Flags: settings.Flags(), Action: action(s, serve),
	}
}

func serve(ctx context.Context, o Options) (err error) {
	limitMemory()
	level := &slog.LevelVar{}
	level.Set(o.Settings.LogLevel)
	log := newLogger(o.Settings, o.Err, level)
	live := o.Settings.Watch(currentProject(), log)
	conf := live.Now()
	found := watchServers(conf, log)
	warnOfTypos(log)
	logProblems(log, found.config)
	a, err := openApp(conf, appOptions{log: log, background: attachedWork(log), command: "serve", servers: found, live: live, level: level})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if console.Terminal(o.In) {
		fmt.Fprintln(o.Err, "toolcell: waiting for an MCP client on standard input; to try it by hand: toolcell exec -c 'print(1)'")
	}
	if log.Enabled(ctx, slog.LevelDebug) { // listing the servers reads the record of each
		log.Debug("serving", "version", version, "image", conf.Image, "servers", len(a.proxy.Servers()))
	}
	conf.Bridge.Version, conf.Bridge.Log, conf.Bridge.Signals = version, log, a.signals
	conf.Bridge.Current = func() (bridge.OutputMode, time.Duration) {
		now := live.Now().Bridge
		return now.Output, now.FormTimeout
	}
	return bridge.New(a.runs, conf.Bridge).Serve(ctx, o.In, o.Out)
}

// memoryLimit is the memory, in bytes, above which Go collects garbage more often.
// What hostile code makes toolcell hold is bounded where it comes in, but garbage is
// not: by default there may be as much of it as of memory in use. The program and the
// C library take some 40 MiB more, so all of it should stay below 256 MiB.
const memoryLimit = 192 << 20

// limitMemory sets the limit unless the user has set one.
func limitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
