package egress

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// A Use summarizes what code did with one host and port.
type Use struct {
	Host          string `json:"host"`
	Port          int    `json:"port"`
	Requests      int    `json:"requests"` // of HTTP, or connections whose content is not seen
	BytesSent     int64  `json:"bytesSent"`
	BytesReceived int64  `json:"bytesReceived"`
	Refused       int    `json:"refused"` // or failed before reaching the host
	Rule          string `json:"rule"`    // that allowed or denied it last; empty if none did
}

// A Contact is a Use and its time.
type Contact struct {
	Use
	Last time.Time // when something was last requested, refused, sent or received
}

// reached reports whether something has got to the host.
func (c *Contact) reached() bool { return c.Requests > 0 || c.BytesSent > 0 || c.BytesReceived > 0 }

// add adds the counts of another one.
func (c *Contact) add(other Contact) {
	c.Requests += other.Requests
	c.BytesSent += other.BytesSent
	c.BytesReceived += other.BytesReceived
	c.Refused += other.Refused
	if other.Last.After(c.Last) {
		c.Last = other.Last
	}
}

// A Refusal is a reason why requests have not reached a host.
type Refusal struct {
	Host   string // "?" if the request names none that is understood
	Port   int    // 0 if the name was looked up in vain
	Rule   string // that says so; empty if none does
	Reason string
	Failed bool // no rule is the reason: an allowed request has failed on its way
	Count  int
	Last   time.Time
}

// maxUses bounds the hosts that are recorded separately, maxReasons the reasons of a run and
// maxRecent those of a server.
const (
	maxUses    = 50
	maxReasons = 5
	maxRecent  = 50
)

// usage records what a run or a server did. A run's records are of the first hosts and reasons,
// for its result. A server's are of the latest ones, since what it did days ago must not keep
// what it does now off the record.
type usage struct {
	owner Owner
	now   func() time.Time

	mu      sync.Mutex
	bytes   budget
	hour    context.Context // of a server: ends when its bytes are used up, and begins anew
	endHour context.CancelFunc
	uses    []Contact
	others  Contact   // those that a server's records no longer have
	refused []Refusal // a server's in the order of their last times
	failed  []Refusal // on the way to a host
}

func newUsage(owner Owner, maxBytes int64, now func() time.Time) *usage {
	u := &usage{
		owner: owner, now: now, bytes: budget{owner: owner, most: maxBytes},
		others: Contact{Host: others},
	}
	u.hour, u.endHour = context.WithCancel(context.Background())
	return u
}

// others is the host of the entry that hosts without one of their own share.
const others = "others"

// find returns the record of a host and port, whose time is now. The caller holds mu.
func (u *usage) find(host string, port uint16) *Contact {
	at := func(c Contact) bool { return c.Host == host && c.Port == int(port) }
	i := slices.IndexFunc(u.uses, at)
	if i < 0 && len(u.uses) >= maxUses {
		if u.owner == Server {
			u.dropOldest()
		} else {
			host, port = others, 0
			i = slices.IndexFunc(u.uses, at)
		}
	}
	if i < 0 {
		u.uses, i = append(u.uses, Contact{Host: host, Port: int(port)}), len(u.uses)
	}
	u.uses[i].Last = u.now()
	return &u.uses[i]
}

// dropOldest adds the record that is wanted least to the others. Those of hosts that were reached
// stay longest: otherwise a server that asks for many names could hide what it has reached.
func (u *usage) dropOldest() {
	oldest := 0
	for i, c := range u.uses {
		switch o := &u.uses[oldest]; {
		case c.reached() != o.reached():
			if o.reached() {
				oldest = i
			}
		case c.Last.Before(o.Last):
			oldest = i
		}
	}
	u.others.add(u.uses[oldest])
	u.uses = slices.Delete(u.uses, oldest, oldest+1)
}

func (u *usage) addRequest(host string, port uint16, rule string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	use := u.find(host, port)
	use.Requests++
	use.Rule = rule
}

func (u *usage) addRefusal(host string, port uint16, rule, reason string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refused = u.count(Refusal{Host: host, Port: int(port), Rule: rule, Reason: reason}, u.refused)
}

