package bridge

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/project"
)

// rootsState is the requestState of a result that asks the client for its folders (roots), and
// rootsKey the key of that question.
const (
	rootsState = "roots"
	rootsKey   = "roots"
)

// rootsTimeout is how long a client has to name its folders.
const rootsTimeout = 5 * time.Second

// folder returns the folder that the client works in, "" if it does not tell. It is asked before
// each run, so that no run is shown a folder that the user has left. Since 2026-07-28 a result
// (input) asks, and the next call has the answer.
func (c *call) folder(ctx context.Context) (dir string, input *mcp.CallToolResult, err error) {
	caps := c.request.ClientCapabilities()
	if caps == nil || caps.RootsV2 == nil {
		return "", nil, nil
	}
	var answer *mcp.ListRootsResult
	switch {
	case !c.display.multiRound:
		ctx, cancel := context.WithTimeoutCause(ctx, rootsTimeout, fmt.Errorf("no answer came within %s", rootsTimeout))
		defer cancel()
		answer, err = c.request.Session.ListRoots(inWords{ctx}, &mcp.ListRootsParams{})
	case c.request.Params.RequestState != rootsState:
		return "", &mcp.CallToolResult{
			Content:       []mcp.Content{}, // nil is null, which is no content
			InputRequests: mcp.InputRequestMap{rootsKey: &mcp.ListRootsParams{}},
			RequestState:  rootsState,
		}, nil
	default:
		answer, _ = c.request.Params.InputResponses[rootsKey].(*mcp.ListRootsResult)
	}
	if err == nil && answer == nil {
		err = errors.New("it did not answer")
	}
	if err != nil {
		return "", nil, fmt.Errorf("nothing is shown at %s: the client was asked for its folder (roots/list): %w", project.Target, err)
	}
	if dir = firstFolder(answer.Roots); dir == "" {
		return "", nil, fmt.Errorf("nothing is shown at %s: the client has no folder open on this machine (roots/list)", project.Target)
	}
	return dir, nil, nil
}

// thisMachine are the hosts of file URIs of this machine. (RFC 8089, section 2)
var thisMachine = []string{"", "localhost"}

// firstFolder returns the first root that is a folder of this machine. "This MUST be a file://
// URI in the current specification." (MCP specification, Roots)
func firstFolder(roots []*mcp.Root) string {
	for _, root := range roots {
		if root == nil {
			continue
		}
		u, err := url.Parse(root.URI)
		if err == nil && u.Scheme == "file" && slices.Contains(thisMachine, u.Host) && filepath.IsAbs(u.Path) {
			return filepath.Clean(u.Path)
		}
	}
	return ""
}
