package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

const (
	defaultHits = 5
	maxHits     = 50
	maxQuery    = 1000 // characters

	startsAtOnce = 8
	// searchTimeout is how long a search waits for servers to start. A run
	// has 30 s by default, and one hanging server must not use it up.
	searchTimeout = 15 * time.Second
	// othersTimeout is how long it waits for the rest once some servers can be
	// searched, if these have not taken longer themselves.
	othersTimeout = 2 * time.Second
	// failureHolds is how long a search takes a failed start as the answer,
	// so that it does not start a broken server again and again.
	failureHolds = 5 * time.Minute
)

// knownTools searches the tools of all servers, and keeps the index for that.
//
// Nothing is started before a search, or a request for the tools of a server that
// was never listed: these are the user's servers, and most sessions need few of
// them. The first search starts them all, several at a time, and from then on the
// store has their tools for every process.
type knownTools struct {
	store    catalog.Store
	timeout  time.Duration // of a search
	turns    chan struct{} // to start a server for a search
	renewals chan struct{} // to start one whose list is old
	delay    time.Duration // before that
	pruned   sync.Once

	making chan struct{} // has one while an index is made
	mu     sync.Mutex
	have   indexOf
	behind bool // a goroutine makes the next one
}

func (c *knownTools) open(dir string, log *slog.Logger) {
	c.store = catalog.Store{Dir: dir, Log: log}
	c.turns, c.renewals, c.making = make(chan struct{}, startsAtOnce), make(chan struct{}, renewalsAtOnce), make(chan struct{}, 1)
	c.timeout, c.delay = searchTimeout, renewalDelay
}

// search ranks the tools of these servers.
func (c *knownTools) search(ctx context.Context, upstreams []*upstream, query string, limit int, full bool) ([]ToolDoc, []config.Problem, error) {
	lists, failures := c.collect(ctx, upstreams)
	if cause := context.Cause(ctx); cause != nil {
		if silent, ok := errors.AsType[*SilentError](errors.Join(failures...)); ok {
			cause = silent
		}
		return nil, nil, fmt.Errorf("searching tools: %w", cause)
	}
	found, err := c.rank(ctx, upstreams, lists, query, limit, full)
	if err != nil {
		return nil, nil, err
	}
	return found, problemsOf(upstreams, failures), nil
}

// rank ranks the tools of these lists.
func (c *knownTools) rank(ctx context.Context, upstreams []*upstream, lists []*catalog.List, query string, limit int, full bool) ([]ToolDoc, error) {
	have, err := c.index(ctx, upstreams, lists)
	if err != nil {
		return nil, fmt.Errorf("searching tools: %w", err)
	}
	found := []ToolDoc{}
	for _, hit := range have.index.Search(query, limit) {
		at := have.tools[hit.Doc]
		doc := newDoc(at.upstream.server, at.list.At(at.tool), full)
		doc.Score = rounded(hit.Score)
		found = append(found, doc)
	}
	return found, nil
}

// problemsOf says why servers could not be searched.
func problemsOf(upstreams []*upstream, failures []error) (problems []config.Problem) {
	for i, err := range failures {
		if err == nil {
			continue
		}
		status := config.StatusFailed
		if errors.Is(err, errNotYet) {
			status = config.StatusStarting
		}
		s := upstreams[i].server
		problems = append(problems, config.Problem{Source: s.Source, Server: s.Name, Status: status, Reason: WithoutOutput(err).Error()})
	}
	return problems
}

// rounded returns a score as it is shown; 0 would be none.
func rounded(score float64) float64 { return max(math.Round(score*100)/100, 0.01) }

// collect returns the tools of each server, or why it has none. It starts all servers
// whose tools are not known and waits for them together; when the timeout is over they go on
// in the background.
func (c *knownTools) collect(ctx context.Context, upstreams []*upstream) ([]*catalog.List, []error) {
	lists := make([]*catalog.List, len(upstreams))
	var unknown, changed []int
	for i, u := range upstreams {
		list, isChanged := u.record.Tools()
		lists[i] = list
		switch {
		case list == nil:
			unknown = append(unknown, i)
		case isChanged && u.running() != nil:
			changed = append(changed, i)
		default:
			c.renew(u)
		}
	}
	c.prune(upstreams)
	if len(unknown)+len(changed) == 0 {
		return lists, nil
	}
	defer startWaitOf(ctx).Pauses.Wait()()
	failures := make([]error, len(upstreams))
	brief := len(unknown) > startsAtOnce // so many are not all kept warm
	var all sync.WaitGroup
	over, listed := make(chan struct{}), make(chan bool, len(unknown))
	for _, i := range unknown {
		all.Go(func() {
			defer func() { listed <- failures[i] == nil }()
			defer contain.Error("listing the tools of a server", &failures[i])
			lists[i], failures[i] = c.firstList(ctx, upstreams[i], brief, over)
		})
	}
	for _, i := range changed {
		all.Go(func() {
			defer contain.Error("listing the tools of a server", &failures[i])
			lists[i], failures[i] = upstreams[i].tools(ctx)
		})
	}
	c.wait(listed, len(unknown), len(unknown) < len(upstreams), over)
	all.Wait()
	return lists, failures
}

// wait waits for n lists, and closes over when a search should not wait longer; listed
// reports each list that ends, and whether it succeeded. If no list is there yet, wait takes
// the whole timeout. After one, the others get as long again as the slowest took: what
// slows one server down, such as npm, may slow all of them down.
func (c *knownTools) wait(listed <-chan bool, n int, some bool, over chan<- struct{}) {
	begun, timeout := time.Now(), c.timeout
	if some {
		timeout = min(othersTimeout, timeout)
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for ; n > 0; n-- {
		select {
		case has := <-listed:
			if taken := time.Since(begun); has {
				timer.Reset(min(max(othersTimeout, taken), c.timeout-taken))
			}
		case <-timer.C:
			close(over)
			return
		}
	}
}

// firstList lists the tools of a server that no process has listed yet. It does
// not try again what just failed.
func (c *knownTools) firstList(ctx context.Context, u *upstream, brief bool, over <-chan struct{}) (*catalog.List, error) {
	if err := u.failedJustNow(); err != nil {
		return nil, err
	}
	key, listing := u.scheduleListing(c.turns, 0, brief)
	return u.await(ctx, key, listing, over)
}

const (
	renewAfter = 24 * time.Hour // a list this old is fetched again, in the background
	renewRetry = time.Hour      // after a time that failed
	// renewalDelay makes a renewal wait for the run that needs the tools, and saves a
	// command that ends at once from starting a server for nothing.
	renewalDelay   = 3 * time.Second
	renewalsAtOnce = 2
)

// renew lists the tools of a server again, in the background, if its list is old. If that
// fails, the old list stays.
func (c *knownTools) renew(u *upstream) {
	if u.isOld() {
		u.scheduleListing(c.renewals, c.delay, true)
	}
}

// prune forgets, once and beside other work, the servers that are gone.
func (c *knownTools) prune(upstreams []*upstream) {
	if len(upstreams) == 0 || c.store.Dir == "" {
		return
	}
	c.pruned.Do(func() {
		defer contain.Recover("forgetting servers that are gone", nil)
		upstreams[0].inBackground(func() {
			keep := map[string]bool{}
			for _, u := range upstreams {
				keep[u.record.Key()] = true
			}
			c.store.Prune(keep)
			prunePins(upstreams)
		})
	})
}
