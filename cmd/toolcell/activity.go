package main

import (
	"slices"

	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/spec"
)

// An activity is what serve lets the page of toolcell ui look at and end (inbox.Activity).
type activity struct{ *app }

func (a activity) Running(id string) (inbox.Running, bool) {
	now, ok := a.runs.Running(id)
	return inbox.Running{
		Stdout: inbox.Printed(now.Stdout), Stderr: inbox.Printed(now.Stderr),
		Private: now.Private,
		CPU:     now.Used.CPU.Microseconds(), Memory: now.Used.Memory, Peak: now.Used.Peak,
	}, ok
}

func (a activity) Stop(id, by string) bool { return a.runs.Stop(id, by) }

func (a activity) ServerLog(name string) (inbox.ServerLog, bool) {
	log, ok := a.proxy.ServerLog(name)
	return inbox.ServerLog(log), ok
}

func (a activity) Sandboxes() (all []inbox.Sandboxes) {
	for _, env := range a.environments.all() {
		for _, k := range env.runtime.Kept() {
			all = append(all, inbox.Sandboxes{
				Image: env.settings.Image, Packages: hasPackages(k), Waiting: k.Waiting, Running: k.Running,
				Template: k.Template, Memory: k.Memory, Forks: k.Forks,
			})
		}
	}
	return all
}

func hasPackages(k oci.Kept) bool {
	return slices.ContainsFunc(k.Process.Binds, func(b spec.Bind) bool { return b.Target == run.PackagesDir })
}