// addFailure adds a failed request that no rule refused.
func (u *usage) addFailure(host string, port uint16, reason string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !slices.ContainsFunc(u.refused, func(r Refusal) bool { return r.Reason == asciiLine(reason) }) { // too many bytes
		u.failed = u.count(Refusal{Host: host, Port: int(port), Reason: reason, Failed: true}, u.failed)
	}
}

// count counts a request that did not reach its host, and adds its reason to known. Host and
// reason may quote what the code has sent. The caller holds mu.
func (u *usage) count(r Refusal, known []Refusal) []Refusal {
	r.Host, r.Reason = asciiLine(r.Host), asciiLine(r.Reason)
	use := u.find(r.Host, uint16(r.Port))
	use.Refused++
	if r.Rule != "" {
		use.Rule = r.Rule
	}
	r.Count, r.Last = 1, use.Last
	if u.owner == Server {
		return addLatest(known, r)
	}
	i := slices.IndexFunc(known, func(k Refusal) bool { return k.Reason == r.Reason })
	switch {
	case i >= 0:
		known[i].Count++
		known[i].Last = r.Last
	case len(known) < maxReasons:
		known = append(known, r)
	}
	return known
}

// addLatest adds a refusal as the last one, with the count that it has had.
func addLatest(known []Refusal, r Refusal) []Refusal {
	i := slices.IndexFunc(known, func(k Refusal) bool { return k.Host == r.Host && k.Port == r.Port && k.Reason == r.Reason })
	switch {
	case i >= 0:
		r.Count += known[i].Count
		known = slices.Delete(known, i, i+1)
	case len(known) >= maxRecent:
		known = slices.Delete(known, 0, 1)
	}
	return append(known, r)
}

// addBytes counts bytes that have passed. It fails once there are too many.
func (u *usage) addBytes(host string, port uint16, sent, received int64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	contain.Point("egress: usage locked")
	use := u.find(host, port)
	use.BytesSent += sent
	use.BytesReceived += received
	before := u.bytes.exceeded(use.Last)
	u.bytes.add(sent+received, use.Last)
	over := u.bytes.exceeded(use.Last)
	if over == nil || before != nil {
		return over
	}
	use.Refused++
	r := Refusal{Host: use.Host, Port: use.Port, Reason: over.Error(), Count: 1, Last: use.Last}
	if u.owner == Server {
		u.refused = addLatest(u.refused, r)
		u.endHour()
		u.hour, u.endHour = context.WithCancel(context.Background())
	} else {
		u.refused = append(u.refused, r)
	}
	return over
}

// whenSpent calls end in the background when the bytes of a server are used up, until stop is called.
// Connections of a run that pass something end by themselves, and the others with the run.
func (u *usage) whenSpent(end func()) (stop func() bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return context.AfterFunc(u.hour, contain.Func("ending a connection", end))
}

// full returns an error if a server has to wait until more bytes may pass. A run need not be
// told before it tries: it can never send more.
func (u *usage) full() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.owner != Server {
		return nil
	}
	return u.bytes.full(u.now())
}

func (u *usage) list() (all []Use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range u.uses {
		all = append(all, c.Use)
	}
	return all
}

// contacts returns the records, the latest first and the others last.
func (u *usage) contacts() []Contact {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := slices.Clone(u.uses)
	slices.SortStableFunc(all, func(a, b Contact) int { return b.Last.Compare(a.Last) })
	if !u.others.Last.IsZero() {
		all = append(all, u.others)
	}
	return all
}

// since returns the refusals whose last time is not before t, the latest first.
func (u *usage) since(t time.Time) []Refusal {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := slices.Concat(u.refused, u.failed)
	all = slices.DeleteFunc(all, func(r Refusal) bool { return r.Last.Before(t) })
	slices.SortStableFunc(all, func(a, b Refusal) int { return b.Last.Compare(a.Last) })
	return all
}

func (u *usage) reasons(known *[]Refusal) (all []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range *known {
		all = append(all, r.Reason)
	}
	return all
}
