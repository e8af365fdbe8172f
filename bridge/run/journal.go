package run

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/record"
)

// What of a run is on record. An entry that cannot be written is counted, and the result says so:
// nothing waits for the record.

// recordStart records who wants what. Unless nothing may run without a record, the run does not wait
// for it: its calls do, and its end.
func (r *Run) recordStart() error {
	names, hosts := splitTargets(r.req.Servers)
	granted := slices.Concat(names, r.order) // * stands for all of the latter
	k := gate.PrivateGrant(r.runs.o.Upstreams, r.policy, slices.Values(granted)).And(r.keepingBefore())
	r.mu.Lock()
	r.keeping = k
	r.mu.Unlock()
	c := r.req.Client
	start := record.RunStart{
		Session: r.req.Session, Plan: r.req.Plan,
		Client:  record.Client{Name: c.Program, Version: c.Version, Era: c.Protocol},
		Code:    record.TextOf(r.req.Code),
		Grants:  record.Grants{Servers: names, Hosts: hosts, Folders: r.shownFolders()},
		Policy:  r.policy.Digest(),
		Timeout: int(r.timeout / time.Second),
		Private: k.Private, Keep: k.Keep,
	}
	if r.o.RecordRequired {
		return r.record.Append(start)
	}
	r.record.Begin(start)
	return nil
}

// shownFolders are the folders of the host that the settings show to the code.
func (r *Run) shownFolders() (all []string) {
	for _, m := range r.o.Mounts {
		folder := m.Source
		if m.Writable {
			folder += ":rw"
		}
		all = append(all, folder)
	}
	return all
}

// recordReady records what the code is about to run in.
func (r *Run) recordReady() {
	if r.record == nil {
		return
	}
	in := r.python
	r.record.Begin(record.RunReady{
		Image:    record.Image{Name: in.image.Name, Digest: in.image.Digest},
		Packages: in.packages.recorded, Tools: r.toolsDigest(), Folder: in.folder, Continued: r.session.old,
	})
}

