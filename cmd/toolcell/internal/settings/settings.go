// Package settings reads and checks the user's settings, from flags or
// environment variables, and finds the folders of toolcell's files. An error
// names the setting as the user wrote it, and ends the program with the code of
// wrong usage. The package starts nothing and makes no folders.
package settings

import (
	"cmp"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge"
	"github.com/toolcell/toolcell/bridge/imaging"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/rootfs"
)

// DefaultImage is the image if the user names none.
const DefaultImage = "python:3.14-slim"

// Settings are what every command shares, each value a flag with an
// environment twin.
type Settings struct {
	Image      string
	ImageNamed bool // the user chose it: it is never replaced
	UID, GID   uint32
	Mounts     []spec.Mount
	Start      string
	StateDir   string
	Dirs       Dirs
	Pull       rootfs.PullPolicy
	MaxFiles   int // in an image
	LogLevel   slog.Level
	AllowSelf  bool
	Servers    string
	Policy     string
	UV         string // path, empty for the pinned one
	Runtime    string

	// What the user sets of the options of other packages.
	Bridge bridge.Options
	Runs   run.Options
	Proxy  mcpproxy.Options
	Puller images.Puller

	chosen map[string]string // the settings that the user chose, by name
}

// Named reports whether the user chose a setting.
func (s Settings) Named(name string) bool { return s.chosen[name] != "" }

// A Setting describes one value: its flag, variable, default and usage.
type Setting struct {
	Name, Env, Value, Usage string

	read func(value string) error // into Settings
}

// A Group is the settings of one subject.
type Group struct {
	Title    string
	Settings []Setting
}

// Groups are the flags behind Settings, as help and docs/settings.md group them.
var Groups = new(Settings).groups()

