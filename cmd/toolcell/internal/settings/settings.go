// Package settings reads and checks the user's settings, from flags, environment variables,
// the user's config.toml and a project's .toolcell.toml, and finds the folders of toolcell's
// files. An error names the setting as the user wrote it, and ends the program with the code
// of wrong usage. The package starts nothing; it writes config.toml for toolcell settings set,
// and nothing else.
package settings

import (
	"cmp"
	"log/slog"
	"math"
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/bridge"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/rootfs"
)

// DefaultImage is the image if the user names none.
const DefaultImage = "python:3.14-slim"

// Settings are what every command shares, each value a flag, a variable and a key in config.toml.
type Settings struct {
	Image      string
	ImageNamed bool // the user chose it: it is never replaced
	UID, GID   uint32
	Mounts     []spec.Mount
	Project    string // "read" or "off"
	Start      string
	StateDir   string
	Dirs       Dirs
	Pull       rootfs.PullPolicy
	MaxFiles   int // in an image
	LogLevel   slog.Level
	LogJSON    bool
	AllowSelf  bool
	Servers    string
	Policy     string
	UV         string // path, empty for the pinned one
	Runtime    string

	Record         record.Options // but for what the program itself sets
	RecordRequired bool

	// What the user sets of the options of other packages.
	Bridge bridge.Options
	Runs   run.Options
	Proxy  mcpproxy.Options
	Puller images.Puller

	absent  []*absentMount // which Mounts does not have
	sources []string       // of Mounts and absent, as the user named them, with their links
	src     sources
	values  map[string]Value // of the settings that this command has
}

// Named reports whether the user chose a setting, by whatever means.
func (s Settings) Named(name string) bool { return s.values[name].origin != byDefault }

// Typed reports whether the user chose a setting for this process: by a flag or a variable, and
// not in a file, which is about all of them.
func (s Settings) Typed(name string) bool { return s.values[name].origin >= byVariable }

// Lowered reports whether the value of a limit is that of the project's file.
func (s Settings) Lowered(name string) bool { return s.values[name].origin == byProject }

// A Setting describes one value: its name, which is that of its flag and its key in config.toml,
// its default and usage.
type Setting struct {
	Name, Value, Usage string

	reader // of the value into Settings
}

// The prefixes of variables: ours, and the one of toolcell's predecessor, whose variables still count.
const (
	prefix    = "TOOLCELL_"
	oldPrefix = "MCP_BRIDGE_"
)

// oldVariables are those of the predecessor that do not have the names of the settings.
var oldVariables = map[string]string{
	"output": oldPrefix + "OUTPUT_MODE", "idle-timeout": oldPrefix + "RUNTIME_IDLE_TIMEOUT", "servers-config": "MCP_SERVERS_CONFIG",
}

// Variable returns the environment variable of the setting.
func (k Setting) Variable() string { return prefix + k.inCapitals() }

// OldVariable returns the variable that the setting had before, which counts as well.
func (k Setting) OldVariable() string { return cmp.Or(oldVariables[k.Name], oldPrefix+k.inCapitals()) }

func (k Setting) inCapitals() string { return strings.ToUpper(strings.ReplaceAll(k.Name, "-", "_")) }

// A Group is the settings of one subject.
type Group struct {
	Title    string
	Settings []Setting
}

// Groups are the flags behind Settings, as help and docs/settings.md group them.
var Groups = new(Settings).groups()

