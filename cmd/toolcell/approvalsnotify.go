package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
)

// Bounds on notifications.
const (
	notifyEvery     = 5 * time.Second // what begins to wait meanwhile is one notification
	notifyTimeout   = 5 * time.Second // of notify-send
	maxNotifiedName = 40              // characters
)

// A notifier tells a user who looks elsewhere that questions wait: by the bell and OSC 9 of
// the terminal, and by notify-send.
//
// Names of tools and servers are hostile. A notification has no arguments, and of names only
// printable ASCII without backslashes: notify-send reads `\074` as "<" (g_strcompress), and
// desktops read "<" as markup.
type notifier struct {
	s       *console.Streams
	life    context.Context
	end     context.CancelFunc
	program string // the path of notify-send, "" without it

	told    map[string]bool // IDs of questions that still wait
	last    time.Time
	sending chan error // of the one notify-send that runs; nil if none does
	failed  bool       // it was noted that notify-send fails
}

// newNotifier returns an error if nothing can notify the user. It has to be closed.
func newNotifier(ctx context.Context, s *console.Streams) (*notifier, error) {
	n := &notifier{s: s, told: map[string]bool{}}
	path, err := exec.LookPath("notify-send")
	switch {
	case err == nil:
		n.program = path
	case !console.Terminal(s.Out):
		return nil, errors.New("nothing can notify you: standard output is no terminal, and there is no notify-send in $PATH")
	}
	n.life, n.end = context.WithCancel(ctx)
	return n, nil
}

// close ends notify-send.
func (n *notifier) close() {
	n.end()
	if n.sending != nil {
		n.ended(<-n.sending)
	}
}

// look notifies the user of the questions that have begun to wait since.
func (n *notifier) look(all []inbox.Question) {
	n.collect()
	waits := map[string]bool{}
	var news []inbox.Question
	for _, q := range all {
		if q.State == consent.Pending {
			if waits[q.ID] = n.told[q.ID]; !n.told[q.ID] {
				news = append(news, q)
			}
		}
	}
	n.told = waits
	if len(news) == 0 || n.sending != nil || time.Since(n.last) < notifyEvery {
		return
	}
	for _, q := range news {
		n.told[q.ID] = true
	}
	n.last = time.Now()
	body := notificationText(news)
	n.ring(body)
	if n.program != "" {
		n.send(body)
	}
}

// ring writes to the terminal. The text begins with a word, since a number and a semicolon
// would be another command of some terminals (ConEmu, OSC 9;4).
func (n *notifier) ring(body string) {
	if !console.Terminal(n.s.Out) {
		return
	}
	signal := "\a"
	if term := os.Getenv("TERM"); term != "" && term != "dumb" {
		signal += "\x1b]9;toolcell: " + body + "\a"
	}
	fmt.Fprint(n.s.Stdout(), signal)
}

// send runs notify-send in the background.
func (n *notifier) send(body string) {
	ctx, cancel := context.WithTimeout(n.life, notifyTimeout)
	cmd := exec.CommandContext(ctx, n.program, "--app-name=toolcell", "--", "toolcell", markup.Replace(body))
	cmd.WaitDelay = time.Second // for what it may have started
	ended := make(chan error, 1)
	n.sending = ended
	go func() {
		defer contain.Recover("showing a notification", func(err error) { ended <- err })
		defer cancel()
		_, err := cmd.Output()
		ended <- cmp.Or(ctx.Err(), err)
	}()
}

// markup escapes what desktops read as markup (Desktop Notifications Specification, Markup).
var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// collect takes the end of notify-send, if it has ended.
func (n *notifier) collect() {
	select {
	case err := <-n.sending:
		n.ended(err)
	default:
	}
}

// ended notes the first failure of notify-send. More are likely, and the watch goes on.
func (n *notifier) ended(err error) {
	n.sending = nil
	if err == nil || n.failed || errors.Is(err, context.Canceled) {
		return
	}
	n.failed = true
	why := err.Error()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		why += ": " + string(exit.Stderr)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		why = "it did not end within " + text.Duration(notifyTimeout)
	}
	console.Note(n.s.Err, "notify-send failed, which is said only once: "+text.OneLine(why, 300))
}

// notificationText says what waits, without arguments.
func notificationText(news []inbox.Question) string {
	if len(news) > 1 {
		return text.Plural(len(news), "question") + " wait for your answer"
	}
	q := news[0]
	server, tool := q.Server, q.Tool
	if len(q.Calls) > 0 {
		server, tool = q.Calls[0].Server, q.Calls[0].Tool
	}
	name := notifiedName(server) + "." + notifiedName(tool)
	switch {
	case q.Subject != "":
		return "a run asks what it may have before it starts"
	case len(q.Choices) == 0: // a server asks
		return name + " asks you for input"
	case len(q.Calls) > 1:
		return fmt.Sprintf("%s and %s wait for your approval", name, text.Plural(len(q.Calls)-1, "more call"))
	}
	return name + " waits for your approval"
}

// notifiedName makes a name harmless wherever a notification is shown, and short.
func notifiedName(name string) string {
	var b strings.Builder
	n := 0
	for _, r := range name {
		if n++; n > maxNotifiedName {
			return b.String() + "..."
		}
		if r < ' ' || r > '~' || r == '\\' {
			r = '?'
		}
		b.WriteRune(r)
	}
	return b.String()
}
