// Package settings reads and checks the user's settings, from flags or
// environment variables, and finds the folders of toolcell's files. An error
// names the setting as the user wrote it, and ends the program with the code of
// wrong usage. The package starts nothing and makes no folders.
package settings

import (
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge"
	"github.com/toolcell/toolcell/bridge/artifacts"
	"github.com/toolcell/toolcell/bridge/imaging"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/rootfs"
	"github.com/urfave/cli/v2"
)

// DefaultImage is the image if the user names none.
const DefaultImage = "python:3.14-slim"

// Settings are what every command shares, each value a flag with an
// environment twin.
type Settings struct {
	Image       string
	ImageNamed  bool // the user chose it: it is never replaced
	Timeout     time.Duration
	MaxTimeout  time.Duration
	Limits      oci.Limits
	UID, GID    uint32
	IdleTimeout time.Duration
	Sessions    int
	SessionIdle time.Duration
	StateDir    string
	Pull        rootfs.PullPolicy
	Platform    string // of images (images.ParsePlatform); this host's if empty
	Registries  Registries
	MaxImage    imageLimits
	Output      bridge.OutputMode
	OutputNamed bool
	OutputBytes int
	LogLevel    slog.Level
	AllowSelf   bool
	Servers     string
	Policy      string
	Start       string
	Preload     []string
	Files       artifacts.Limits
	Pictures    imaging.Limits
	Mounts      []oci.Mount
	Runtime     string
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

// All are the flags behind Settings, their environment twins, defaults and
// usage. All are strings, parsed below: an error then names the setting as the
// user wrote it, flag or variable.
var All = []Setting{
	{"image", "MCP_BRIDGE_IMAGE", DefaultImage, "where Python and its packages come from: `REF` is a registry reference, oci:DIR[:TAG|@DIGEST], oci-archive:FILE, docker-archive:FILE, or host"},
	{"timeout", "MCP_BRIDGE_TIMEOUT", "30s", "wall `TIME` of a run that asks for none"},
	{"max-timeout", "MCP_BRIDGE_MAX_TIMEOUT", "120s", "the most `TIME` that a run may ask for"},
	{"memory", "MCP_BRIDGE_MEMORY", "512m", "memory limit of a sandbox in `BYTES` (k, m, g)"},
	{"pids", "MCP_BRIDGE_PIDS", "128", "the most processes and threads in a sandbox: `COUNT`"},
	{"cpus", "MCP_BRIDGE_CPUS", "", "limit a sandbox to so many `CPUS`, such as 1.5"},
	{"container-user", "MCP_BRIDGE_CONTAINER_USER", "65534:65534", "`UID:GID` inside the sandbox"},
	{"idle-timeout", "MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT", "300s", "`TIME` after which idle upstream servers are released"},
	{"sessions", "MCP_BRIDGE_SESSIONS", "4", "how many sessions are kept at once, `COUNT` at most; 0 for none"},
	{"session-idle-timeout", "MCP_BRIDGE_SESSION_IDLE_TIMEOUT", "30m", "`TIME` after its last run when a session is ended"},
	{"state-dir", "MCP_BRIDGE_STATE_DIR", "", "one `DIR` for everything, instead of the XDG folders"},
	{"pull", "MCP_BRIDGE_PULL", "missing", "when to ask the registry for the image: `POLICY` is missing, always or never"},
	{"platform", "MCP_BRIDGE_PLATFORM", "", "`OS/ARCH[/VARIANT]` of the image, such as linux/arm64, instead of this host's"},
	{"registry-mirrors", "MCP_BRIDGE_REGISTRY_MIRRORS", "", "where to look for images first, `REGISTRY=MIRROR[,MIRROR]` and more after a space; http://MIRROR allows plain HTTP"},
	{"registry-ca", "MCP_BRIDGE_REGISTRY_CA", "", "PEM `FILE` of certificates that registries may use, besides the system's"},
	{"authfile", "MCP_BRIDGE_AUTHFILE", "", "`FILE` of credentials for registries, as podman login --authfile writes it, instead of all others"},
	{"insecure-registries", "MCP_BRIDGE_INSECURE_REGISTRIES", "", "`HOSTS` of registries, with commas between, that may be spoken to over plain HTTP"},
	{"start", "MCP_BRIDGE_START", oci.StartAuto, "how serve makes sandboxes ready ahead of their use: `HOW` is auto, fork or container"},
	{"preload", "MCP_BRIDGE_PRELOAD", "", "`MODULES`, with commas between, that serve imports before a run begins, such as numpy,pandas"},
	{"mounts", "MCP_BRIDGE_MOUNTS", "", "folders and files of this host that code can read, `SOURCE:TARGET`, with commas between; with :rw behind one it can write there too"},
	{"image-max-size", "MCP_BRIDGE_IMAGE_MAX_SIZE", "16g", "the most `BYTES` that an image may unpack to (k, m, g)"},
	{"image-max-files", "MCP_BRIDGE_IMAGE_MAX_FILES", strconv.Itoa(rootfs.DefaultMaxEntries), "the most files and directories that an image may have: `COUNT`"},
	{"pictures", "MCP_BRIDGE_PICTURES", "8", "the most pictures that a result carries: `COUNT`; others are kept as files"},
	{"picture-size", "MCP_BRIDGE_PICTURE_SIZE", "1024", "the most `PIXELS` of the longer side of a picture; a larger one is scaled"},
	{"picture-bytes", "MCP_BRIDGE_PICTURE_BYTES", "400k", "the most `BYTES` of a picture (k, m)"},
	{"files-max-age", "MCP_BRIDGE_FILES_MAX_AGE", "168h", "`TIME` for which the files of a run are kept"},
	{"files-max-size", "MCP_BRIDGE_FILES_MAX_SIZE", "1g", "the most `BYTES` that files of runs take; beyond, the oldest are removed (k, m, g)"},
	{"output", "MCP_BRIDGE_OUTPUT_MODE", "compact", "form of results: `MODE` is compact, toon or json"},
	{"output-bytes", "MCP_BRIDGE_OUTPUT_BYTES", "32k", "the most `BYTES` of stdout, stderr and the value that a result has (k, m), from 1k to 1m; a file has all"},
	{"log-level", "MCP_BRIDGE_LOG_LEVEL", "INFO", "`LEVEL` of logs on stderr: DEBUG, INFO, WARN or ERROR"},
	{"allow-self-server", "MCP_BRIDGE_ALLOW_SELF_SERVER", "0", "whether this program itself is listed among the servers: `0|1`"},
	{"servers-config", "MCP_SERVERS_CONFIG", "", "one more config `FILE` of upstream servers; it wins over all others"},
	{"policy", "MCP_BRIDGE_POLICY", "", "`FILE` that says what code may call, instead of $XDG_CONFIG_HOME/toolcell/policy.toml"},
	{"runtime", "MCP_BRIDGE_RUNTIME", "auto", "accepted for old configs; `NAME` changes nothing"},
}

// ForImages are the settings that commands about images have.
var ForImages = []string{"state-dir", "pull", "platform", "registry-mirrors", "registry-ca", "authfile", "insecure-registries", "image-max-size", "image-max-files", "log-level"}

// paths are those whose values are paths.
var paths = []string{"state-dir", "registry-ca", "authfile"}

// ForProcess returns the settings among some that the user chose, as flags of a process
// that may have another working folder.
func ForProcess(c *cli.Context, names []string) (flags []string) {
	for _, name := range names {
		value := c.String(name)
		if !c.IsSet(name) {
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

// Read parses and checks all settings.
func Read(c *cli.Context) (Settings, error) {
	r := reader{c: c}
	s := Settings{
		Image:       r.value("image"),
		ImageNamed:  c.IsSet("image") && c.String("image") != "",
		Timeout:     r.duration("timeout"),
		MaxTimeout:  r.duration("max-timeout"),
		Limits:      oci.Limits{Memory: r.bytes("memory"), PIDs: r.count("pids"), CPUs: r.cpus("cpus")},
		IdleTimeout: r.duration("idle-timeout"),
		Sessions:    r.sessions("sessions"),
		SessionIdle: r.duration("session-idle-timeout"),
		StateDir:    r.value("state-dir"),
		Pull:        r.policy("pull"),
		Platform:    r.platform("platform"),
		Registries:  r.registries(),
		MaxImage:    imageLimits{Bytes: r.size("image-max-size"), Files: r.count("image-max-files")},
		Output:      r.output("output"),
		OutputBytes: r.outputBytes("output-bytes"),
		OutputNamed: c.IsSet("output") && c.String("output") != "",
		LogLevel:    r.level("log-level"),
		AllowSelf:   r.boolean("allow-self-server"),
		Servers:     r.value("servers-config"),
		Policy:      r.value("policy"),
		Start:       r.start("start"),
		Preload:     r.modules("preload"),
		Files:       artifacts.Limits{Age: r.duration("files-max-age"), Size: r.size("files-max-size")},
		Pictures:    r.pictures(),
		Mounts:      r.mounts("mounts"),
		Runtime:     r.value("runtime"),
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
			return console.Usagef("--env %s: there is no such setting; toolcell serve --help lists them", name)
		}
		return nil
	}
	app := &cli.App{Flags: Flags(), HideHelp: true, Writer: io.Discard, ErrWriter: io.Discard, ExitErrHandler: func(*cli.Context, error) {}}
	app.Action = func(c *cli.Context) error {
		_, err := Read(c)
		return err
	}
	return app.Run([]string{"toolcell", "--" + All[i].Name + "=" + value})
}
