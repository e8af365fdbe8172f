package egress

import (
	"errors"
	"slices"
	"sync"
)

// A Use is what code did with one host and port.
type Use struct {
	Host          string `json:"host"`
	Port          int    `json:"port"`
	Requests      int    `json:"requests"` // of HTTP, or connections whose content is not seen
	BytesSent     int64  `json:"bytesSent"`
	BytesReceived int64  `json:"bytesReceived"`
	Refused       int    `json:"refused"`
	Rule          string `json:"rule,omitempty"` // that allowed or denied it last
}

// maxUses bounds the hosts that are told apart, maxReasons the reasons.
const (
	maxUses    = 50
	maxReasons = 5
)

// usage records what a run did. Its zero value has no bytes left.
type usage struct {
	mu      sync.Mutex
	left    int64 // bytes that may still pass
	uses    []*Use
	refused []string
}

// find returns the record of a host and port; those beyond maxUses share one. mu is
// held.
func (u *usage) find(host string, port uint16) *Use {
	for _, use := range u.uses {
		if use.Host == host && use.Port == int(port) {
			return use
		}
	}
	if len(u.uses) >= maxUses {
		if last := u.uses[len(u.uses)-1]; last.Host == "others" {
			return last
		}
		host, port = "others", 0
	}
	use := &Use{Host: host, Port: int(port)}
	u.uses = append(u.uses, use)
	return use
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
	use := u.find(host, port)
	use.Refused++
	if rule != "" {
		use.Rule = rule
	}
	if len(u.refused) < maxReasons && !slices.Contains(u.refused, reason) {
		u.refused = append(u.refused, reason)
	}
}

var errBytes = errors.New("the run has sent and received as many bytes as it may")

// addBytes counts bytes that have passed. It fails once they are too many.
func (u *usage) addBytes(host string, port uint16, sent, received int64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
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
	all := make([]Use, len(u.uses))
	for i, use := range u.uses {
		all[i] = *use
	}
	return all
}

func (u *usage) reasons() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.refused)
}
