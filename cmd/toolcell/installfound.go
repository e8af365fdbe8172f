package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/installer"
)

// installInFound shows the clients on this machine, and asks which of them are to
// get toolcell. Without a terminal it says how to name them.
func installInFound(ctx context.Context, o installOptions) error {
	found := slices.DeleteFunc(installer.Clients(o.change.Discovery), func(r installer.Client) bool { return !r.Found })
	if len(found) == 0 && !o.JSON {
		return console.Invalidf("no MCP client was found on this machine; name one: %s", strings.Join(installer.ClientNames(), ", "))
	}
	if err := printClients(o, found); err != nil || o.JSON {
		return err
	}
	var without, crowded []string
	for _, r := range found {
		if r.Status != "installed" && r.Status != "unreadable" {
			without = append(without, r.Client)
		}
		if r.Status == "installed" && r.Servers > 0 {
			crowded = append(crowded, r.Client)
		}
	}
	if len(crowded) > 0 {
		fmt.Fprintf(o.Stdout(), "\nTo save the tokens of other servers, type: toolcell install %s --move-servers --dry-run\n", strings.Join(crowded, " "))
	}
	if len(without) == 0 {
		return nil
	}
	if !console.Terminal(o.In) || !console.Terminal(o.Err) {
		return console.Invalidf("name the clients that are to get toolcell: toolcell install %s, or toolcell install --all", strings.Join(without, " "))
	}
	clients, err := askClients(ctx, o, without)
	if err != nil {
		return err
	}
	return doForClients(ctx, o, clients, func(i *installer.Installer) (*installer.Report, error) { return i.Install(ctx) })
}

// askClients asks which clients are meant until the answer has only known names.
func askClients(ctx context.Context, o installOptions, without []string) ([]string, error) {
	for {
		fmt.Fprintf(o.Err, "\nPut toolcell into which? Type names (%s), or all; Enter for none: ", strings.Join(without, ", "))
		answer, err := console.ReadLine(ctx, o.In)
		names := strings.FieldsFunc(answer, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
		if err != nil || len(names) == 0 {
			return nil, &console.ExitError{Code: console.ExitFail, Err: fmt.Errorf("nothing was changed")}
		}
		if slices.Contains(names, "all") {
			return without, nil
		}
		wrong := error(nil)
		for _, name := range names {
			if err := installer.Check(o.change, name); err != nil && wrong == nil {
				wrong = err
			}
		}
		if wrong == nil {
			return names, nil
		}
		fmt.Fprintf(o.Err, "%s\n", console.Shown(o.Err, wrong.Error()))
	}
}

func printClients(o installOptions, rows []installer.Client) error {
	if o.JSON {
		return console.PrintJSON(o.Streams, rows)
	}
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, []string{r.Client, strings.TrimSuffix(r.Status+": "+r.Error, ": "), strconv.Itoa(r.Servers), r.File})
	}
	return console.PrintTable(o.Out, []console.Column{{Name: "CLIENT"}, {Name: "STATUS"}, {Name: "OTHER SERVERS", Right: true}, {Name: "FILE", End: true}}, cells)
}
