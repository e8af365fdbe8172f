package npm

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs/packages"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

//go:embed startnpm.js
var startScript string

// A Tool is npm in a sandbox.
type Tool struct {
	Run  packages.Run // runs a command in a sandbox that has them
	Node string       // path of node inside
	CLI  string       // path of npm's npm-cli.js inside
}

// A LockRequest asks for a lock.
type LockRequest struct {
	Source
	Platform
	Tool   Tool
	Specs  []string  // NAME or NAME@VERSION each, also NAME@RANGE or NAME@TAG
	Before time.Time // later versions are ignored; zero: none is
}

// maxSpecs bounds the packages that a lock is made for.
const maxSpecs = 100

// Lock has npm choose the versions of packages and of all that they need, in a sandbox that
// reaches the hosts of the source alone, and returns its package-lock.json, which ParseLock
// has accepted. No script of a package runs, and no tarball is unpacked.
//
// The error is a *packages.RequestError if there is no such package or version, or the lock
// has what ParseLock refuses.
func Lock(ctx context.Context, r LockRequest) ([]byte, error) {
	from, err := r.origins()
	if err != nil {
		return nil, err
	}
	wanted, err := parseSpecs(r.Specs)
	if err != nil {
		return nil, &packages.RequestError{Err: err}
	}
	index, plain := from.Index()
	out, err := r.Tool.Run(ctx, packages.Command{
		Args: []string{r.Tool.Node, "-e", startScript}, Hosts: from.Hosts(), Plain: plain, Credential: r.Credential, Authorized: index,
		Input: func(proxy string, roots []byte) []byte { return r.task(wanted, proxy, roots) },
	})
	if err != nil {
		return nil, fmt.Errorf("starting npm: %w", err)
	}
	if out.Code != 0 {
		return nil, explain(out)
	}
	tree, err := ParseLock(ctx, out.Stdout, r.Source, r.Platform)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, &packages.RequestError{Err: fmt.Errorf("reading what npm wrote: %w", err)}
	}
	for name := range wanted {
		if !tree.has("node_modules/" + name) {
			return nil, errors.New("npm wrote a lock without " + name)
		}
	}
	return out.Stdout, nil
}

// A spec may have a version, a range or a tag, and nothing that leads elsewhere: no
// address, no folder, no other package's name.
var rangeForm = text.Pattern(`^[A-Za-z0-9.^~<>=|*+ -]{1,100}$`)

// parseSpecs returns the dependencies of a package.json.
func parseSpecs(specs []string) (map[string]string, error) {
	if len(specs) == 0 || len(specs) > maxSpecs {
		return nil, fmt.Errorf("there are %d packages to lock; it must be 1 to %d", len(specs), maxSpecs)
	}
	wanted := map[string]string{}
	for _, spec := range specs {
		name, version := spec, "latest"
		if at := strings.LastIndex(spec, "@"); at > 0 {
			name, version = spec[:at], spec[at+1:]
		}
		if strings.HasPrefix(spec, "-") || !validName(name) || !rangeForm().MatchString(version) {
			return nil, fmt.Errorf("%s is not a package of a registry: NAME, or NAME@VERSION", rootdir.Quote(spec))
		}
		if _, twice := wanted[name]; twice {
			return nil, fmt.Errorf("%s is named twice", name)
		}
		wanted[name] = version
	}
	return wanted, nil
}

// task returns the input of startnpm.js, which works in a new folder. The environment takes
// nothing from the host or the image.
func (r LockRequest) task(wanted map[string]string, proxy string, roots []byte) []byte {
	args := []string{
		r.Tool.CLI, "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund", "--lockfile-version=3", "--no-progress", "--no-color", "--no-update-notifier",
		"--registry=" + r.Registry, "--cache=cache", "--userconfig=no-user", "--globalconfig=no-global", "--omit-lockfile-registry-resolved=false",
		"--os=" + r.OS, "--cpu=" + r.CPU, "--libc=" + r.Libc, "--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000", "--fetch-timeout=30000", "--logs-max=0", "--loglevel=error",
	}
	if !r.Before.IsZero() {
		args = append(args, "--before="+r.Before.UTC().Format(time.RFC3339))
	}
	env := map[string]string{
		"LANG": "C.UTF-8", "HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": "",
		"UV_THREADPOOL_SIZE": "4", // threads count toward the sandbox's limit
	}
	manifest, err := json.Marshal(map[string]any{"private": true, "dependencies": wanted})
	if err != nil {
		panic(err) // of strings
	}
	files := map[string]string{"package.json": string(manifest)}
	if len(roots) > 0 {
		files["roots.pem"] = string(roots)
		args = append(args, "--cafile=roots.pem")
	}
	task, err := json.Marshal(map[string]any{"args": args, "env": env, "files": files})
	if err != nil {
		panic(err) // of strings
	}
	return task
}

const (
	maxStderr = 64 << 10 // bytes of npm's errors that are read
	maxReason = 300      // and shown
)

// ofTheRequest are the codes of npm that mean that the request asks for what there is not.
var ofTheRequest = []string{"ETARGET", "ENOVERSIONS", "EINVALIDTAGNAME", "EINVALIDPACKAGENAME", "EUNSUPPORTEDPROTOCOL", "ERESOLVE", "EBADPLATFORM"}

// explain returns the error of an npm that has failed: its own lines, or why its requests
// were refused.
func explain(out packages.Output) error {
	code, reason := readErrors(out.Stderr)
	if len(out.Refused) > 0 && code != "ETARGET" {
		return fmt.Errorf("npm cannot reach the registry: %s", text.OneLine(out.Refused[0], maxReason))
	}
	switch {
	case code == "E404":
		return requestErrorf("the registry does not have a package: %s", reason)
	case slices.Contains(ofTheRequest, code):
		return requestErrorf("npm: %s", reason)
	}
	return fmt.Errorf("npm failed: %s", reason)
}

// readErrors returns the code and the first sentence of what npm wrote.
func readErrors(stderr []byte) (code, reason string) {
	if len(stderr) > maxStderr {
		stderr = stderr[:maxStderr]
	}
	last := ""
	for line := range strings.Lines(string(stderr)) {
		line = strings.TrimSpace(line)
		if line != "" {
			last = line
		}
		said, found := strings.CutPrefix(line, "npm error ")
		if !found {
			continue
		}
		if c, found := strings.CutPrefix(said, "code "); found {
			code = c
			continue
		}
		if strings.HasPrefix(said, "errno ") || strings.HasPrefix(said, "syscall ") {
			continue
		}
		// Some lines begin with a word for their kind, such as notarget or 404.
		if word, rest, _ := strings.Cut(said, " "); word == "notarget" || word == "network" || word == strings.TrimPrefix(code, "E") {
			said = rest
		}
		if said != "" {
			return code, text.OneLine(said, maxReason)
		}
	}
	if last == "" {
		return code, "it said nothing"
	}
	return code, text.OneLine(last, maxReason)
}
