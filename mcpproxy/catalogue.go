package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	defaultHits = 5
	maxHits     = 50
	maxQuery    = 1000 // characters

	startsAtOnce = 8
	// searchPatience is how long a search waits for servers to start. A run
	// has 30 s by default, and one hanging server must not use it up.
	searchPatience = 15 * time.Second
	// failureHolds is how long a search takes a failed start as the answer,
	// so that it does not start a broken server again and again.
	failureHolds = time.Minute
)

// catalogue keeps the search index until some tool list changes.
type catalogue struct {
	mu    sync.Mutex
	lists []*toolList // what the index was made of, by upstream; nil is not known
	docs  []indexed
	index *index
}

// indexed is one document of the index.
type indexed struct {
	server Server
	tool   Tool
}

// Search ranks the tools of all discovered servers by how well they fit a
// query, best first, at most limit of them (0 is 5; 50 is the most). Servers
// are started as needed. One that cannot be searched is in the problems, with
// the reason.
func (p *Proxy) Search(ctx context.Context, query string, limit int, full bool) ([]ToolDoc, []Problem, error) {
	terms := words(query)
	switch {
	case utf8.RuneCountInString(query) > maxQuery:
		return nil, nil, fmt.Errorf("searching tools: the query is longer than %d characters", maxQuery)
	case len(terms) == 0:
		return nil, nil, errors.New("searching tools: the query is empty: give some words that say what the tool should do")
	case limit < 0:
		return nil, nil, fmt.Errorf("searching tools: limit %d is not positive", limit)
	case limit == 0:
		limit = defaultHits
	}
	upstreams := p.current().upstreams
	lists, problems := gather(ctx, upstreams)
	if err := context.Cause(ctx); err != nil {
		return nil, nil, fmt.Errorf("searching tools: %w", err)
	}
	index, docs := p.catalogue.update(upstreams, lists)
	found := []ToolDoc{}
	for _, i := range index.search(query, min(limit, maxHits)) {
		found = append(found, newDoc(docs[i].server, docs[i].tool, full))
	}
	return found, problems, nil
}

// gather collects the tools of all servers, starting several at a time.
func gather(ctx context.Context, upstreams []*upstream) ([]*toolList, []Problem) {
	hurry := fmt.Errorf("still starting after %v; search again later", searchPatience)
	ctx, cancel := context.WithTimeoutCause(ctx, searchPatience, hurry)
	defer cancel()
	lists := make([]*toolList, len(upstreams))
	failures := make([]error, len(upstreams))
	turns := make(chan struct{}, startsAtOnce)
	var all sync.WaitGroup
	for i, u := range upstreams {
		all.Go(func() {
			select {
			case turns <- struct{}{}:
				defer func() { <-turns }()
				lists[i], failures[i] = u.searchable(ctx)
			case <-ctx.Done():
				failures[i] = context.Cause(ctx)
			}
		})
	}
	all.Wait()
	var problems []Problem
	for i, err := range failures {
		if err != nil {
			s := upstreams[i].server
			problems = append(problems, Problem{Source: s.Source, Server: s.Name, Reason: err.Error()})
		}
	}
	return lists, problems
}

// searchable is known for searches: it does not try again what just failed.
func (u *upstream) searchable(ctx context.Context) (*toolList, error) {
	u.mu.Lock()
	if u.tools == nil && u.live == nil && u.starting == nil && u.failure != nil && time.Since(u.failedAt) < failureHolds {
		defer u.mu.Unlock()
		return nil, u.failure
	}
	u.mu.Unlock()
	return u.known(ctx)
}

// update returns the index over lists, made anew only if one is another than
// last time.
func (c *catalogue) update(upstreams []*upstream, lists []*toolList) (*index, []indexed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.index != nil && slices.Equal(c.lists, lists) {
		return c.index, c.docs
	}
	c.lists, c.docs = lists, nil
	for i, list := range lists {
		if list == nil {
			continue
		}
		for _, t := range list.tools {
			c.docs = append(c.docs, indexed{upstreams[i].server, t})
		}
	}
	c.index = newIndex(c.docs)
	return c.index, c.docs
}