// groups returns the settings with their defaults and usage, and what reads them into s. All
// values are texts, so that an error quotes what the user wrote.
func (s *Settings) groups() []Group {
	return []Group{
		{"Runs", []Setting{
			{"timeout", "30s", "time limit of a run that sets none, `TIME` such as 90s or 2m", into(&s.Runs.Timeout, parseDuration)},
			{"max-timeout", "2m", "longest `TIME` that a model may ask for", into(&s.Runs.MaxTimeout, parseDuration)},
			{"memory", "512m", "memory limit of a sandbox in `BYTES` (k, m, g)", into(&s.Runs.Limits.Memory, parseMemory)},
			{"pids", "128", "largest `COUNT` of processes and threads in a sandbox", number(&s.Runs.Limits.PIDs, whole(4, math.MaxInt32))},
			{"cpus", "", "limit a sandbox to this many `CPUS`, such as 1.5", into(&s.Runs.Limits.CPUs, parseCPUs)},
			{"container-user", "65534:65534", "user and group ID inside the sandbox, `UID:GID`", words(s.readUser)},
			{"start", oci.StartAuto, "how serve prepares sandboxes: `HOW` is auto, fork or container", oneOf(&s.Start, "auto", "fork", "container")},
			{"preload", "", "comma-separated `MODULES` that serve imports before a run begins, such as numpy,pandas", into(&s.Runs.Preload, parseModules)},
			{"mounts", "", "host folders and files that code can read, comma-separated `SOURCE:TARGET`; with :rw after one it can also write", lists(s.readMounts)},
			{"project", ProjectOff, "code reads the client's folder at /project; `HOW` is read or off", words(s.readProject)},
			{"sessions", "4", "largest `COUNT` of sessions that serve keeps open at once; 0 for none", number(&s.Runs.Sessions, whole(0, maxSessions))},
			{"session-idle-timeout", "30m", "`TIME` without a run after which a session ends", into(&s.Runs.SessionIdle, parseDuration)},
			{"approval-timeout", "10m", "`TIME` that a run waits for the user's answer before it ends", into(&s.Runs.ApprovalTimeout, parseDuration)},
			{"form-timeout", "45s", "`TIME` that a client shows toolcell's form during a call; after it the user answers with toolcell approvals", into(&s.Bridge.FormTimeout, parseDuration)},
		}},
		{"Results", []Setting{
			{"output", "compact", "form of results: `MODE` is compact, toon or json", oneOf(&s.Bridge.Output, "compact", "toon", "json")},
			{"output-bytes", "32k", "largest size of stdout, stderr and the value in a result, `BYTES` from 1k to 1m; a file has all of it", number(&s.Runs.MaxOutput, sizeWithin(1<<10, 1<<20, "not a size from 1k to 1m"))},
			{"pictures", "8", "largest `COUNT` of pictures in a result; others are kept as files", number(&s.Runs.Pictures.Count, whole(0, math.MaxInt16))},
			{"picture-size", "1024", "longer side of a picture in `PIXELS`; larger ones are scaled down", number(&s.Runs.Pictures.Side, whole(16, math.MaxInt16))},
			{"picture-bytes", "400k", "largest size of a picture in `BYTES` (k, m)", number(&s.Runs.Pictures.Bytes, sizeWithin(4<<10, 10<<20, "not between 4k and 10m"))},
			{"files-max-age", "168h", "`TIME` that files of a run are kept", into(&s.Runs.Files.Age, parseDuration)},
			{"files-max-size", "1g", "total size of the files of all runs in `BYTES` (k, m, g); beyond it the oldest are removed", into(&s.Runs.Files.Size, text.ParseSize)},
		}},
		{"Record", []Setting{
			{"record-values", "arguments", "what the record of runs keeps in full: `WHAT` is none, arguments (code, arguments and output) or all (answers of servers, too)", oneOf(&s.Record.Keep, "none", "arguments", "all")},
			{"record-required", "0", "whether runs and calls are refused that cannot be recorded, `0|1`", into(&s.RecordRequired, parseBool)},
			{"record-redact", "", "regular expressions of what the record blacks out, a list in the file; here one `PATTERN` a line", lists(s.readRedact)},
			{"record-max-age", "720h", "`TIME` that the record of a run is kept, in whole days", into(&s.Record.KeepDays, parseDays)},
			{"record-max-size", "1g", "total size of the record in `BYTES` (k, m, g); beyond it the oldest days are removed", into(&s.Record.MaxBytes, text.ParseSize)},
		}},
		{"Images", []Setting{
			{"image", DefaultImage, "image that has Python and its packages: `REF` is a registry reference, oci:DIR[:TAG|@DIGEST], oci-archive:FILE, docker-archive:FILE, or host", plain(&s.Image)},
			{"pull", "missing", "when to ask the registry, and the index of packages: `POLICY` is missing, always or never", oneOf(&s.Pull, "missing", "always", "never")},
			{"platform", "", "platform of the image, `OS/ARCH[/VARIANT]` such as linux/arm64, instead of this host's", into(&s.Puller.Platform, images.ParsePlatform)},
			{"registry-mirrors", "", "mirrors to try first, space-separated `REGISTRY=MIRROR[,MIRROR]`; http:// before a mirror allows plain HTTP", lists(s.readMirrors)},
			{"registry-ca", "", "PEM `FILE` of certificates to trust in addition to the system's", plain(&s.Puller.CAFile)},
			{"authfile", "", "`FILE` of credentials for registries, as podman login --authfile writes it, instead of the usual files", plain(&s.Puller.AuthFile)},
			{"insecure-registries", "", "comma-separated `HOSTS` of registries that may use plain HTTP", lists(s.readInsecure)},
			{"image-max-size", "16g", "largest unpacked size of an image in `BYTES` (k, m, g)", into(&s.Puller.MaxArchive, text.ParseSize)},
			{"image-max-files", strconv.Itoa(rootfs.DefaultMaxEntries), "largest `COUNT` of files and directories in an image", number(&s.MaxFiles, whole(4, math.MaxInt32))},
		}},
		{"Servers", []Setting{
			{"servers-config", "", "additional config `FILE` of servers; it takes precedence over all others", plain(&s.Servers)},
			{"policy", "", "`FILE` that says what code may call, instead of $XDG_CONFIG_HOME/toolcell/policy.toml", plain(&s.Policy)},
			{"uv", "", "uv program `FILE` that chooses the versions of packages, instead of one that toolcell fetches", plain(&s.UV)},
			{"start-timeout", "2m", "`TIME` that a server may take to start, if its entry does not say; MCP_TIMEOUT in milliseconds counts if it is longer", into(&s.Proxy.StartTimeout, parseDuration)},
			{"allow-self-server", "0", "whether toolcell itself is listed among the servers, `0|1`", into(&s.AllowSelf, parseBool)},
		}},
		{"The program", []Setting{
			{"state-dir", "", "one `DIR` for all files that toolcell keeps, instead of the XDG folders", plain(&s.StateDir)},
			{"idle-timeout", "5m", "`TIME` after which idle servers and standby sandboxes are stopped", into(&s.Proxy.IdleTimeout, parseDuration)},
			{"log-level", "INFO", "lowest `LEVEL` of log lines on stderr: DEBUG, INFO, WARN or ERROR; without it, commands other than serve print warnings only", into(&s.LogLevel, parseLevel)},
			{"log-json", "0", "whether log lines on stderr are JSON, `0|1`; --log-json alone is 1", into(&s.LogJSON, parseBool)},
			{"runtime", "auto", "has no effect; `NAME` is accepted for old configs", plain(&s.Runtime)},
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

// ForServers are the settings of work that may start servers, which the policy may have in sandboxes.
var ForServers = append([]string{"policy", "image", "uv", "container-user", "memory", "pids", "cpus"}, ForImages...)

// ForRecord are the settings of work that is recorded.
var ForRecord = []string{"record-values", "record-required", "record-redact", "record-max-age", "record-max-size"}

// paths are the settings whose values are paths.
var paths = []string{"state-dir", "registry-ca", "authfile", "uv", "policy", "servers-config"}

// Lists are the settings whose values are lists, or files with rules and servers: a second flag
// would be meant to add to the first.
var Lists = []string{"mounts", "preload", "registry-mirrors", "insecure-registries", "record-redact", "servers-config", "policy"}
