package consent

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/state"
)

const (
	answersName = "answers.jsonl"
	answersOld  = "answers.1.jsonl"
	maxAnswers  = 8 << 20 // of each of the two files, in bytes
	lockWithin  = time.Second
)

// answers keep what the user has answered, in a file of lines of JSON in this folder. Each answer
// is one line, written at once, only the user can read the file, and it stays within a size. It
// has digests of arguments, never what was entered in a form. It is no evidence against a program
// that runs as the user, which can change the file. Without a folder nothing is kept.
type answers string

// An answerLine is one answer about one call, or about something else that was asked.
type answerLine struct {
	Time      time.Time `json:"time"`
	Question  string    `json:"question"`         // its ID
	SHA256    string    `json:"questionSHA256"`   // of the text that was shown
	Run       string    `json:"run,omitempty"`    // its ID
	About     string    `json:"about"`            // call, input, or before: what a run may have before it starts
	Server    string    `json:"server,omitempty"` // of a call, or that asks for input
	Tool      string    `json:"tool,omitempty"`   // the same
	Arguments string    `json:"argumentsSHA256,omitempty"`
	Answer    State     `json:"answer"`             // approved, denied, stopped, answered or revoked
	Scope     string    `json:"scope,omitempty"`    // call, run or reads; of input accept, decline or cancel
	By        string    `json:"by"`                 // form, terminal, or toolcell approvals
	Client    string    `json:"client,omitempty"`   // the MCP client of the run
	Terminal  string    `json:"terminal,omitempty"` // where it was typed
	PID       int       `json:"pid"`                // of the process that it came through
	Remark    string    `json:"remark,omitempty"`   // why it is not clearly a person's
}

// aboutBefore is About of what a run may have before it starts.
const aboutBefore = "before"

// keep appends the answer to a question to the file. Questions without an answer are left out.
func (f answers) keep(q Question) error {
	if f == "" || q.Answer.By == "" {
		return nil
	}
	if err := f.append(q); err != nil {
		return fmt.Errorf("keeping an answer in %s: %w", string(f), err)
	}
	return nil
}

func (f answers) append(q Question) (err error) {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	// Without the lock the answer is written all the same: it is worth more than the bound.
	ctx, cancel := context.WithTimeout(context.Background(), lockWithin)
	defer cancel()
	if unlock, err := state.Lock(ctx, filepath.Join(string(f), answersName+".lock"), state.Exclusive); err == nil {
		defer unlock()
		if err := f.rotate(); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(filepath.Join(string(f), answersName), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for _, l := range answerLines(q) {
		var text bytes.Buffer
		e := json.NewEncoder(&text) // which ends the line
		e.SetEscapeHTML(false)
		if err := e.Encode(l); err != nil {
			return err
		}
		if _, err := file.Write(text.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// rotate makes room if the file is full.
func (f answers) rotate() error {
	path := filepath.Join(string(f), answersName)
	if info, err := os.Lstat(path); err != nil || info.Mode().IsRegular() && info.Size() < maxAnswers {
		return nil // opening it says what is wrong
	}
	return os.Rename(path, filepath.Join(string(f), answersOld))
}

// answerLines writes what was answered, call by call.
func answerLines(q Question) (all []answerLine) {
	text := sha256.Sum256([]byte(q.Text()))
	l := answerLine{
		Time: cmp.Or(q.DecidedAt, time.Now()).UTC(), Question: q.ID, SHA256: hex.EncodeToString(text[:]), Run: q.Run,
		About: aboutBefore, Answer: q.State, Scope: string(cmp.Or(q.Answer.Choice, Choice(q.Answer.Action))),
		By: q.Answer.By, Client: q.Client, PID: cmp.Or(q.Answer.PID, os.Getpid()), Remark: q.Answer.Remark,
	}
	if q.Answer.By != "form" {
		l.Terminal = terminalOf(l.PID)
	}
	if l.Answer != Approved && l.Answer != Answered {
		l.Scope = ""
	}
	if q.Form != nil {
		l.About, l.Server, l.Tool = "input", q.Form.Server, q.Form.Tool
	}
	for _, c := range q.Calls {
		of := l
		of.About, of.Server, of.Tool, of.Arguments = "call", c.Server, c.Tool, c.Digest()
		all = append(all, of)
	}
	if len(all) == 0 {
		all = append(all, l)
	}
	return all
}

// terminalOf names the terminal that controls a process, as far as that can be seen
// (proc_pid_stat(5), tty_nr).
func terminalOf(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 5 {
		return ""
	}
	number, err := strconv.ParseUint(fields[4], 10, 32)
	if err != nil || number == 0 {
		return ""
	}
	major, minor := number>>8&0xfff, number&0xff|number>>12&0xfff00
	switch {
	case major >= 136 && major <= 143: // Documentation/admin-guide/devices.txt
		return fmt.Sprintf("pts/%d", (major-136)<<8|minor)
	case major == 4 && minor >= 64: // a serial line
		return fmt.Sprintf("ttyS%d", minor-64)
	case major == 4:
		return fmt.Sprintf("tty%d", minor)
	}
	return fmt.Sprintf("%d:%d", major, minor)
}