// toolsDigest is the digest of the definitions of the tools that are known of the granted servers:
// of their names and their own digests.
func (r *Run) toolsDigest() string {
	if len(r.order) == 0 {
		return ""
	}
	sum := sha256.New()
	for _, server := range slices.Sorted(slices.Values(r.order)) {
		for _, t := range r.o.Upstreams.KnownTools(server) {
			for _, part := range []string{server, t.Name, t.Digest} {
				sum.Write([]byte(part))
				sum.Write([]byte{0})
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// recordAsk records a question to the user, and what came of it.
func (r *Run) recordAsk(q consent.Question) {
	if r.record == nil {
		return
	}
	if err := r.gate.RecordAsk(q); err != nil {
		r.runs.o.Log.Error("a question to the user is not on record", "question", q.ID, "state", string(q.State), "err", err)
	}
}

// recordLater returns what records an approval that is revoked after the run has ended. It keeps
// nothing else of the run in memory.
func (r *Run) recordLater() func(consent.Question) {
	on, log := r.record, r.runs.o.Log
	return func(q consent.Question) {
		if err := gate.RecordRevoked(on, q); err != nil {
			log.Error("a question to the user is not on record", "question", q.ID, "state", string(q.State), "err", err)
		}
	}
}

// recordEnd records how the run ended, and what it reached and left.
func (r *Run) recordEnd(res *Result, took time.Duration) {
	if r.record == nil {
		return
	}
	line := record.RunEnd{
		Status: res.Status, ExitCode: res.ExitCode, Stdout: r.stdout.text(), Stderr: r.stderr.text(), Result: record.TextOf(res.Result),
		Duration: took.Microseconds(), Own: res.Status != StatusError && !consent.HasWords(res.cause),
	}
	line.Error, line.Traceback = errorAndTraceback(res)
	if r.gate != nil {
		k := r.gate.Keeping()
		line.Private, line.Keep = k.Private, k.Keep
		line.Effects, line.Calls = r.gate.Recorded()
	}
	for _, u := range res.Network {
		_ = r.record.Append(record.Egress{Host: u.Host, Port: u.Port, Rule: u.Rule, Requests: u.Requests, Sent: u.BytesSent, Received: u.BytesReceived, Refused: u.Refused})
	}
	line.Files = r.recordFiles(res, line.Private)
	if limit, ok := limitOf(res, r); ok {
		_ = r.record.Append(limit)
	}
	_ = r.record.Append(line)
}

// noteLost notes in the result what of the run is not on record.
func (r *Run) noteLost(res *Result) {
	if n := r.record.Lost(); n > 0 {
		res.Notes = append(res.Notes, fmt.Sprintf("the record of this run is incomplete: %d of its entries could not be written: %v", n, r.runs.o.Record.Incomplete().Err))
	}
}

// errorAndTraceback returns what the result says of an error.
func errorAndTraceback(res *Result) (err, traceback record.Text) {
	if !res.IsError() {
		return err, traceback
	}
	lines := res.Stack // where the code was when its time was up
	for i, line := range slices.Backward(res.Stderr) {
		if lines == nil && strings.HasPrefix(line, "Traceback (most recent call last)") {
			lines = res.Stderr[i:]
		}
	}
	return record.TextOf(res.Error), record.TextOf(strings.Join(lines, "\n"))
}

// limitOf returns the limit that ended a run.
func limitOf(res *Result, r *Run) (record.Limit, bool) {
	switch res.Status {
	case StatusTimeout:
		return record.Limit{Name: "time", Max: int64(r.timeout / time.Second), Unit: "seconds", Effect: "killed"}, true
	case StatusMemory:
		return record.Limit{Name: "memory", Max: r.o.Limits.Memory, Unit: "bytes", Effect: "killed"}, true
	}
	return record.Limit{}, false
}

// recordFiles records the files that the run has left. Their digests have no salt, so there are none if
// what is in them may be private, which could be guessed.
func (r *Run) recordFiles(res *Result, private bool) (all []record.File) {
	for _, f := range res.Files {
		file := record.File{Name: f.Name, Use: "left", Type: f.Type, Size: f.Size, SHA256: f.SHA256, URI: f.URI}
		if private {
			file.SHA256 = ""
		}
		_ = r.record.Append(file)
		all = append(all, file)
	}
	return all
}

// A printed takes in what the code prints, for the record and, while the run goes on, for toolcell ui.
type printed struct {
	mu     sync.Mutex
	stream *record.Stream
	last   []byte // the end, up to twice maxRecent
	total  int64  // bytes
}

// maxRecent is how much of the end of a stream is kept while its run goes on, in bytes.
const maxRecent = 20 << 10

// withRecord returns a writer to w, which may be nil, and to what takes in output for a record.
func withRecord(w io.Writer, p *printed, run *record.Run) io.Writer {
	switch {
	case run == nil:
		return w
	case w == nil:
		return p
	}
	return io.MultiWriter(p, w)
}

// Write never fails.
func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stream == nil {
		return len(b), nil
	}
	recent := b[max(0, len(b)-maxRecent):]
	if over := len(p.last) + len(recent) - 2*maxRecent; over > 0 { // seldom: what goes on is moved to the front
		p.last = p.last[:copy(p.last, p.last[max(0, len(p.last)-maxRecent):])]
	}
	p.total += int64(len(b))
	p.last = append(p.last, recent...)
	return p.stream.Write(b)
}

// recent returns the end of what was printed so far, without secrets.
func (p *printed) recent(run *record.Run) Printed {
	p.mu.Lock()
	last, total := slices.Clone(p.last[max(0, len(p.last)-maxRecent):]), p.total
	p.mu.Unlock()
	end, before := run.EndOf(last, maxShown)
	return Printed{end, total - int64(len(last)) + before}
}

// text returns what was printed, and takes in no more: what a session prints after its run is of no
// run.
func (p *printed) text() record.Text {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.stream.Text()
	p.stream, p.last = nil, nil
	return t
}
