package clientconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// Bounds of an entry.
const (
	maxDescription = 64 << 10
	maxTimeout     = 24 * time.Hour
)

// A ClientPart is an entry for a server that is built into its client, so that
// no other program can start it.
type ClientPart string

func (p ClientPart) Error() string {
	return "part of " + string(p) + " itself, so nothing else can start it"
}

// An Entry is one server as its file lists it, parsed.
type Entry struct {
	Name     string
	Server   config.Server
	Disabled bool           // then no more is read of the server than its command
	Inputs   []config.Input // that it names, with a value or without
	Err      error          // what is wrong with it, a missing value too
}

// lacksValue reports whether only a value is missing.
func (e Entry) lacksValue() bool {
	var missing *config.MissingValueError
	return errors.As(e.Err, &missing)
}

// Parse reads one entry. Its errors are in the result.
func (f *File) Parse(m rawjson.Member) (e Entry) {
	e.Name = m.Name
	if e.Err = config.CheckName(m.Name); e.Err != nil {
		return e
	}
	if f.off[m.Name] {
		e.Disabled = true
		raw, _ := f.AsWritten(m)
		e.Server.Command = raw.Command
		return e
	}
	x := &expander{from: f, syntax: f.Dialect.syntax}
	e.Server, e.Disabled, e.Err = parseEntry(f, m, x)
	e.Inputs = x.names
	for i := range e.Inputs {
		e.Inputs[i].Source, e.Inputs[i].Server = f.Location.Path, m.Name
	}
	if len(x.missing) > 0 && e.Err == nil && !e.Disabled {
		e.Err = config.NewMissingValueError(m.Name, x.missing)
	}
	e.Server.Name, e.Server.Source, e.Server.Client = m.Name, f.Location.Path, f.Dialect.Client
	return e
}

// AsWritten reads an entry without expanding the variables in it. Of a broken
// one it gives what can be read.
func (f *File) AsWritten(m rawjson.Member) (config.Server, error) {
	s, _, err := parseEntry(f, m, &expander{raw: true})
	return s, err
}

// parseEntry turns one entry into a server that can be used as it stands:
// variables are expanded and types are checked. Unknown keys are ignored, since
// every client has its own. The caller looks at x.missing.
func parseEntry(f *File, m rawjson.Member, x *expander) (s config.Server, disabled bool, err error) {
	all, err := rawjson.Members(m.Value)
	if err != nil {
		return s, false, fmt.Errorf("its entry is %s", insteadOfObject(m.Value))
	}
	r := fieldReader{members: all, x: x, dialect: f.Dialect}
	if disabled = r.disabled(); disabled && r.err == nil {
		r.x = &expander{raw: true}
		r.command(&s) // tells whether it is this program; whether it is right does not matter
		return s, true, nil
	}
	kind, urlKey := r.transport()
	s.Transport = kind
	s.Description = text.Clip(r.text("description"), maxDescription)
	s.AllowTools, s.DenyTools = r.tools(f.Dialect.Fields.allow), r.tools(f.Dialect.Fields.deny)
	if len(s.AllowTools) == 0 && f.Dialect.allowAll || len(s.AllowTools) == 1 && s.AllowTools[0] == "*" {
		s.AllowTools = nil
	}
	s.StartTimeout, s.CallTimeout = r.timeouts()
	if r.err != nil {
		return s, false, r.err
	}
	if kind == config.Stdio {
		r.stdio(f, &s)
	} else {
		r.remote(urlKey, &s)
	}
	if r.err != nil || len(x.missing) > 0 {
		return s, false, r.err // half of its values are not known: there is no more to check
	}
	return s, false, s.Check()
}

// stdio reads the fields of a server that is started.
func (r *fieldReader) stdio(f *File, s *config.Server) {
	r.command(s)
	s.Command = r.x.home(s.Command)
	key := r.optional("args")
	s.Args = append(s.Args, r.arguments(s.Command, key, r.items(key), 1)...)
	s.Env = r.passed(r.environment(f))
	if s.Dir = r.expanded("cwd"); s.Dir != "" && !r.x.raw {
		if s.Dir = r.x.home(s.Dir); !filepath.IsAbs(s.Dir) { // every client has its own directory in mind, and that is the project's
			s.Dir = filepath.Join(f.options.Dir, s.Dir)
		}
	}
}

// command reads the command in the forms it comes in.
func (r *fieldReader) command(s *config.Server) {
	key := r.name(r.dialect.Fields.Command, "command")
	raw, _ := r.get(key)
	if list, err := rawjson.Items(raw); err == nil && (r.dialect.Fields.CommandList || r.dialect.guess) {
		if len(list) > 0 {
			s.Command = r.texts(key, list[:1], 1)[0]
			s.Args = r.arguments(s.Command, key, list[1:], 2)
		}
		return
	}
	if inner, err := rawjson.Members(raw); err == nil && r.dialect.Fields.commandObject {
		// Older Zed: the command has everything in it.
		r.members = append(append([]rawjson.Member{}, inner...), r.members...)
		s.Command = r.expanded("path")
		return
	}
	s.Command = r.expanded(key)
}

// arguments reads what follows a command, which begins with that item of the key's list. Where
// ${NAME} is no variable of the client, it may be meant for the shell that is started.
func (r *fieldReader) arguments(command, key string, list []json.RawMessage, item int) []string {
	r.x.shell = r.x.syntax&^curly == 0 && Wrappers[filepath.Base(command)]
	defer func() { r.x.shell = false }()
	return r.texts(key, list, item)
}

// environment reads the variables of the entry, and of the file it names.
func (r *fieldReader) environment(f *File) map[string]string {
	env := r.table(r.optional(r.name(r.dialect.Fields.Env, "env")))
	if len(r.dialect.Fields.envFile) == 0 || r.x.raw {
		return env
	}
	path := r.expanded(r.dialect.Fields.envFile[0])
	if path == "" || r.err != nil {
		return env
	}
	if path = r.x.home(path); !filepath.IsAbs(path) {
		path = filepath.Join(f.base, path)
	}
	data, err := f.read(path)
	if err != nil {
		r.fail("%q: the file %s cannot be read: %s; create it or take the field out", "envFile", path, state.Reason(err))
		return env
	}
	all, err := parseDotenv(data)
	if err != nil {
		r.fail("%q: %s: %w", "envFile", path, err)
		return env
	}
	// the entry's own win
	maps.Copy(all, env)
	return all
}

// passed adds the variables that the entry names and that come from this
// program's own environment or from the user.
func (r *fieldReader) passed(env map[string]string) map[string]string {
	for _, key := range r.dialect.Fields.passedEnv {
		raw, ok := r.get(key)
		if !ok {
			continue
		}
		list, err := rawjson.Items(raw)
		if err != nil {
			r.fail("%q is not a list of names", key)
			return env
		}
		for _, item := range list {
			var name string
			var object struct{ Name string }
			if json.Unmarshal(item, &name) != nil && json.Unmarshal(item, &object) == nil {
				name = object.Name
			}
			if !variableName().MatchString(name) {
				r.fail("%q has %q, which is no name for a variable", key, text.Printable(name, 64))
				return env
			}
			if env == nil {
				env = map[string]string{}
			}
			if _, ok := env[name]; !ok && !r.x.raw {
				env[name] = r.x.ask(config.Input{ID: name, Secret: true})
			}
		}
	}
	return env
}
