package inbox

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"golang.org/x/sys/unix"
)

// What consent.Answer.By is of what comes over a socket.
const (
	By     = "toolcell approvals"
	ByPage = "toolcell ui"
)

func (r request) by() string {
	if r.Page {
		return ByPage
	}
	return By
}

// A serverConn is one connection of a Server.
type serverConn struct {
	*Server
	conn      *net.UnixConn
	peer      *unix.Ucred
	process   process    // that has connected
	challenge *challenge // of the approval that has begun; nil if none has
}

// A challenge is the code that a person has to type.
type challenge struct {
	id     string
	answer consent.Answer
	code   string
}

// answer answers one line. It returns an error if the connection is of no use any more.
func (c *serverConn) answer(line []byte) error {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return errors.Join(c.fail(fmt.Errorf("this is no request: %w", err)), err)
	}
	if err := c.do(r); err != nil {
		return c.fail(err)
	}
	return c.reply(reply{End: true})
}

// errConn is the error of a reply that could not be written.
var errConn = errors.New("the connection is broken")

func (c *serverConn) do(r request) error {
	switch r.Op {
	case opList:
		return c.list()
	case opShow:
		q, err := c.find(r.ID)
		if err != nil {
			return err
		}
		return c.reply(reply{Question: whole(q)})
	case opChallenge:
		return c.begin(r)
	case opApprove:
		return c.approve(r)
	case opDeny:
		return c.decide(r.ID, consent.Answer{Choice: consent.Deny, Because: r.Because, By: r.by()})
	case opStop:
		return c.decide(r.ID, consent.Answer{Choice: consent.Stop, Because: r.Because, By: r.by()})
	case opRevoke:
		if err := c.queue.Revoke(r.ID); err != nil {
			return fmt.Errorf("%s: %w", r.ID, err)
		}
		c.record("revoke", r.ID, r.by())
		return nil
	}
	return c.about(r)
}

func (c *serverConn) list() error {
	for _, q := range c.queue.Questions() {
		listed := row(q)
		if err := c.reply(reply{Question: &listed}); err != nil {
			return err
		}
	}
	return nil
}

// find returns a question.
func (c *serverConn) find(id string) (consent.Question, error) {
	q, found := c.queue.Question(id)
	if !found {
		return q, fmt.Errorf("%.60q: %w", id, consent.ErrUnknown)
	}
	return q, nil
}

func whole(q consent.Question) *Question {
	r := row(q)
	r.Text = q.WholeTerminalText()
	return &r
}

// begin shows a question that is to be approved, with a code to type.
func (c *serverConn) begin(r request) error {
	c.challenge = nil
	q, err := c.find(r.ID)
	switch {
	case err != nil:
		return err
	case q.State != consent.Pending || !time.Now().Before(q.ExpiresAt):
		return decided(q)
	case q.Form != nil:
		return fmt.Errorf("server %q asks for input, which only the MCP client can ask the user for; it can be denied here", q.Form.Server)
	case !r.For.Allows() || !slices.Contains(q.Choices(), r.For):
		return fmt.Errorf("this question cannot be approved for %q; leave --for out", r.For)
	}
	var calls []int
	if r.Calls != "" {
		if calls, err = q.ParseCalls(r.Calls); err != nil {
			return err
		}
	}
	a, err := q.Check(consent.Answer{Choice: r.For, Calls: calls, By: r.by()})
	if err != nil {
		return err
	}
	if c.guessed(q.ID, 0) {
		return errGuessed
	}
	remark, err := c.judge()
	if err != nil {
		c.log.Warn("an approval was refused", "question", q.ID, "uid", c.peer.Uid, "pid", c.peer.Pid, "err", err)
		return err
	}
	c.challenge = &challenge{id: q.ID, answer: a, code: newCode()}
	return c.reply(reply{Question: whole(q), Code: c.challenge.code, Calls: calls, Remark: remark})
}

// approve approves a question if its code was typed. A code can be tried once.
func (c *serverConn) approve(r request) (err error) {
	begun := c.challenge
	c.challenge = nil
	if begun == nil || begun.id != r.ID {
		return errors.New("an approval begins with a challenge on the same connection")
	}
	typed := strings.ToUpper(strings.TrimSpace(r.Code))
	if subtle.ConstantTimeCompare([]byte(typed), []byte(begun.code)) != 1 {
		c.guessed(r.ID, 1)
		c.log.Warn("a wrong code was typed", "question", r.ID, "uid", c.peer.Uid, "pid", c.peer.Pid)
		return ErrCode
	}
	// It is asked again: the process may have another parent now, or none.
	if begun.answer.Remark, err = c.judge(); err != nil {
		return err
	}
	return c.decide(begun.id, begun.answer)
}

// decide gives the answer of the process that has connected.
func (c *serverConn) decide(id string, a consent.Answer) error {
	q, err := c.find(id)
	if err != nil {
		return err
	}
	choice := a.Choice
	a.PID = c.process.pid
	if q.Form != nil && choice == consent.Deny {
		if a.Because != "" {
			return fmt.Errorf("server %q asks for input, and gets no reason; leave --because out", q.Form.Server)
		}
		a.Choice, a.Action = "", "decline"
	}
	err = c.queue.Decide(id, a)
	if errors.Is(err, consent.ErrDecided) {
		if now, found := c.queue.Question(id); found {
			q = now
		}
		return decided(q)
	}
	if err == nil {
		c.record(string(choice), id, a.By)
	}
	return err
}

// record logs which process has answered; the queue logs what was answered.
func (c *serverConn) record(choice, id, by string) {
	c.log.Info("answered with "+by, "choice", choice, "question", id, "uid", c.peer.Uid, "pid", c.peer.Pid)
}

// decided is consent.ErrDecided with what is known of the answer.
func decided(q consent.Question) error {
	state := q.State
	if state == consent.Pending { // its run is about to notice
		state = consent.Expired
	}
	if q.Answer.By != "" {
		return fmt.Errorf("%s: %w (%s, by %s)", q.ID, consent.ErrDecided, state, q.Answer.By)
	}
	return fmt.Errorf("%s: %w (%s)", q.ID, consent.ErrDecided, state)
}

func (c *serverConn) fail(err error) error {
	if errors.Is(err, errConn) {
		return err
	}
	return c.reply(reply{Error: err.Error(), Kind: kindOf(err)})
}

func (c *serverConn) reply(r reply) error {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false) // arguments stay as they are
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("writing a question as JSON: %w", err)
	}
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return errors.Join(errConn, err)
	}
	if _, err := c.conn.Write(line.Bytes()); err != nil {
		return errors.Join(errConn, err)
	}
	return nil
}

// maxWrong bounds the wrong codes for one question: a program may try them that sees no terminal, but has
// the cookie of a page that asks for codes.
const maxWrong = 5

var errGuessed = fmt.Errorf("%d wrong codes were typed for this question, so it cannot be approved any more: deny it, or answer in the client", maxWrong)

// guessed counts more wrong codes for a question, and reports whether there were too many.
func (s *Server) guessed(id string, more int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if more > 0 {
		if s.wrong == nil {
			s.wrong = map[string]int{}
		}
		s.wrong[id] += more
		maps.DeleteFunc(s.wrong, func(id string, _ int) bool { _, there := s.queue.Question(id); return !there })
	}
	return s.wrong[id] >= maxWrong
}

// codeLength is the length of a code, in characters: 30 bits.
const codeLength = 6

// newCode makes a code of letters and digits, without 0 and 1, which look like others.
func newCode() string { return rand.Text()[:codeLength] }