// groups returns the flags, their environment twins, defaults and usage, and what reads
// them into s. All are strings, so that an error names the setting as the user wrote it, flag
// or variable.
func (s *Settings) groups() []Group {
	return []Group{
		{"Runs", []Setting{
			{"timeout", "MCP_BRIDGE_TIMEOUT", "30s", "time limit of a run that sets none, `TIME` such as 90s or 2m", into(&s.Runs.Timeout, parseDuration)},
			{"max-timeout", "MCP_BRIDGE_MAX_TIMEOUT", "2m", "longest `TIME` that a model may ask for", into(&s.Runs.MaxTimeout, parseDuration)},
			{"memory", "MCP_BRIDGE_MEMORY", "512m", "memory limit of a sandbox in `BYTES` (k, m, g)", into(&s.Runs.Limits.Memory, parseMemory)},
			{"pids", "MCP_BRIDGE_PIDS", "128", "largest `COUNT` of processes and threads in a sandbox", number(&s.Runs.Limits.PIDs, whole(4, math.MaxInt32))},
			{"cpus", "MCP_BRIDGE_CPUS", "", "limit a sandbox to this many `CPUS`, such as 1.5", into(&s.Runs.Limits.CPUs, parseCPUs)},
			{"container-user", "MCP_BRIDGE_CONTAINER_USER", "65534:65534", "user and group ID inside the sandbox, `UID:GID`", s.readUser},
			{"start", "MCP_BRIDGE_START", oci.StartAuto, "how serve prepares sandboxes: `HOW` is auto, fork or container", oneOf(&s.Start, "auto", "fork", "container")},
			{"preload", "MCP_BRIDGE_PRELOAD", "", "comma-separated `MODULES` that serve imports before a run begins, such as numpy,pandas", into(&s.Runs.Preload, parseModules)},
			{"mounts", "MCP_BRIDGE_MOUNTS", "", "host folders and files that code can read, comma-separated `SOURCE:TARGET`; with :rw after one it can also write", s.readMounts},
			{"sessions", "MCP_BRIDGE_SESSIONS", "4", "largest `COUNT` of sessions that serve keeps open at once; 0 for none", number(&s.Runs.Sessions, whole(0, maxSessions))},
			{"session-idle-timeout", "MCP_BRIDGE_SESSION_IDLE_TIMEOUT", "30m", "`TIME` without a run after which a session ends", into(&s.Runs.SessionIdle, parseDuration)},
			{"approval-timeout", "MCP_BRIDGE_APPROVAL_TIMEOUT", "10m", "`TIME` that a run waits for the user's answer before it ends", into(&s.Runs.ApprovalTimeout, parseDuration)},
			{"form-timeout", "MCP_BRIDGE_FORM_TIMEOUT", "45s", "`TIME` that a client shows toolcell's form during a call; after it the user answers with toolcell approvals", into(&s.Bridge.FormTimeout, parseDuration)},
		}},
		{"Results", []Setting{
			{"output", "MCP_BRIDGE_OUTPUT_MODE", "compact", "form of results: `MODE` is compact, toon or json", oneOf(&s.Bridge.Output, "compact", "toon", "json")},
			{"output-bytes", "MCP_BRIDGE_OUTPUT_BYTES", "32k", "largest size of stdout, stderr and the value in a result, `BYTES` from 1k to 1m; a file has all of it", number(&s.Runs.MaxOutput, sizeWithin(1<<10, 1<<20, "not a size from 1k to 1m"))},
			{"pictures", "MCP_BRIDGE_PICTURES", "8", "largest `COUNT` of pictures in a result; others are kept as files", number(&s.Runs.Pictures.Count, whole(0, math.MaxInt16))},
			{"picture-size", "MCP_BRIDGE_PICTURE_SIZE", "1024", "longer side of a picture in `PIXELS`; larger ones are scaled down", number(&s.Runs.Pictures.Side, whole(16, math.MaxInt16))},
			{"picture-bytes", "MCP_BRIDGE_PICTURE_BYTES", "400k", "largest size of a picture in `BYTES` (k, m)", number(&s.Runs.Pictures.Bytes, sizeWithin(4<<10, 10<<20, "not between 4k and 10m"))},
			{"files-max-age", "MCP_BRIDGE_FILES_MAX_AGE", "168h", "`TIME` that files of a run are kept", into(&s.Runs.Files.Age, parseDuration)},
			{"files-max-size", "MCP_BRIDGE_FILES_MAX_SIZE", "1g", "total size of the files of all runs in `BYTES` (k, m, g); beyond it the oldest are removed", into(&s.Runs.Files.Size, ParseBytes)},
		}},
		{"Images", []Setting{
			{"image", "MCP_BRIDGE_IMAGE", DefaultImage, "image that has Python and its packages: `REF` is a registry reference, oci:DIR[:TAG|@DIGEST], oci-archive:FILE, docker-archive:FILE, or host", text(&s.Image)},
			{"pull", "MCP_BRIDGE_PULL", "missing", "when to ask the registry, and the index of packages: `POLICY` is missing, always or never", oneOf(&s.Pull, "missing", "always", "never")},
			{"platform", "MCP_BRIDGE_PLATFORM", "", "platform of the image, `OS/ARCH[/VARIANT]` such as linux/arm64, instead of this host's", into(&s.Puller.Platform, images.ParsePlatform)},
			{"registry-mirrors", "MCP_BRIDGE_REGISTRY_MIRRORS", "", "mirrors to try first, space-separated `REGISTRY=MIRROR[,MIRROR]`; http:// before a mirror allows plain HTTP", s.readMirrors},
			{"registry-ca", "MCP_BRIDGE_REGISTRY_CA", "", "PEM `FILE` of certificates to trust in addition to the system's", text(&s.Puller.CAFile)},
			{"authfile", "MCP_BRIDGE_AUTHFILE", "", "`FILE` of credentials for registries, as podman login --authfile writes it, instead of the usual files", text(&s.Puller.AuthFile)},
			{"insecure-registries", "MCP_BRIDGE_INSECURE_REGISTRIES", "", "comma-separated `HOSTS` of registries that may use plain HTTP", s.readInsecure},
			{"image-max-size", "MCP_BRIDGE_IMAGE_MAX_SIZE", "16g", "largest unpacked size of an image in `BYTES` (k, m, g)", into(&s.Puller.MaxArchive, ParseBytes)},
			{"image-max-files", "MCP_BRIDGE_IMAGE_MAX_FILES", strconv.Itoa(rootfs.DefaultMaxEntries), "largest `COUNT` of files and directories in an image", number(&s.MaxFiles, whole(4, math.MaxInt32))},
		}},
		{"Servers", []Setting{
			{"servers-config", "MCP_SERVERS_CONFIG", "", "additional config `FILE` of servers; it takes precedence over all others", text(&s.Servers)},
			{"policy", "MCP_BRIDGE_POLICY", "", "`FILE` that says what code may call, instead of $XDG_CONFIG_HOME/toolcell/policy.toml", text(&s.Policy)},
			{"uv", "MCP_BRIDGE_UV", "", "uv program `FILE` that chooses the versions of packages, instead of one that toolcell fetches", text(&s.UV)},
			{"start-timeout", "MCP_BRIDGE_START_TIMEOUT", "2m", "`TIME` that a server may take to start, if its entry does not say; MCP_TIMEOUT in milliseconds counts if it is longer", into(&s.Proxy.StartTimeout, parseDuration)},
			{"allow-self-server", "MCP_BRIDGE_ALLOW_SELF_SERVER", "0", "whether toolcell itself is listed among the servers, `0|1`", into(&s.AllowSelf, parseBool)},
		}},
		{"The program", []Setting{
			{"state-dir", "MCP_BRIDGE_STATE_DIR", "", "one `DIR` for all files that toolcell keeps, instead of the XDG folders", text(&s.StateDir)},
			{"idle-timeout", "MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT", "5m", "`TIME` after which idle servers and standby sandboxes are stopped", into(&s.Proxy.IdleTimeout, parseDuration)},
			{"log-level", "MCP_BRIDGE_LOG_LEVEL", "INFO", "lowest `LEVEL` of log lines on stderr: DEBUG, INFO, WARN or ERROR; without it, commands other than serve print warnings only", into(&s.LogLevel, parseLevel)},
			{"runtime", "MCP_BRIDGE_RUNTIME", "auto", "has no effect; `NAME` is accepted for old configs", text(&s.Runtime)},
		}},
	}
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

// Read reads and checks all settings, and finds the folders that they name.
func Read(c *cli.Context) (s Settings, err error) {
	s.chosen = map[string]string{}
	for _, k := range All {
		if c.IsSet(k.Name) {
			s.chosen[k.Name] = c.String(k.Name)
		}
	}
	if err := s.read(func(k Setting) string { return c.String(k.Name) }); err != nil {
		return s, err
	}
	s.ImageNamed = s.Named("image")
	// Who starts Claude Code with MCP_TIMEOUT, because a server is slow, need not say it again.
	if ms, err := strconv.Atoi(os.Getenv("MCP_TIMEOUT")); err == nil && !s.Named("start-timeout") {
		most := int(24 * time.Hour / time.Millisecond)
		s.Proxy.StartTimeout = max(s.Proxy.StartTimeout, time.Duration(min(ms, most))*time.Millisecond)
	}
	if s.Runs.Pictures.Count == 0 {
		s.Runs.Pictures.Count = imaging.None
	}
	s.Dirs, err = FindDirs(s.StateDir)
	s.Proxy.TokenDir, s.Proxy.CatalogDir, s.Proxy.PinDir = s.Dirs.Logins(), s.Dirs.Catalogs(), s.Dirs.Pins()
	return s, err
}

// read reads the value of each setting from where get finds it.
func (s *Settings) read(get func(Setting) string) error {
	for _, g := range s.groups() {
		for _, k := range g.Settings {
			if err := k.set(get(k)); err != nil {
				return err
			}
		}
	}
	return nil
}

// set reads a value. One that is set to nothing counts as not set, since clients' configs
// often hold empty strings.
func (k Setting) set(value string) error {
	value = cmp.Or(strings.Trim(strings.TrimSpace(value), `"`), k.Value)
	if value == "" {
		return nil
	}
	if err := k.read(value); err != nil {
		return k.refuse(err)
	}
	return nil
}

// refuse returns the error of a setting that cannot be used, under both of its names.
func (k Setting) refuse(err error) error {
	return console.Invalidf("setting --%s (%s): %w", k.Name, k.Env, err)
}

// Check refuses a value of an environment variable that serve would refuse, and
// a variable of ours that is no setting. An MCP client would only say that the
// server does not start. Variables of others are not checked.
func Check(name, value string) error {
	i := slices.IndexFunc(All, func(k Setting) bool { return k.Env == name })
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
	return new(Settings).read(func(k Setting) string {
		if k.Env == name {
			return value
		}
		return ""
	})
}

// CheckEnvironment refuses a value of an environment variable that serve would refuse,
// for a command that has not all settings as flags. Those that are given win.
func (s Settings) CheckEnvironment() error {
	return new(Settings).read(func(k Setting) string {
		if given, ok := s.chosen[k.Name]; ok {
			return given
		}
		return os.Getenv(k.Env)
	})
}
