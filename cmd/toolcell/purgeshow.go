package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/footprint"
	"github.com/toolcell/toolcell/internal/text"
)

// show shows what is about to be removed.
func (p *purging) show() error {
	if p.nothing() {
		console.Plainly(p.Err, "there is nothing to remove but the program")
		return nil
	}
	out := p.Stdout()
	for _, f := range p.clients.files {
		what := "changed file"
		if f.has() {
			what = "entry"
		}
		fmt.Fprintf(out, "%s of %s: %s\n", what, f.in.Client, console.Plain(f.in.File))
	}
	for _, b := range p.clients.backups {
		fmt.Fprintf(out, "backup: %s\n", console.Plain(b))
	}
	if len(p.disk.Uses) > 0 {
		if err := printDisk(p.Options, p.disk.Uses, p.disk.Total()); err != nil {
			return err
		}
		if shared := p.disk.Shared(); shared > 0 {
			console.Note(p.Err, text.Size(shared)+" of it will not be freed: files elsewhere are hard links to the same data")
		}
	}
	if lost := p.lost(); lost != "" {
		fmt.Fprintf(out, "\nThis cannot be undone. You lose %s.\n", console.Plain(lost))
	}
	if !p.Yes { // otherwise it is said at the end
		for _, said := range p.outside() {
			console.Note(p.Err, said)
		}
	}
	if len(p.running) > 0 && p.DryRun {
		var names []string
		for _, r := range p.running {
			names = append(names, r.String())
		}
		console.Note(p.Err, "nothing can be removed: "+stillRunning(names))
	}
	return nil
}

// lost names what only the user could make again.
func (p *purging) lost() string {
	var parts []string
	for _, k := range []struct {
		kind footprint.Kind
		what string
	}{{footprint.Tools, "saved tool"}, {footprint.Files, "run's files"}, {footprint.Record, "day"}, {footprint.Homes, "server"}, {footprint.Logins, "login"}} {
		switch n := p.disk.Use(k.kind).Count; {
		case n == 0:
		case k.kind == footprint.Files:
			parts = append(parts, "the files of "+text.Plural(n, "run"))
		case k.kind == footprint.Record:
			parts = append(parts, "the record of "+text.Plural(n, k.what))
		case k.kind == footprint.Homes && n == 1:
			parts = append(parts, "the home folder of 1 server")
		case k.kind == footprint.Homes:
			parts = append(parts, "the home folders of "+text.Plural(n, k.what))
		default:
			parts = append(parts, text.Plural(n, k.what))
		}
	}
	if p.disk.Use(footprint.Decisions).Files > 0 {
		parts = append(parts, "what you trusted, answered and set for servers")
	}
	if names := p.disk.Names; len(names) > 0 {
		dir := strings.Join(p.disk.Use(footprint.OwnFiles).Folders, "")
		parts = append(parts, "your own files in "+dir+" ("+strings.Join(names, ", ")+")")
	}
	return strings.Join(parts, ", ")
}

// appArmorProfile is the file that doctor may have had the user write.
const appArmorProfile = "/etc/apparmor.d/toolcell"

// outside names what purge leaves alone.
func (p *purging) outside() (all []string) {
	for _, note := range p.clients.notes() {
		all = append(all, "left as it is: "+note)
	}
	for _, c := range p.clients.unreadable {
		all = append(all, "left as it is: toolcell may be in "+c.File+", which cannot be read: "+c.Error)
	}
	all = append(all, p.folders...)
	for _, problem := range p.disk.Problems {
		all = append(all, "left as it is: "+problem)
	}
	if exists(appArmorProfile) {
		all = append(all, "left as it is: "+appArmorProfile+"; if no package has put it there: sudo sh -c 'apparmor_parser -R "+appArmorProfile+"; rm "+appArmorProfile+"'")
	}
	if n := len(p.disk.Foreign); n > 0 {
		names := text.QuoteList(p.disk.Foreign, 10)
		all = append(all, "left as it is, since it is not toolcell's: "+names)
	}
	return all
}

// dryRun prints the changes of clients' files, too.
func (p *purging) dryRun(ctx context.Context) error {
	p.uninstall(ctx)
	p.row.Left = append(p.row.Left, p.outside()...)
	if p.JSON {
		if err := console.PrintJSON(p.Streams, []purgeRow{p.row}); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(p.Stdout(), "\nnothing was removed: this was a dry run")
	}
	if p.failures > 0 {
		return &console.ExitError{Code: console.ExitFail} // what would fail is printed already
	}
	return nil
}

// printEnd sums up, and names what is left.
func (p *purging) printEnd(left []string) {
	out := p.Stdout()
	if len(p.row.Removed) > 0 {
		freed := text.Size(p.row.Freed)
		if left := p.shown - p.row.Freed; left > 0 {
			freed += ", left " + text.Size(left)
		}
		fmt.Fprintf(out, "freed %s\n", freed)
	}
	for _, said := range left {
		console.Note(p.Err, said)
	}
	for _, u := range p.row.Disk {
		if u.Kind == footprint.Logins && u.Count > 0 {
			console.Note(p.Err, "services may accept the tokens of logins until they expire: to revoke them at once, use the pages of connected applications there")
		}
	}
	if !exists(p.row.Program) {
		fmt.Fprintln(out, "the program is gone, too")
		return
	}
	fmt.Fprintf(out, "to remove the program itself: %s\n", console.Plain(cmp.Or(p.row.How, "rm "+text.ShellWord(p.row.Program))))
}
