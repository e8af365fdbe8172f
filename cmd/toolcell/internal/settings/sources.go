package settings

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge/imaging"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
)

// sources are where the values of settings come from. A flag overrides a variable, which overrides
// the user's file; without any of them the default applies. A project's file goes between
// variables and the user's file with the form of results, and lowers limits wherever they come from.
type sources struct {
	flags         map[string]string // those that were given, by name
	names         []string          // of the settings that the command has
	user, project *File             // nil if there is none
}

// An origin is the kind of source that a value comes from.
type origin int

const (
	byDefault origin = iota
	byFile
	byProject
	byVariable
	byFlag
)

// A Value is the text of a setting, and where it comes from.
type Value struct {
	Text string
	From string // as the user finds it: --timeout, TOOLCELL_TIMEOUT, ~/.config/toolcell/config.toml:3; empty for the default

	origin origin
}

// Read reads and checks the settings of a command, and finds the folders that they name. A
// project's file does not count yet. If some are named, the others have their defaults, whatever variables
// and the user's file say of them; but flags count.
func Read(c *cli.Context, only ...string) (Settings, error) {
	user, err := readUserFile()
	if err != nil {
		return Settings{}, err
	}
	return read(sources{flags: given(c), names: wanted(c, only), user: user})
}

// ReadWithoutFile is Read with the user's file left out, for a command that is to say what is wrong with it.
func ReadWithoutFile(c *cli.Context, only ...string) (Settings, error) {
	return read(sources{flags: given(c), names: wanted(c, only)})
}

// wanted returns the settings of a command that are read.
func wanted(c *cli.Context, only []string) []string {
	names := namesOf(c)
	if len(only) == 0 {
		return names
	}
	return slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(only, name) && !c.IsSet(name) })
}

func given(c *cli.Context) map[string]string {
	flags := map[string]string{}
	names := namesOf(c)
	for _, k := range All {
		if c.IsSet(k.Name) && slices.Contains(names, k.Name) {
			flags[k.Name] = c.String(k.Name)
		}
	}
	return flags
}

func namesOf(c *cli.Context) (names []string) {
	for _, f := range c.Command.Flags {
		if OfSetting(f) {
			names = append(names, f.Names()...)
		}
	}
	return names
}

// OfSetting reports whether a flag is that of a setting. The flag --project of install is not.
func OfSetting(f cli.Flag) bool {
	_, own := f.(*cli.BoolFlag)
	return !own && Find(f.Names()[0]) != nil
}

// InProject returns the settings with what a project's file lowers and chooses. dir is the
// project's folder; without one nothing changes. After an error the settings are as they were.
func (s Settings) InProject(dir string) (Settings, error) {
	project, err := readProjectFile(dir)
	if err != nil || project == nil {
		return s, err
	}
	src := s.src
	src.project = project
	in, err := read(src)
	if err != nil {
		return s, err
	}
	return in, nil
}

// With returns the settings with others as well, which the command has no flags for: variables and the
// user's file count for them, too.
func (s Settings) With(names []string) (Settings, error) {
	if s.values == nil { // they were not read
		return s, nil
	}
	src := s.src
	src.names = slices.Concat(src.names, names)
	return read(src)
}

// ProjectOverride returns the value that the file of a project's folder gives a setting in place of
// the user's, as the files are now, and whether it does. A file that cannot be used overrides nothing.
func ProjectOverride(name, dir string) (v Value, overrides bool) {
	k := Find(name)
	if k == nil {
		return Value{}, false
	}
	user, errUser := readUserFile()
	project, errProject := readProjectFile(dir)
	if errUser != nil || errProject != nil {
		return Value{}, false
	}
	v, err := sources{user: user, project: project}.find(*k)
	return v, err == nil && v.origin == byProject
}

