package run

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/toolcell/toolcell/bridge/artifacts"
	"github.com/toolcell/toolcell/bridge/imaging"
	"github.com/toolcell/toolcell/bridge/project"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/internal/signals"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/limits"
	"github.com/toolcell/toolcell/oci/spec"
)

// Sandboxes start processes where they can do no harm, as oci.Runtime does.
type Sandboxes interface {
	Start(ctx context.Context, p oci.Process) (Sandbox, error)
}

// A Sandbox is one that has started. *oci.Sandbox is one.
type Sandbox interface {
	Origin() string // how it was started: oci.Cold and so on
	Conn() net.Conn
	Workspace() *os.File
	Listen() (net.Listener, error)
	ListenAt(udp, tcp []netip.AddrPort) ([]net.PacketConn, []net.Listener, error)
	Resolve(names bool) error
	Signal(sig syscall.Signal)
	Freeze()
	Thaw()
	AddHeld(d time.Duration)
	Usage() limits.Usage
	Finished(code int)
	Wait() (oci.Exit, error)
	Close() error
}

// An Image is a root file system with a Python in it.
type Image struct {
	Name   string // as the user may name it
	Digest string // "host" of the host's own system
	Root   spec.Root
	Python string   // path inside, absolute
	Runner string   // the folder with the runner's bytecode for this Python, on the host, if there is any
	Env    []string // what the image sets
	Notes  []string // for the caller, such as that another image stands in
	// Compiling is set while the modules of a new image are being compiled in the
	// background: until then imports are slow.
	Compiling bool
}

// A PackageSet is a folder with packages, "" if there are none.
type PackageSet struct {
	Dir  string
	List []record.Package
}

// Options are what Runs work with. Rootfs, Sandboxes, Upstreams and RunnerDir are needed.
type Options struct {
	// Rootfs returns the image to run on, made ready first if need be. progress
	// gets bytes done and in total, and what is being done.
	Rootfs    func(ctx context.Context, progress func(done, total int64, text string)) (Image, error)
	Sandboxes Sandboxes
	// Packages returns the packages that a script needs, got first if need be. An error that the code can put right is Invalid. If
	// it is nil, scripts get no packages.
	Packages func(ctx context.Context, image Image, n Needs, progress func(done, total int64, text string)) (PackageSet, error)
	// PackagesHere reports whether Packages would fetch nothing and ask no index. If it is
	// nil, that is not known.
	PackagesHere func(ctx context.Context, n Needs) bool
	Upstreams    *mcpproxy.Proxy // the user's MCP servers
	RunnerDir    string          // the runner on the host, as runner.Write left it
	Preload      []string        // modules to import before a run begins
	ToolsDir     string          // where saved tools are kept; none are if empty
	Project      string          // whose saved tools, as savedtools.ProjectOf gives it
	Policy       *policy.Policy  // what may be called; nil is nothing
	Mounts       []spec.Mount    // what of the host's Sandboxes show
	// Shown finds the client's folder, which code can read; nil if it can read none.
	Shown    *project.Projects
	RunsDir  string           // where files of runs are kept; none are if empty
	Files    artifacts.Limits // of what is kept there
	Pictures imaging.Limits   // of what a result carries

	// Current returns the options with what the user has changed since they were made, for the
	// run that begins. Upstreams, Policy, ToolsDir, Project, RunsDir, SessionsDir,
	// Record, RecordRequired, Sessions, MaxParallel and Log stay as they are. note is for the caller of a run, once. If
	// nothing can run as the user wants it now, err says so in the result. It may be nil.
	Current func(o Options) (now Options, note string, err error)

	Timeout     time.Duration // of a run that asks for none; 30 s if 0
	MaxTimeout  time.Duration // the most a run may ask for; 120 s if 0
	Limits      spec.Limits
	MaxOutput   int // bytes of stdout and stderr in a result, and of its value; 32 KiB if 0
	MaxParallel int // runs at once, further ones wait; 16 if 0
	// Sessions says how many are kept at once, SessionIdle for how long after
	// their last run. In SessionsDir is noted which there are, so that the next
	// server can say that they are gone; it may be empty.
	Sessions    int           // none if 0
	SessionIdle time.Duration // 30 min if 0
	SessionsDir string
	// StartTimeout is how long a call of code waits for a server that is starting, and how
	// much of that a run gets beyond its own time; 25 s if 0. Many clients wait for a
	// minute: a run with the usual timeout that waits so long still answers in it.
	StartTimeout time.Duration

	// ApprovalTimeout is how long a run waits for the user's answer; 10 min if 0.
	ApprovalTimeout time.Duration
	// Cached gives the image as it is there now, if it is, and Warm begins to
	// make ready for processes like p, in the background: what can be done
	// before the first run. They may be nil.
	Cached func(ctx context.Context) (Image, bool)
	Warm   func(ctx context.Context, p oci.Process)
	// Missing says which limits and the like this host cannot give a sandbox, Isolation the
	// same in the few words that every result carries. They may be nil.
	Missing   func(spec.Limits) []string
	Isolation func(spec.Limits) string
	// Record has every run; nothing is recorded if it is nil. RecordRequired: no run begins that
	// cannot be recorded.
	Record         *record.Journal
	RecordRequired bool
	Log            *slog.Logger
	Signals        *signals.Signals // nothing is exported if nil
}
