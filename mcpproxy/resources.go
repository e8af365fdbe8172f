package mcpproxy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/toolcell/toolcell/internal/deadline"
	"github.com/toolcell/toolcell/mcpproxy/transport"
)

const (
	maxItems      = 20_000   // of one list
	maxItemBytes  = 16 << 20 // of one list
	maxURI        = 64 << 10
	maxPromptName = 512
)

// checkName refuses the name of something that no server has.
func checkName(u *upstream, w Want) error {
	if w.Method == ReadResource && (w.Name == "" || len(w.Name) > maxURI) {
		return fmt.Errorf("reading a resource of server %q: the URI has %d bytes, the most is %d", u.server.Name, len(w.Name), maxURI)
	}
	return nil
}

// listItems joins the pages of a list. A server that has no such thing gives an empty one.
func (u *upstream) listItems(ctx context.Context, r request) (json.RawMessage, error) {
	timeout := cmp.Or(u.callTimeout, listWithin)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, noAnswer(timeout))
	defer cancel()
	s, release, err := u.acquireFor(ctx, r)
	if err != nil {
		return nil, err
	}
	defer release()
	if !s.Offers(r.want.Method) {
		return json.RawMessage("[]"), nil
	}
	r.sent.Store(true)
	began := time.Now()
	var all [][]byte
	size := 0
	for items, err := range s.Pages(ctx, r.want.Method) {
		for _, item := range items {
			if size += len(item); size > maxItemBytes || len(all) == maxItems { // part of a list would pass for the whole
				err = fmt.Errorf("the list has more than %d entries or %d MiB", maxItems, maxItemBytes>>20)
				break
			}
			if item = bytes.TrimSpace(item); len(item) > 0 && item[0] == '{' { // anything else makes no sense and is left out
				all = append(all, item)
			}
		}
		if err != nil {
			return nil, s.Explain(u.explainReadError(ctx, s, err, r.what()), began)
		}
	}
	return slices.Concat([]byte("["), bytes.Join(all, []byte(",")), []byte("]")), nil
}

// requestItem reads a resource or gets a prompt.
func (u *upstream) requestItem(ctx context.Context, r request) (json.RawMessage, error) {
	ctx, left, cancel := deadline.Bound(ctx, u.callTimeout, noAnswer(u.callTimeout))
	defer cancel()
	s, release, err := u.acquireFor(ctx, r)
	if err != nil {
		return nil, err
	}
	defer release()
	params, kind := &transport.Params{URI: r.want.Name}, "resources"
	if r.want.Method == GetPrompt {
		params, kind = &transport.Params{Name: r.want.Name, Arguments: r.args}, "prompts"
	}
	if !s.Offers(r.want.Method) {
		return nil, fmt.Errorf("%s: the server has no %s", r.what(), kind)
	}
	began := time.Now()
	reply, err := r.send(ctx, u, s, left, params)
	if err == nil {
		err = reply.Check()
	}
	if err != nil {
		return nil, s.Explain(u.explainReadError(ctx, s, err, r.what()), began)
	}
	return reply.Result, nil
}

// A silence is the error of a request that got no answer in time.
type silence struct{ limit time.Duration }

func (e *silence) Error() string { return fmt.Sprintf("no answer within %v", e.limit) }
func (e *silence) Unwrap() error { return context.DeadlineExceeded }

func noAnswer(limit time.Duration) error { return &silence{limit} }
