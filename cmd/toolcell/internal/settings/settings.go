// Package settings reads and checks the user's settings, from flags or
// environment variables, and finds the folders of toolcell's files. An error
// names the setting as the user wrote it, and ends the program with the code of
// wrong usage. The package starts nothing and makes no folders.
package settings

import (
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge"
	"github.com/toolcell/toolcell/bridge/artifacts"
	"github.com/toolcell/toolcell/bridge/imaging"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/rootfs"
)

// DefaultImage is the image if the user names none.
const DefaultImage = "python:3.14-slim"

// Settings are what every command shares, each value a flag with an
// environment twin.
type Settings struct {
	Image       string
	ImageNamed  bool // the user chose it: it is never replaced
	Timeout     time.Duration
	TimeNamed   bool // the user chose Timeout
	MaxTimeout  time.Duration
	Limits      spec.Limits
	UID, GID    uint32
	IdleTimeout time.Duration

	StartTimeout time.Duration // of a server whose entry has none

	Sessions    int
	SessionIdle time.Duration

	ApprovalTimeout time.Duration // for the user's answer
	FormTimeout     time.Duration // for an answer by a form during a call

	StateDir    string
	Dirs        Dirs
	Pull        rootfs.PullPolicy
	Platform    string // of images (images.ParsePlatform); this host's if empty
	Registries  Registries
	MaxImage    imageLimits
	Output      bridge.OutputMode
	OutputNamed bool
	OutputBytes int
	LogLevel    slog.Level
	LogNamed    bool // the user chose LogLevel
	AllowSelf   bool
	Servers     string
	Policy      string
	UV          string // path, empty for the pinned one
	Start       string
	Preload     []string
	Files       artifacts.Limits
	Pictures    imaging.Limits
	Mounts      []spec.Mount
	Runtime     string

	chosen map[string]string // the settings that the user chose, by name
}

// Registries say how to reach registries.
type Registries struct {
	Mirrors  map[string][]string
	Plain    []string // hosts that may be spoken to unencrypted
	CAFile   string   // of certificates
	AuthFile string   // of credentials, instead of where they usually are
}

// imageLimits bound the unpacked size of an image.
type imageLimits struct{ Bytes, Files int64 }

// A Setting describes one value: its flag, variable, default and usage.
type Setting struct{ Name, Env, Value, Usage string }

// A Group is the settings of one subject.
type Group struct {
	Title    string
	Settings []Setting
}

