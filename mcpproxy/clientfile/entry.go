package clientfile

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/rawjson"
	"github.com/toolcell/toolcell/mcpproxy/statefile"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// What an entry may hold at most.
const (
	maxArgs        = 4096
	maxEnv         = 4096
	maxDescription = 64 << 10
	maxTimeout     = 24 * time.Hour
)

// A ClientPart is an entry for a server that is built into its client, so that
// no other program can start it.
type ClientPart string

func (p ClientPart) Error() string {
	return "part of " + string(p) + " itself, so nothing else can start it"
}

// An Entry is an entry of a file.
type Entry struct {
	Name     string
	Server   config.Server
	Disabled bool
	Inputs   []config.Input // that it names, with a value or without
	Err      error          // what is wrong with it, a missing value too
}

// Parse reads one entry, whatever is in it.
func (f *File) Parse(e rawjson.Member) (r Entry) {
	r.Name = e.Name
	if r.Err = config.CheckName(e.Name); r.Err != nil {
		return r
	}
	if f.off[e.Name] {
		r.Disabled = true
		return r
	}
	x := newExpander(f)
	r.Server, r.Disabled, r.Err = parseEntry(f, e, x)
	r.Inputs = x.names
	for i := range r.Inputs {
		r.Inputs[i].Source, r.Inputs[i].Server = f.Location.Path, e.Name
	}
	if len(x.missing) > 0 && r.Err == nil && !r.Disabled {
		r.Err = config.NewMissingValueError(e.Name, x.missing)
	}
	r.Server.Name, r.Server.Source, r.Server.Client = e.Name, f.Location.Path, f.Dialect.Client
	return r
}

// AsWritten reads an entry without expanding the variables in it. Of a broken
// one it gives what can be read.
func (f *File) AsWritten(e rawjson.Member) (config.Server, error) {
	s, _, err := parseEntry(f, e, &expander{raw: true})
	return s, err
}

// parseEntry turns one entry into a server that can be used as it stands:
// variables are expanded and types are checked. Unknown keys are ignored, since
// every client has its own. The caller looks at x.missing.
func parseEntry(f *File, m rawjson.Member, x *expander) (s config.Server, disabled bool, err error) {
	all, err := rawjson.Members(m.Value)
	if err != nil {
		return s, false, errors.New("its entry is not an object")
	}
	e := entry{members: all, x: x, dialect: f.Dialect}
	if disabled = e.disabled(); disabled && e.err == nil {
		return s, true, nil
	}
	kind, urlKey := e.transport()
	s.Transport = kind
	s.Description = text.Clip(e.text("description"), maxDescription)
	s.AllowTools, s.DenyTools = e.tools(f.Dialect.Fields.allow), e.tools(f.Dialect.Fields.deny)
	if len(s.AllowTools) == 0 && f.Dialect.allowAll || len(s.AllowTools) == 1 && s.AllowTools[0] == "*" {
		s.AllowTools = nil
	}
	s.StartTimeout, s.CallTimeout = e.timeouts()
	if e.err != nil {
		return s, false, e.err
	}
	if kind == config.Stdio {
		e.stdio(f, &s)
	} else {
		e.remote(urlKey, &s)
	}
	if e.err != nil || len(x.missing) > 0 {
		return s, false, e.err // half of its values are not known: there is no more to check
	}
	return s, false, s.Check()
}

// stdio reads the fields of a server that is started.
func (e *entry) stdio(f *File, s *config.Server) {
	o := e.x
	e.command(s)
	s.Command = o.home(s.Command)
	// Where ${NAME} is no variable of the client, it may be meant for the shell
	// that is started.
	if o.syntax&^curly == 0 && Wrappers[filepath.Base(s.Command)] {
		shell := *o
		shell.raw = true
		e.x = &shell
	}
	s.Args = append(s.Args, e.list("args")...)
	e.x = o
	s.Env = e.passed(e.environment(f))
	if s.Dir = e.expanded("cwd"); s.Dir != "" && !o.raw {
		if s.Dir = o.home(s.Dir); !filepath.IsAbs(s.Dir) { // every client has its own directory in mind, and that is the project's
			s.Dir = filepath.Join(o.folders["workspaceFolder"], s.Dir)
		}
	}
}

// command reads the command in the forms it comes in.
func (e *entry) command(s *config.Server) {
	key := e.name(e.dialect.Fields.Command, "command")
	raw, _ := e.get(key)
	if list, err := rawjson.Items(raw); err == nil && (e.dialect.Fields.CommandList || e.dialect.guess) {
		words := e.texts(key, list)
		if len(words) > 0 {
			s.Command, s.Args = words[0], words[1:]
		}
		return
	}
	if inner, err := rawjson.Members(raw); err == nil && e.dialect.Fields.commandObject {
		// Older Zed: the command has everything in it.
		e.members = append(append([]rawjson.Member{}, inner...), e.members...)
		s.Command = e.expanded("path")
		return
	}
	s.Command = e.expanded(key)
}

// environment reads the variables of the entry, and of the file it names.
func (e *entry) environment(f *File) map[string]string {
	env := e.table(e.name(e.dialect.Fields.Env, "env"))
	if len(e.dialect.Fields.envFile) == 0 || e.x.raw {
		return env
	}
	path := e.expanded(e.dialect.Fields.envFile[0])
	if path == "" || e.err != nil {
		return env
	}
	if path = e.x.home(path); !filepath.IsAbs(path) {
		path = filepath.Join(f.base, path)
	}
	data, err := f.read(path)
	if err != nil {
		e.fail("%q: the file %s cannot be read: %s; create it or take the field out", "envFile", path, statefile.Reason(err))
		return env
	}
	all, err := parseDotenv(data)
	if err != nil {
		e.fail("%q: %s: %w", "envFile", path, err)
		return env
	}
	// the entry's own win
	maps.Copy(all, env)
	return all
}

// passed adds the variables that the entry names and that come from this
// program's own environment or from the user.
func (e *entry) passed(env map[string]string) map[string]string {
	for _, key := range e.dialect.Fields.passedEnv {
		raw, ok := e.get(key)
		if !ok {
			continue
		}
		list, err := rawjson.Items(raw)
		if err != nil || len(list) > maxEnv {
			e.fail("%q is not a list of names", key)
			return env
		}
		for _, item := range list {
			var name string
			var object struct{ Name string }
			if json.Unmarshal(item, &name) != nil && json.Unmarshal(item, &object) == nil {
				name = object.Name
			}
			if !variableName.MatchString(name) {
				e.fail("%q has %q, which is no name for a variable", key, text.Printable(name, 64))
				return env
			}
			if env == nil {
				env = map[string]string{}
			}
			if _, ok := env[name]; !ok && !e.x.raw {
				env[name] = e.x.ask(config.Input{ID: name, Secret: true})
			}
		}
	}
	return env
}
