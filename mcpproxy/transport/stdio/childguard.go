package stdio

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// guardScript reads "+ GROUP" and "- GROUP" lines. At the end of its input it
// ends the process groups that are left: first asked, then killed.
const guardScript = `
groups=' '
while read -r op group; do
	case $op in
	+) groups="$groups$group " ;;
	-) case $groups in *" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;; esac ;;
	esac
done
[ "$groups" = ' ' ] && exit 0
for group in $groups; do kill -s TERM -- "-$group"; done
sleep 1
for group in $groups; do kill -s KILL -- "-$group"; done
`

// Guard is a small process that outlives this program for a moment. If this program is
// killed by SIGKILL, it ends servers that ignore the end of their stdin. It has a session of
// its own, so that a signal to this program's process group or terminal does not reach it.
// Without a shell there is no guard, and such servers keep running.
type Guard struct {
	mu      sync.Mutex
	started bool
	input   io.WriteCloser
	cmd     *exec.Cmd
}

// watch puts a process group under guard.
func (g *Guard) watch(group int) { g.send("+", group) }

// forget takes it back. It is called before the group's leader is reaped, so
// that its id cannot be another's yet.
func (g *Guard) forget(group int) { g.send("-", group) }

func (g *Guard) send(op string, group int) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.input != nil {
		fmt.Fprintln(g.input, op, group) // the reader is fast, and gone at worst
	}
}

// start starts the guard, before the first server: one that started earlier would outlive
// this program if it were killed in the milliseconds until there is a guard.
func (g *Guard) start() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.started {
		return
	}
	g.started = true
	cmd := &exec.Cmd{
		Path: "/bin/sh", Args: []string{"sh", "-c", guardScript}, Dir: "/",
		Env: []string{"PATH=/usr/bin:/bin"}, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	input, err := cmd.StdinPipe()
	if err == nil && cmd.Start() == nil {
		g.input, g.cmd = input, cmd
	}
}

// Running reports whether the guard runs, which it does from the first server on.
func (g *Guard) Running() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.input != nil
}

// Close ends the guard, after all servers have ended.
func (g *Guard) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.started = true // for good
	if g.input != nil {
		g.input.Close()
		_ = g.cmd.Wait()
		g.input = nil
	}
}
