package homes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/oci/host"
)

// childEnv makes a child process do one request, report and exit.
const childEnv = "_TOOLCELL_HOMES"

// childDir is the descriptor of the store's folder in the child.
const childDir = 3

// maxReply bounds what is read of a child.
const maxReply = 64 << 10

// init turns this process into such a child if it was started as one. It is here rather than in
// main, so that every binary or test that makes homes has it.
func init() {
	if len(os.Args) == 2 && os.Args[1] == "homes" && os.Getenv(childEnv) != "" {
		workInside()
		unix.Exit(0) // not os.Exit, which waits for a second in a program with the race detector
	}
}

// A reply is what the child reports.
type reply struct {
	Use   Use
	Error string
}

var (
	errNoNamespace = errors.New("no user namespace can be made")
	errNotMapped   = errors.New("the user ID cannot be mapped")
)

// inNamespace does a request as root of a user namespace that maps 0, 1 and so on to these IDs, of
// which the first are this user's. The child gets nothing else than the folder, and ends with ctx, or
// with this process: then its standard input does.
func inNamespace(ctx context.Context, dir *os.File, r request, uids, gids []int64) (u Use, err error) {
	data, err := json.Marshal(r)
	if err != nil {
		return u, err
	}
	c := exec.CommandContext(ctx, "/proc/self/exe", "homes")
	c.Env = []string{childEnv + "=1"}
	c.ExtraFiles = []*os.File{dir}
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER,
		// It is started before it has an ID there, and would lose them.
		AmbientCaps: []uintptr{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER},
	}
	alone := len(uids) == 1 && len(gids) == 1
	if alone { // which needs no tools
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(uids[0]), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(gids[0]), Size: 1}}
	}
	out := &bounded{}
	c.Stdout, c.Stderr = out, out
	c.WaitDelay = time.Second // of what may keep its output open
	in, err := c.StdinPipe()
	if err != nil {
		return u, err
	}
	if err := c.Start(); err != nil {
		if ctx.Err() != nil {
			return u, context.Cause(ctx)
		}
		return u, fmt.Errorf("%w: %w", errNoNamespace, err)
	}
	if !alone {
		err = errors.Join(mapIDs(ctx, "newuidmap", c.Process.Pid, uids), mapIDs(ctx, "newgidmap", c.Process.Pid, gids))
	}
	if err == nil {
		_, _ = in.Write(data) // if it cannot read that, it has ended, and there is no reply
	} else {
		in.Close() // which ends it
	}
	waited := c.Wait()
	if ctx.Err() != nil {
		return u, context.Cause(ctx)
	}
	if err != nil {
		return u, err
	}
	return out.reply(waited)
}

// mapIDs has newuidmap or newgidmap map the IDs of a child.
func mapIDs(ctx context.Context, tool string, pid int, ids []int64) error {
	path := host.ThisSystem().IDTool(tool).Path
	if path == "" {
		return fmt.Errorf("%w: %s is not installed", errNotMapped, tool)
	}
	args := []string{strconv.Itoa(pid)}
	for inside, id := range ids {
		args = append(args, strconv.Itoa(inside), strconv.FormatInt(id, 10), "1")
	}
	c := exec.CommandContext(ctx, path, args...)
	out := &bounded{}
	c.Stdout, c.Stderr = out, out
	c.WaitDelay = time.Second
	if err := c.Run(); err != nil {
		return fmt.Errorf("%w: %s: %w: %s", errNotMapped, tool, err, text.Excerpt(out.Bytes()))
	}
	return nil
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	_, _ = b.Buffer.Write(p[:min(len(p), maxReply-b.Len())]) // which never fails
	return len(p), nil
}

// reply reads what the child reported; waited is how it ended.
func (b *bounded) reply(waited error) (u Use, err error) {
	var r reply
	if err := json.Unmarshal(b.Bytes(), &r); err != nil || waited != nil {
		return u, fmt.Errorf("working in a user namespace: %w: %s", errors.Join(waited, err), text.Excerpt(b.Bytes()))
	}
	if r.Error != "" {
		return u, errors.New(r.Error)
	}
	return r.Use, nil
}

// workInside is the child's part. The request comes once its IDs are mapped.
func workInside() {
	var r request
	in := json.NewDecoder(io.LimitReader(os.Stdin, maxReply))
	if err := in.Decode(&r); err != nil {
		return // the process that started this one has ended, or could not map the IDs
	}
	go func() {
		defer contain.Recover("waiting for the end of the program", nil)
		_, _ = io.Copy(io.Discard, os.Stdin)
		unix.Exit(1) // it has ended, and nothing waits for the reply
	}()
	use, err := r.do(context.Background(), os.NewFile(childDir, "homes"))
	done := reply{Use: use}
	if err != nil {
		done.Error = err.Error()
	}
	_ = json.NewEncoder(os.Stdout).Encode(done) // else the other end says that there is none
}