// Groups are the flags behind Settings, their environment twins, defaults and
// usage, as help and docs/settings.md group them. All are strings, parsed below: an
// error then names the setting as the user wrote it, flag or variable.
var Groups = []Group{
	{"Runs", []Setting{
		{"timeout", "MCP_BRIDGE_TIMEOUT", "30s", "time limit of a run that sets none, `TIME` such as 90s or 2m"},
		{"max-timeout", "MCP_BRIDGE_MAX_TIMEOUT", "2m", "longest `TIME` that a model may ask for"},
		{"memory", "MCP_BRIDGE_MEMORY", "512m", "memory limit of a sandbox in `BYTES` (k, m, g)"},
		{"pids", "MCP_BRIDGE_PIDS", "128", "largest `COUNT` of processes and threads in a sandbox"},
		{"cpus", "MCP_BRIDGE_CPUS", "", "limit a sandbox to this many `CPUS`, such as 1.5"},
		{"container-user", "MCP_BRIDGE_CONTAINER_USER", "65534:65534", "user and group ID inside the sandbox, `UID:GID`"},
		{"start", "MCP_BRIDGE_START", oci.StartAuto, "how serve prepares sandboxes: `HOW` is auto, fork or container"},
		{"preload", "MCP_BRIDGE_PRELOAD", "", "comma-separated `MODULES` that serve imports before a run begins, such as numpy,pandas"},
		{"mounts", "MCP_BRIDGE_MOUNTS", "", "host folders and files that code can read, comma-separated `SOURCE:TARGET`; with :rw after one it can also write"},
		{"sessions", "MCP_BRIDGE_SESSIONS", "4", "largest `COUNT` of sessions that serve keeps open at once; 0 for none"},
		{"session-idle-timeout", "MCP_BRIDGE_SESSION_IDLE_TIMEOUT", "30m", "`TIME` without a run after which a session ends"},
		{"approval-timeout", "MCP_BRIDGE_APPROVAL_TIMEOUT", "10m", "`TIME` that a run waits for the user's answer before it ends"},
		{"form-timeout", "MCP_BRIDGE_FORM_TIMEOUT", "45s", "`TIME` that a client shows toolcell's form during a call; after it the user answers with toolcell approvals"},
	}},
	{"Results", []Setting{
		{"output", "MCP_BRIDGE_OUTPUT_MODE", "compact", "form of results: `MODE` is compact, toon or json"},
		{"output-bytes", "MCP_BRIDGE_OUTPUT_BYTES", "32k", "largest size of stdout, stderr and the value in a result, `BYTES` from 1k to 1m; a file has all of it"},
		{"pictures", "MCP_BRIDGE_PICTURES", "8", "largest `COUNT` of pictures in a result; others are kept as files"},
		{"picture-size", "MCP_BRIDGE_PICTURE_SIZE", "1024", "longer side of a picture in `PIXELS`; larger ones are scaled down"},
		{"picture-bytes", "MCP_BRIDGE_PICTURE_BYTES", "400k", "largest size of a picture in `BYTES` (k, m)"},
		{"files-max-age", "MCP_BRIDGE_FILES_MAX_AGE", "168h", "`TIME` that files of a run are kept"},
		{"files-max-size", "MCP_BRIDGE_FILES_MAX_SIZE", "1g", "total size of the files of all runs in `BYTES` (k, m, g); beyond it the oldest are removed"},
	}},
	{"Images", []Setting{
		{"image", "MCP_BRIDGE_IMAGE", DefaultImage, "image that has Python and its packages: `REF` is a registry reference, oci:DIR[:TAG|@DIGEST], oci-archive:FILE, docker-archive:FILE, or host"},
		{"pull", "MCP_BRIDGE_PULL", "missing", "when to ask the registry, and the index of packages: `POLICY` is missing, always or never"},
		{"platform", "MCP_BRIDGE_PLATFORM", "", "platform of the image, `OS/ARCH[/VARIANT]` such as linux/arm64, instead of this host's"},
		{"registry-mirrors", "MCP_BRIDGE_REGISTRY_MIRRORS", "", "mirrors to try first, space-separated `REGISTRY=MIRROR[,MIRROR]`; http:// before a mirror allows plain HTTP"},
		{"registry-ca", "MCP_BRIDGE_REGISTRY_CA", "", "PEM `FILE` of certificates to trust in addition to the system's"},
		{"authfile", "MCP_BRIDGE_AUTHFILE", "", "`FILE` of credentials for registries, as podman login --authfile writes it, instead of the usual files"},
		{"insecure-registries", "MCP_BRIDGE_INSECURE_REGISTRIES", "", "comma-separated `HOSTS` of registries that may use plain HTTP"},
		{"image-max-size", "MCP_BRIDGE_IMAGE_MAX_SIZE", "16g", "largest unpacked size of an image in `BYTES` (k, m, g)"},
		{"image-max-files", "MCP_BRIDGE_IMAGE_MAX_FILES", strconv.Itoa(rootfs.DefaultMaxEntries), "largest `COUNT` of files and directories in an image"},
	}},
	{"Servers", []Setting{
		{"servers-config", "MCP_SERVERS_CONFIG", "", "additional config `FILE` of servers; it takes precedence over all others"},
		{"policy", "MCP_BRIDGE_POLICY", "", "`FILE` that says what code may call, instead of $XDG_CONFIG_HOME/toolcell/policy.toml"},
		{"uv", "MCP_BRIDGE_UV", "", "uv program `FILE` that chooses the versions of packages, instead of one that toolcell fetches"},
		{"start-timeout", "MCP_BRIDGE_START_TIMEOUT", "2m", "`TIME` that a server may take to start, if its entry does not say; MCP_TIMEOUT in milliseconds counts if it is longer"},
		{"allow-self-server", "MCP_BRIDGE_ALLOW_SELF_SERVER", "0", "whether toolcell itself is listed among the servers, `0|1`"},
	}},
	{"The program", []Setting{
		{"state-dir", "MCP_BRIDGE_STATE_DIR", "", "one `DIR` for all files that toolcell keeps, instead of the XDG folders"},
		{"idle-timeout", "MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT", "5m", "`TIME` after which idle servers and standby sandboxes are stopped"},
		{"log-level", "MCP_BRIDGE_LOG_LEVEL", "INFO", "lowest `LEVEL` of log lines on stderr: DEBUG, INFO, WARN or ERROR; without it, commands other than serve print warnings only"},
		{"runtime", "MCP_BRIDGE_RUNTIME", "auto", "has no effect; `NAME` is accepted for old configs"},
	}},
}

// All are the settings of all groups.
var All = func() (all []Setting) {
	for _, g := range Groups {
		all = append(all, g.Settings...)
	}
	return all
}()

// ForImages are the settings of work that may pull an image.
var ForImages = []string{"state-dir", "pull", "platform", "registry-mirrors", "registry-ca", "authfile", "insecure-registries", "image-max-size", "image-max-files", "log-level"}

// paths are the settings whose values are paths.
var paths = []string{"state-dir", "registry-ca", "authfile", "uv", "policy"}

// Lists are the settings whose values are lists, or files with rules and servers: a second flag
// would be meant to add to the first.
var Lists = []string{"mounts", "preload", "registry-mirrors", "insecure-registries", "servers-config", "policy"}

