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
	"github.com/toolcell/toolcell/bridge/run"
)

// rootsState is the requestState of a result that asks the client for its folders (roots), and
// rootsKey the key of that question.
const (
	rootsState = "roots"
	rootsKey   = "roots"
)

// rootsTimeout is how long a client has to name its folders.
const rootsTimeout = 5 * time.Second

// errSilent is that of a client that was asked, and has not answered.
var errSilent = errors.New("it did not answer")

// folder returns the folder that the client works in, "" if it does not tell. It is asked before
// each run, so that no run is shown a folder that the user has left; one that does not answer is
// left alone for a while. Since 2026-07-28 a result (input) asks, and the next call has the answer.
func (c *call) folder(ctx context.Context) (dir string, input *mcp.CallToolResult, err error) {
	caps := c.request.ClientCapabilities()
	if caps == nil || caps.RootsV2 == nil {
		return "", nil, nil
	}
	answer, _ := c.request.Params.InputResponses[rootsKey].(*mcp.ListRootsResult)
	changes, why := c.connection.unanswered.get()
	switch {
	case answer != nil || c.request.Params.RequestState == rootsState:
		c.connection.unanswered.comeBack(c.digest)
	case why != nil:
		return "", nil, why
	case !c.display.multiRound:
		answer, err = c.listRoots(ctx)
	case c.connection.unanswered.ask(c.digest):
		return "", &mcp.CallToolResult{
			Content:       []mcp.Content{}, // nil is null, which is no content
			InputRequests: mcp.InputRequestMap{rootsKey: &mcp.ListRootsParams{}},
			RequestState:  rootsState,
		}, nil
	}
	if err == nil && answer == nil {
		err = errSilent
	}
	if err != nil {
		why = fmt.Errorf("nothing is shown at %s: the client was asked for its folder (roots/list): %w", project.Target, err)
		if errors.Is(err, errSilent) {
			c.connection.unanswered.set(why, changes)
		}
		return "", nil, why
	}
	c.connection.unanswered.reset()
	if dir = firstFolder(answer.Roots); dir == "" {
		return "", nil, fmt.Errorf("nothing is shown at %s: %w (roots/list)", project.Target, run.ErrNoFolder)
	}
	return dir, nil, nil
}

// listRoots asks the client during the call.
func (c *call) listRoots(ctx context.Context) (*mcp.ListRootsResult, error) {
	silent := fmt.Errorf("%w within %s", errSilent, rootsTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, rootsTimeout, silent)
	defer cancel()
	answer, err := c.request.Session.ListRoots(inWords{ctx}, &mcp.ListRootsParams{})
	if err != nil && errors.Is(context.Cause(ctx), errSilent) { // not that the call was cancelled
		return nil, silent
	}
	return answer, err
}

// rootsChanged has a client asked again, which may answer now.
func (s *Server) rootsChanged(_ context.Context, r *mcp.RootsListChangedRequest) {
	s.connections.of(r.Session, r.Extra).unanswered.reset()
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
