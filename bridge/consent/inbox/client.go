package inbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/internal/contain"
)

const (
	replyTime = 5 * time.Second // for a process that may be stopped by a signal
	maxReply  = 128 << 20       // bytes of a line; a text is at most six times its arguments
)

// A Client speaks with one process that may have questions. It is not safe for
// concurrent use.
type Client struct {
	PID   int  // 0 if the process is in another container
	Page  bool // answers are those of the page of toolcell ui
	conn  *net.UnixConn
	lines *bufio.Reader
}

// Connect connects to all processes with a socket in one of the folders. A folder that
// does not exist has none. The clients have to be closed.
func Connect(dirs ...string) (all []*Client, err error) {
	for i, dir := range dirs {
		if slices.Contains(dirs[:i], dir) {
			continue
		}
		d, openErr := openFolder(dir)
		if openErr != nil {
			if !errors.Is(openErr, fs.ErrNotExist) {
				err = errors.Join(err, openErr)
			}
			continue
		}
		for _, conn := range d.connect() {
			peer, peerErr := peerOf(conn)
			if peerErr != nil || !mayConnect(peer) {
				_ = conn.Close() // nothing was written
				continue
			}
			all = append(all, &Client{PID: int(peer.Pid), conn: conn, lines: bufio.NewReader(conn)})
		}
		err = errors.Join(err, d.close())
	}
	return all, err
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// List returns the questions of the process, oldest first.
func (c *Client) List() ([]Question, error) {
	replies, err := c.ask(request{Op: opList})
	all := make([]Question, 0, len(replies))
	for _, r := range replies {
		if r.Question == nil {
			return nil, errAnswer
		}
		all = append(all, *r.Question)
	}
	return all, err
}

// Show returns a question with its text.
func (c *Client) Show(id string) (Question, error) {
	replies, err := c.ask(request{Op: opShow, ID: id})
	switch {
	case err != nil:
		return Question{}, err
	case len(replies) != 1 || replies[0].Question == nil:
		return Question{}, errAnswer
	}
	return *replies[0].Question, nil
}

// A Challenge is a question that is being approved.
type Challenge struct {
	Question Question // with its text
	Code     string   // that a person has to type
	Calls    []int    // numbers of the calls that it allows, if some were named
	Remark   string   // why the server cannot tell that it is a person; most often empty
}

// Begin begins to approve a question: all of its calls, or those whose numbers were typed, such as
// 1,3-5.
func (c *Client) Begin(id string, choice consent.Choice, calls string) (Challenge, error) {
	replies, err := c.ask(request{Op: opChallenge, ID: id, For: choice, Calls: calls})
	if err != nil {
		return Challenge{}, err
	}
	if len(replies) != 1 || replies[0].Question == nil {
		return Challenge{}, errAnswer
	}
	if calls != "" && len(replies[0].Calls) == 0 { // its code would allow all of them
		return Challenge{}, errors.New("this toolcell serve is of an older version, and cannot allow some of several calls: restart its client, or deny them")
	}
	return Challenge{Question: *replies[0].Question, Code: replies[0].Code, Calls: replies[0].Calls, Remark: replies[0].Remark}, nil
}

// Approve ends what Begin has begun, with the code that was typed. The error is ErrCode if that is wrong.
func (c *Client) Approve(id, code string) error {
	_, err := c.ask(request{Op: opApprove, ID: id, Code: code})
	return err
}

// Deny denies what a question asks, or also stops its run. Because is what the user says to that,
// as consent.Because returns it.
func (c *Client) Deny(id string, stop bool, because string) error {
	op := opDeny
	if stop {
		op = opStop
	}
	_, err := c.ask(request{Op: op, ID: id, Because: because})
	return err
}

// Revoke takes back an approval for the rest of a run, or for a connection.
func (c *Client) Revoke(id string) error {
	_, err := c.ask(request{Op: opRevoke, ID: id})
	return err
}

// errAnswer is the error of an answer that is none.
var errAnswer = errors.New("the answer of toolcell serve is not understood")

// ask sends a request and returns the replies that have something in them.
func (c *Client) ask(r request) (replies []reply, err error) {
	r.Page = c.Page
	line, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("writing a request as JSON: %w", err)
	}
	if len(line) >= maxRequest {
		return nil, fmt.Errorf("what is asked of toolcell serve has %d bytes, and it reads at most %d", len(line), maxRequest)
	}
	if err := c.conn.SetDeadline(time.Now().Add(replyTime)); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(append(line, '\n')); err != nil {
		return nil, c.explain(err)
	}
	for {
		line, err := c.readLine()
		if err != nil {
			return nil, c.explain(err)
		}
		var r reply
		switch err := json.Unmarshal(line, &r); {
		case err != nil:
			return nil, errors.Join(errAnswer, err)
		case r.Error != "":
			return nil, &refusal{r.Error, r.Kind}
		case r.End:
			return replies, nil
		case r.Question == nil && r.Running == nil && r.ServerLog == nil && r.Sandboxes == nil:
			return nil, errAnswer
		}
		replies = append(replies, r)
	}
}

func (c *Client) readLine() (line []byte, err error) {
	for {
		piece, err := c.lines.ReadSlice('\n')
		line = append(line, piece...)
		if len(line) > maxReply {
			return nil, errAnswer
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// explain says of which process an error is.
func (c *Client) explain(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("toolcell serve (process %d) does not answer; if it is stopped, go on with it: kill -CONT %[1]d", c.PID)
	}
	return fmt.Errorf("asking toolcell serve (process %d): %w", c.PID, err)
}

// ListAll returns the questions of several processes, oldest first. Those that do not
// answer are left out, and said in the error.
func ListAll(clients []*Client) (all []Question, err error) {
	lists, errs := make([][]Question, len(clients)), make([]error, len(clients))
	var work sync.WaitGroup
	for i, c := range clients {
		work.Go(func() {
			defer contain.Error("listing questions", &errs[i])
			lists[i], errs[i] = c.List()
		})
	}
	work.Wait()
	all = slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b Question) int { return a.AskedAt.Compare(b.AskedAt) })
	return all, errors.Join(errs...)
}
