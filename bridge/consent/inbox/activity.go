package inbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
)

// An Activity lets toolcell ui see and end what a process does besides asking questions. It is safe
// for concurrent use.
type Activity interface {
	// Running returns what is known of a run; ok is false if none goes on with this ID.
	Running(id string) (now Running, ok bool)
	// Stop ends a run, and what it asks with it; ok is false if none goes on with this ID. By is how
	// the user says so.
	Stop(id, by string) (ok bool)
	// ServerLog returns what a server wrote; ok is false if there is none of this name.
	ServerLog(name string) (log ServerLog, ok bool)
	// Sandboxes returns what waits for runs.
	Sandboxes() []Sandboxes
}

// A Running is what is known of a run while it goes on.
type Running struct {
	Stdout Printed `json:"stdout"`
	Stderr Printed `json:"stderr"`

	Private bool  `json:"private"` // its code may have what was read from private servers
	CPU     int64 `json:"cpu"`     // microseconds that its code took so far
	Memory  int64 `json:"memory"`  // bytes that its sandbox holds now
	Peak    int64 `json:"peak"`    // and at the time of the most
}

// A Printed is the end of what code has printed, without secrets.
type Printed struct {
	Text   string `json:"text"`
	Before int64  `json:"before"` // bytes that are left out before it
}

// A ServerLog is what a server has written that is no message, without secrets: the end of it.
type ServerLog struct {
	Lines   []string  `json:"lines"`
	Running bool      `json:"running"` // the server that wrote them
	Since   time.Time `json:"since"`   // when it was started
	Failure string    `json:"failure"` // why it runs no more, "" if it did not fail
	Private bool      `json:"private"` // it may have what was read from private servers
}

// Sandboxes are those of one kind that are kept ready for runs.
type Sandboxes struct {
	Image    string `json:"image"`
	Packages bool   `json:"packages"` // the code of some asks for
	Waiting  int    `json:"waiting"`
	Running  int    `json:"running"`
	Template bool   `json:"template"` // there is a Python that they are forked from
	Memory   int64  `json:"memory"`   // bytes that it holds; 0 if that is not known
	Forks    int    `json:"forks"`    // made from it so far
}

// errNotHere is the error of what another process may have.
var errNotHere = errors.New("it is not in this process")

// about answers a request that is not about a question.
func (c *serverConn) about(r request) error {
	switch r.Op {
	case opRunning:
		if now, ok := c.activity.Running(r.ID); ok {
			return c.reply(reply{Running: &now})
		}
	case opEnd:
		if c.activity.Stop(r.ID, r.by()) {
			c.log.Info("a run was stopped with "+r.by(), "run", r.ID, "uid", c.peer.Uid, "pid", c.peer.Pid)
			return nil
		}
	case opServerLog:
		if log, ok := c.activity.ServerLog(r.ID); ok {
			return c.reply(reply{ServerLog: &log})
		}
	case opSandboxes:
		for _, kind := range c.activity.Sandboxes() {
			if err := c.reply(reply{Sandboxes: &kind}); err != nil {
				return err
			}
		}
		return nil
	default:
		return fmt.Errorf("there is no operation %.40q", string(r.Op))
	}
	return fmt.Errorf("%.60q: %w", r.ID, errNotHere)
}

// Running returns what is known of a run; ok is false if the process has none with this ID that goes
// on.
func (c *Client) Running(id string) (now Running, ok bool, err error) {
	replies, err := c.ask(request{Op: opRunning, ID: id})
	if len(replies) == 1 && replies[0].Running != nil {
		return *replies[0].Running, true, nil
	}
	return now, false, elsewhere(err)
}

// End ends a run that goes on; ok is false if the process has none with this ID.
func (c *Client) End(id string) (ok bool, err error) {
	_, err = c.ask(request{Op: opEnd, ID: id})
	return err == nil, elsewhere(err)
}

// ServerLog returns what a server wrote; ok is false if the process knows none of this name.
func (c *Client) ServerLog(name string) (log ServerLog, ok bool, err error) {
	replies, err := c.ask(request{Op: opServerLog, ID: name})
	if len(replies) == 1 && replies[0].ServerLog != nil {
		return *replies[0].ServerLog, true, nil
	}
	return log, false, elsewhere(err)
}

// Sandboxes returns what waits in the process for runs.
func (c *Client) Sandboxes() (all []Sandboxes, err error) {
	replies, err := c.ask(request{Op: opSandboxes})
	for _, r := range replies {
		if r.Sandboxes != nil {
			all = append(all, *r.Sandboxes)
		}
	}
	return all, err
}

// elsewhere returns nil in place of the error that the process does not have something.
func elsewhere(err error) error {
	if errors.Is(err, consent.ErrUnknown) {
		return nil
	}
	return err
}