// read reads the settings from their sources.
func read(src sources) (s Settings, err error) {
	if err := s.fill(src); err != nil {
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

// fill reads the value of each setting that the command has, and the defaults of the others.
func (s *Settings) fill(src sources) error {
	s.src, s.values = src, map[string]Value{}
	for _, g := range s.groups() {
		for _, k := range g.Settings {
			v := Value{Text: k.Value}
			if slices.Contains(src.names, k.Name) {
				var err error
				if v, err = src.find(k); err != nil {
					return err
				}
				s.values[k.Name] = v
			}
			if v.Text == "" {
				continue
			}
			if err := k.read(v.Text); err != nil {
				return v.refuse(k.Name, err)
			}
		}
	}
	return nil
}

// find returns the value of a setting. What is set to nothing counts as not set, since clients'
// configs often hold empty strings.
func (src sources) find(k Setting) (v Value, err error) {
	if v, err = src.own(k); err != nil || src.project == nil {
		return v, err
	}
	e, ok := src.project.entries[k.Name]
	switch {
	case !ok:
		return v, nil
	case k.amount == nil && v.origin >= byVariable:
		return v, nil
	case k.amount == nil:
		return Value{e.text, src.project.place(e), byProject}, nil
	}
	lowered, err := amountOf(k.Name, e.text)
	if err != nil {
		return v, src.project.refuse(e, k.Name, err)
	}
	before := math.Inf(1)
	if v.Text != "" {
		if before, err = amountOf(k.Name, v.Text); err != nil {
			return v, v.refuse(k.Name, err)
		}
	}
	if lowered < before {
		v = Value{e.text, src.project.place(e), byProject}
	}
	return v, nil
}

// own returns the value that the user gives a setting, without a project's file.
func (src sources) own(k Setting) (Value, error) {
	if given := clean(src.flags[k.Name]); given != "" {
		return Value{given, "--" + k.Name, byFlag}, nil
	}
	ours, old := clean(os.Getenv(k.Variable())), clean(os.Getenv(k.OldVariable()))
	switch {
	case ours != "" && old != "" && ours != old:
		return Value{}, console.Invalidf("%s is %q and %s, its old name, is %q: unset one of them", k.Variable(), ours, k.OldVariable(), old)
	case ours != "":
		return Value{ours, k.Variable(), byVariable}, nil
	case old != "":
		return Value{old, k.OldVariable(), byVariable}, nil
	}
	if src.user != nil {
		if e, ok := src.user.entries[k.Name]; ok && clean(e.text) != "" {
			return Value{clean(e.text), src.user.place(e), byFile}, nil
		}
	}
	return Value{Text: k.Value}, nil
}

// clean returns what counts of a value: people and clients put it in quotes and blanks.
func clean(value string) string { return strings.Trim(strings.TrimSpace(value), `"`) }

// refuse returns the error of a value that cannot be used, which names the setting as the user
// wrote it.
func (v Value) refuse(name string, err error) error {
	if v.origin == byFile || v.origin == byProject {
		return console.Invalidf("%w", &FileError{Name: v.From, Err: fmt.Errorf("%s: %w", name, err)})
	}
	return console.Invalidf("setting %s: %w", cmp.Or(v.From, "--"+name), err)
}

// amountOf reads the value of a setting that is a number. It changes no Settings.
func amountOf(name, value string) (float64, error) {
	k := settingOf(new(Settings).groups(), name)
	if err := k.read(value); err != nil {
		return 0, err
	}
	return k.amount(), nil
}

// Find returns the setting of a name, or nil.
func Find(name string) *Setting { return settingOf(Groups, name) }

func settingOf(groups []Group, name string) *Setting {
	for _, g := range groups {
		if i := slices.IndexFunc(g.Settings, func(k Setting) bool { return k.Name == name }); i >= 0 {
			return &g.Settings[i]
		}
	}
	return nil
}

// Chosen reports whether the user has chosen a setting, whether this command has it or not.
func (s Settings) Chosen(name string) bool {
	v, err := s.src.own(*Find(name))
	return err != nil || v.From != ""
}

// Value returns the text of a setting that this command has, and where it comes from.
func (s Settings) Value(name string) Value { return s.values[name] }

// Refuse returns the error of a setting that cannot be used, which names it as the user wrote it.
func (s Settings) Refuse(name string, err error) error { return s.values[name].refuse(name, err) }

// ForProcess returns the settings among some that the user chose, as flags of a process
// that may have another working folder.
func (s Settings) ForProcess(names []string) (flags []string) {
	for _, name := range names {
		if !s.Named(name) {
			continue
		}
		value := s.values[name].Text
		if abs, err := filepath.Abs(value); err == nil && slices.Contains(paths, name) {
			value = abs
		}
		flags = append(flags, "--"+name+"="+value)
	}
	return flags
}

// Flags returns the flags of all settings, or of those named. They know nothing of variables:
// Read finds out which source of a value counts.
func Flags(only ...string) []cli.Flag {
	var flags []cli.Flag
	for _, k := range All {
		if len(only) == 0 || slices.Contains(only, k.Name) {
			flags = append(flags, k.Flag())
		}
	}
	return flags
}

// Flag returns the flag of a setting.
func (k Setting) Flag() cli.Flag {
	if k.Name == "project" || k.Name == "log-json" {
		return &cli.GenericFlag{Name: k.Name, Value: &valueOptional{k.Value}, Usage: k.Usage}
	}
	return &cli.StringFlag{Name: k.Name, Value: k.Value, Usage: k.Usage}
}

// A valueOptional is the value of a flag that can be given without one: it is then "true".
type valueOptional struct{ text string }

func (v *valueOptional) String() string { return v.text }

// IsBoolFlag has package flag take no argument for the value.
func (v *valueOptional) IsBoolFlag() bool { return true }

// Set implements flag.Value.
func (v *valueOptional) Set(text string) error {
	v.text = text
	return nil
}

// Check refuses a value of an environment variable that serve would refuse, and
// a variable of ours that is no setting. An MCP client would only say that the
// server does not start. Variables of others are not checked.
func Check(name, value string) error {
	k := OfVariable(name)
	switch {
	case k == nil && isOurs(name):
		return console.Invalidf("--env %s: there is no such setting%s", name, suggestVariable(name))
	case k == nil || clean(value) == "":
		return nil
	case k.Name == "mounts":
		if err := checkLastingMounts(name, value); err != nil {
			return err
		}
	}
	if err := k.check(clean(value)); err != nil {
		return Value{From: name, origin: byVariable}.refuse(k.Name, err)
	}
	return nil
}

// OfVariable returns the setting of an environment variable, or nil.
func OfVariable(name string) *Setting {
	i := slices.IndexFunc(All, func(k Setting) bool { return k.Variable() == name || k.OldVariable() == name })
	if i < 0 {
		return nil
	}
	return &All[i]
}

// inputs begins the names of variables that are no settings: they are values for servers' entries.
const inputs = "INPUT_"

// isOurs reports whether a variable has one of our prefixes, and is not a value for a server's entry.
func isOurs(name string) bool {
	for _, p := range []string{prefix, oldPrefix} {
		if rest, ok := strings.CutPrefix(name, p); ok {
			return !strings.HasPrefix(rest, inputs)
		}
	}
	return false
}

// suggestVariable ends a sentence about a variable that is no setting.
func suggestVariable(name string) string {
	if meant := Meant(name); meant != "" {
		return "; did you mean " + settingOf(Groups, meant).Variable() + "?"
	}
	return "; toolcell help settings lists them"
}

// Typo returns a sentence about a variable whose name is nearly that of a setting, or "". Other
// unknown variables are left alone: other programs have some with our prefix, and so have configs
// of the predecessor.
func Typo(variable string) string {
	if !isOurs(variable) || OfVariable(variable) != nil || Meant(variable) == "" {
		return ""
	}
	return fmt.Sprintf("there is no setting %s%s", variable, suggestVariable(variable))
}

// CheckAll refuses a value that serve would refuse, for a command that has not all settings as
// flags. Those that are given win.
func (s Settings) CheckAll() error {
	src := s.src
	src.names = nil
	for _, k := range All {
		src.names = append(src.names, k.Name)
	}
	return new(Settings).fill(src)
}