// ForProcess returns the settings among some that the user chose, as flags of a process
// that may have another working folder.
func (s Settings) ForProcess(names []string) (flags []string) {
	for _, name := range names {
		value, chosen := s.chosen[name]
		if !chosen {
			continue
		}
		if abs, err := filepath.Abs(value); err == nil && value != "" && slices.Contains(paths, name) {
			value = abs
		}
		flags = append(flags, "--"+name+"="+value)
	}
	return flags
}

// Flags returns the flags of all settings, or of those named.
func Flags(only ...string) []cli.Flag {
	var flags []cli.Flag
	for _, k := range All {
		if len(only) > 0 && !slices.Contains(only, k.Name) {
			continue
		}
		flags = append(flags, &cli.StringFlag{Name: k.Name, EnvVars: []string{k.Env}, Value: k.Value, Usage: k.Usage})
	}
	return flags
}

// Read parses and checks all settings, and finds the folders that they name.
func Read(c *cli.Context) (Settings, error) {
	s, err := parse(c)
	if err == nil {
		s.Dirs, err = FindDirs(s.StateDir)
	}
	return s, err
}

func parse(c *cli.Context) (Settings, error) {
	r := reader{c: c}
	s := Settings{
		Image:       r.value("image"),
		ImageNamed:  c.IsSet("image") && c.String("image") != "",
		Timeout:     r.duration("timeout"),
		TimeNamed:   c.IsSet("timeout"),
		MaxTimeout:  r.duration("max-timeout"),
		Limits:      spec.Limits{Memory: r.bytes("memory"), PIDs: int64(r.whole("pids", 4, math.MaxInt32)), CPUs: r.cpus("cpus")},
		IdleTimeout: r.duration("idle-timeout"),

		StartTimeout: r.startTimeout("start-timeout"),

		Sessions:    r.whole("sessions", 0, maxSessions),
		SessionIdle: r.duration("session-idle-timeout"),

		ApprovalTimeout: r.duration("approval-timeout"),
		FormTimeout:     r.duration("form-timeout"),

		StateDir:    r.value("state-dir"),
		Pull:        rootfs.PullPolicy(r.oneOf("pull", "missing", "always", "never")),
		Platform:    r.platform("platform"),
		Registries:  r.registries(),
		MaxImage:    imageLimits{Bytes: r.size("image-max-size"), Files: int64(r.whole("image-max-files", 4, math.MaxInt32))},
		Output:      r.output("output"),
		OutputBytes: r.outputBytes("output-bytes"),
		OutputNamed: c.IsSet("output") && c.String("output") != "",
		LogLevel:    r.level("log-level"),
		LogNamed:    c.IsSet("log-level") && c.String("log-level") != "",
		AllowSelf:   r.boolean("allow-self-server"),
		Servers:     r.value("servers-config"),
		Policy:      r.value("policy"),
		UV:          r.value("uv"),
		Start:       r.oneOf("start", "auto", "fork", "container"),
		Preload:     r.modules("preload"),
		Files:       artifacts.Limits{Age: r.duration("files-max-age"), Size: r.size("files-max-size")},
		Pictures:    r.pictures(),
		Mounts:      r.mounts("mounts"),
		Runtime:     r.value("runtime"),
		chosen:      map[string]string{},
	}
	for _, k := range All {
		if c.IsSet(k.Name) {
			s.chosen[k.Name] = c.String(k.Name)
		}
	}
	s.UID, s.GID = r.user("container-user")
	return s, r.err
}

// Check refuses a value of an environment variable that serve would refuse, and
// a variable of ours that is no setting. An MCP client would only say that the
// server does not start. Variables of others are not checked.
func Check(name, value string) error {
	i := slices.IndexFunc(All, func(s Setting) bool { return s.Env == name })
	if i < 0 {
		if strings.HasPrefix(name, "MCP_BRIDGE_") && !strings.HasPrefix(name, "MCP_BRIDGE_INPUT_") {
			return console.Invalidf("--env %s: there is no such setting; toolcell help settings lists them", name)
		}
		return nil
	}
	if All[i].Name == "mounts" {
		if err := checkLastingMounts(value); err != nil {
			return err
		}
	}
	return readAll("--" + All[i].Name + "=" + value)
}

// CheckEnvironment refuses a value of an environment variable that serve would refuse,
// for a command that has not all settings as flags. Those that are given win.
func (s Settings) CheckEnvironment() error {
	var given []string
	for name, value := range s.chosen {
		given = append(given, "--"+name+"="+value)
	}
	return readAll(given...)
}

func readAll(flags ...string) error {
	app := &cli.App{Flags: Flags(), HideHelp: true, Writer: io.Discard, ErrWriter: io.Discard, ExitErrHandler: func(*cli.Context, error) {}}
	app.Action = func(c *cli.Context) error {
		_, err := parse(c)
		return err
	}
	return app.Run(append([]string{"toolcell"}, flags...))
}
