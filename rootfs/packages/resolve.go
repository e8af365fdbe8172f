package packages

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

//go:embed startuv.py
var resolveScript string

// A Run runs a command in a sandbox of an image, from which it can reach only the hosts of
// the command, and returns when the command has ended.
type Run func(ctx context.Context, c Command) (Output, error)

// A Command is what to run in a sandbox.
type Command struct {
	Args  []string
	Files map[string]string // read-only files of the host, by their path inside, below Dir
	Hosts []string          // HOST:PORT
	Plain bool              // TLS is not required

	// Credential is added outside the sandbox to requests to the host and port Authorized
	// only. It may be nil.
	Credential *Credential
	Authorized string
	// Input returns the command's standard input, given the address of its proxy and the
	// certificates to trust, in PEM. Without Input, it has no network.
	Input func(proxy string, roots []byte) []byte
}

// Output is the result of a command.
type Output struct {
	Code           int
	Stdout, Stderr []byte
	Refused        []string // why its requests were refused
}

// Dir is where sandboxes see toolcell's own files.
const Dir = "/run/toolcell"

// Target is where code finds the packages of its set.
const Target = Dir + "/packages"

const uvInside = Dir + "/uv"

// pythonFlags keep Python from importing anything of the image but its standard library.
var pythonFlags = []string{"-I", "-S", "-B", "-c"}

// resolve has uv choose the packages of a request.
func (j *job) resolve(ctx context.Context) (*Lock, error) {
	if j.Offline {
		return nil, fmt.Errorf("the packages for %s are not here, and %w", briefly(j.Requirements), ErrOffline)
	}
	uv, err := j.ensureUV(ctx)
	if err != nil {
		return nil, err
	}
	j.progress(Progress{Text: "choosing versions of " + briefly(j.Requirements)})
	var given *Lock
	constraints := j.Constraints
	if j.Lock != nil {
		if given, err = ParseLock(ctx, j.Lock); err != nil {
			return nil, &RequestError{err, true}
		}
		constraints = append(slices.Clone(constraints), given.constraints()...)
	}
	index, plain := j.from.Index()
	out, err := j.Run(ctx, Command{
		Args:  append(append([]string{j.Image.Python}, pythonFlags...), resolveScript),
		Files: map[string]string{uvInside: uv},
		Hosts: j.from.Hosts(), Plain: plain,
		Credential: j.Credential, Authorized: index,
		Input: func(proxy string, roots []byte) []byte { return resolveTask(j.Request, constraints, proxy, roots) },
	})
	if err != nil {
		return nil, fmt.Errorf("starting the resolver: %w", err)
	}
	if out.Code != 0 {
		err := explainResolver(out, j.Request)
		if wrong, ok := errors.AsType[*RequestError](err); ok {
			wrong.Locked = given != nil
		}
		return nil, err
	}
	lock, err := ParseLock(ctx, out.Stdout)
	if err != nil {
		return nil, fmt.Errorf("reading what the resolver wrote: %w", err)
	}
	lock.choose()
	if err := lock.check(j); err != nil {
		return nil, err
	}
	if given != nil {
		err = given.contains(lock)
	}
	return lock, err
}

// resolveTask returns the input of startuv.py. Its environment takes nothing from the host
// or the image.
func resolveTask(r Request, constraints []string, proxy string, roots []byte) []byte {
	args := []string{
		uvInside, "pip", "compile", "requirements.txt", "--constraints", "constraints.txt", "--format", "pylock.toml",
		"--only-binary", ":all:", "--no-config", "--no-sources", "--default-index", r.Index, "--keyring-provider", "disabled",
		"--python", r.Image.Python, "--no-python-downloads", "--no-header", "--no-annotate", "--no-progress", "--color", "never",
	}
	if cutoff := r.cutoff(time.Now()); !cutoff.IsZero() {
		args = append(args, "--exclude-newer", cutoff.Format(time.RFC3339))
	}
	env := map[string]string{
		"HOME": "/workspace", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "UV_CACHE_DIR": "/workspace/cache",
		"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "ALL_PROXY": proxy, "UV_HTTP_TIMEOUT": "30", "UV_HTTP_RETRIES": "2",
		// Threads count toward the sandbox's limit, and a host can have hundreds of processors.
		"TOKIO_WORKER_THREADS": "4", "RAYON_NUM_THREADS": "4",
	}
	files := map[string]string{
		"requirements.txt": strings.Join(r.Requirements, "\n") + "\n",
		"constraints.txt":  strings.Join(constraints, "\n") + "\n",
	}
	if len(roots) > 0 {
		files["roots.pem"], env["SSL_CERT_FILE"] = string(roots), "/workspace/roots.pem"
	}
	task, err := json.Marshal(map[string]any{"args": args, "env": env, "files": files})
	if err != nil {
		panic(err) // of strings
	}
	return task
}

// cutoff is the time after which uploads are ignored: the policy's or the script's, whichever
// is earlier; zero if neither sets one.
func (r Request) cutoff(now time.Time) time.Time {
	var cutoff time.Time
	if r.ExcludeNewer > 0 {
		cutoff = now.Add(-r.ExcludeNewer).UTC()
	}
	if cutoff.IsZero() || !r.Before.IsZero() && r.Before.Before(cutoff) {
		cutoff = r.Before
	}
	return cutoff
}

// byScript reports whether the script sets the cutoff.
func (r Request) byScript() bool { return !r.Before.IsZero() && r.cutoff(time.Now()).Equal(r.Before) }

// briefly names the first of some requirements.
func briefly(requirements []string) string {
	if len(requirements) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(requirements[:3], ", "), len(requirements)-3)
	}
	return strings.Join(requirements, ", ")
}

var versionForm = text.Pattern(`^\d{1,3}(\.\d{1,3}){2}[a-z0-9]{0,8}$`)

// PythonVersion returns the version of an image's Python. The first call asks the Python
// itself, in a sandbox.
func (s *Store) PythonVersion(ctx context.Context, image Image, run Run) (string, error) {
	file := filepath.Join(s.dir, "pythons", image.name()+".json")
	version, err := s.pythons.Read(file)
	if err == nil && versionForm().MatchString(version) {
		return version, nil
	}
	const script = "import sys; v = sys.version_info; print('%d.%d.%d' % v[:3] + ('' if v[3] == 'final' else v[3][0].replace('c', 'rc') + str(v[4])))"
	out, err := run(ctx, Command{Args: append(append([]string{image.Python}, pythonFlags...), script)})
	if err != nil {
		return "", fmt.Errorf("asking the image's Python for its version: %w", err)
	}
	version = strings.TrimSpace(string(out.Stdout))
	if out.Code != 0 || !versionForm().MatchString(version) {
		return "", errors.New("the image's Python does not say its version: it says " + rootdir.Quote(version))
	}
	unlock, err := s.cache.Wait(ctx, "pythons", state.Exclusive)
	if err != nil {
		return "", err
	}
	defer unlock()
	return version, cachedir.WriteJSON(file, version)
}

// name returns a file name for the image.
func (i Image) name() string {
	if !wheelForm().MatchString(i.ID + ".whl") {
		panic(errors.New("packages: an image has the ID " + rootdir.Quote(i.ID)))
	}
	return i.ID
}
