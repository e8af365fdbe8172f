package egress

import "errors"

// An Owner is the kind of what a Broker serves, which decides what its bounds are about. The bytes
// of a Run are bounded in all, and its first hosts and reasons are on record. A Server lives for
// days: its bytes are bounded for each hour, its latest hosts and reasons are on record, and its
// certificate authority outlives it.
type Owner string

// The kinds of owners.
const (
	Run    Owner = "run"
	Server Owner = "server"
)

// ended is the error of requests after the end.
func (o Owner) ended() error {
	if o == Server {
		return errors.New("the network of the server has ended")
	}
	return errors.New("the run has ended")
}

// listsHosts names where the user adds a host for it.
func (o Owner) listsHosts() string {
	if o == Server {
		return "network of this server in the policy"
	}
	return "[network] allow and to the servers of the call"
}
