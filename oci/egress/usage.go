package egress

import (
	"errors"
	"slices"
	"sync"

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

// maxUses bounds the hosts that are recorded separately, maxReasons the reasons.
const (
	maxUses    = 50
	maxReasons = 5
)

// usage records what a run did. Its zero value has no bytes left.
type usage struct {
	mu      sync.Mutex
	left    int64 // bytes that may still pass
	uses    []Use
	refused []string // why
	failed  []string // why, on the way to a host
}

// find returns the record of a host and port; those beyond maxUses share one. The caller
// holds mu.
func (u *usage) find(host string, port uint16) *Use {
	at := func(use Use) bool { return use.Host == host && use.Port == int(port) }
	i := slices.IndexFunc(u.uses, at)
	if i < 0 && len(u.uses) >= maxUses {
		host, port = "others", 0
		i = slices.IndexFunc(u.uses, at)
	}
	if i < 0 {
		u.uses, i = append(u.uses, Use{Host: host, Port: int(port)}), len(u.uses)
	}
	return &u.uses[i]
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
	u.refused = u.count(host, port, rule, reason, u.refused)
}

// addFailure adds a failed request that no rule refused.
func (u *usage) addFailure(host string, port uint16, reason string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !slices.Contains(u.refused, asciiLine(reason)) { // too many bytes
		u.failed = u.count(host, port, "", reason, u.failed)
	}
}

// count counts a request that did not reach its host, and adds its reason to known. Host and
// reason may quote what the code has sent. The caller holds mu.
func (u *usage) count(host string, port uint16, rule, reason string, known []string) []string {
	host, reason = asciiLine(host), asciiLine(reason)
	use := u.find(host, port)
	use.Refused++
	if rule != "" {
		use.Rule = rule
	}
	if len(known) < maxReasons && !slices.Contains(known, reason) {
		known = append(known, reason)
	}
	return known
}

var errBytes = errors.New("the run has sent and received as many bytes as it may")

// addBytes counts bytes that have passed. It fails once there are too many.
func (u *usage) addBytes(host string, port uint16, sent, received int64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	contain.Point("egress: usage locked")
	use := u.find(host, port)
	use.BytesSent += sent
	use.BytesReceived += received
	before := u.left
	u.left -= sent + received
	if u.left >= 0 {
		return nil
	}
	if before >= 0 {
		use.Refused++
		u.refused = append(u.refused, errBytes.Error())
	}
	return errBytes
}

func (u *usage) list() []Use {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.uses)
}

func (u *usage) reasons(known *[]string) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(*known)
}
