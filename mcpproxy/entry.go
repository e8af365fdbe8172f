package mcpproxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxNameLength   = 128
	maxArgs         = 4096
	maxEnv          = 4096
	maxCommandBytes = 1 << 20 // of command, arguments and environment; execve refuses about twice as much
	maxDescription  = 64 << 10
	maxURL          = 16 << 10
	maxHeaderBytes  = 256 << 10
	maxTimeout      = 24 * time.Hour
)

func checkName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("its name is empty")
	case utf8.RuneCountInString(name) > maxNameLength:
		return fmt.Errorf("its name is longer than %d characters", maxNameLength)
	case strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("its name contains control characters")
	}
	return nil
}

// partOf is an entry for a server that is a part of its client: nobody else
// can start it.
type partOf string

func (p partOf) Error() string {
	return "part of " + string(p) + " itself, so nothing else can start it"
}

// parseEntry turns one entry into a server that can be used as it stands:
// variables are expanded and types are checked. Unknown keys are ignored, since
// every client has its own. The caller looks at x.missing.
func parseEntry(f *configFile, m member, x *expander) (s Server, disabled bool, err error) {
	all, err := members(m.value)
	if err != nil {
		return s, false, errors.New("its entry is not an object")
	}
	e := entry{members: all, x: x, dialect: f.dialect}
	if disabled = e.disabled(); disabled && e.err == nil {
		return s, true, nil
	}
	kind, urlKey := e.transport()
	s.Transport = kind
	s.Description = clip(e.text("description"), maxDescription)
	s.AllowTools, s.DenyTools = e.tools(f.dialect.fields.allow), e.tools(f.dialect.fields.deny)
	if len(s.AllowTools) == 0 && f.dialect.allowAll || len(s.AllowTools) == 1 && s.AllowTools[0] == "*" {
		s.AllowTools = nil
	}
	s.StartTimeout, s.CallTimeout = e.timeouts()
	if e.err != nil {
		return s, false, e.err
	}
	if kind == Stdio {
		e.stdio(f, &s)
	} else {
		e.remote(urlKey, &s)
	}
	if e.err != nil || len(x.missing) > 0 {
		return s, false, e.err // half of its values are not known: there is no more to check
	}
	if kind == Stdio {
		return s, false, checkCommand(s)
	}
	return s, false, checkRemote(s)
}

// stdio reads the fields of a server that is started.
func (e *entry) stdio(f *configFile, s *Server) {
	o := e.x
	e.command(s)
	s.Command = o.home(s.Command)
	// Where ${NAME} is no variable of the client, it may be meant for the shell
	// that is started.
	if o.syntax&^curly == 0 && wrappers[filepath.Base(s.Command)] {
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
func (e *entry) command(s *Server) {
	key := e.name(e.dialect.fields.command, "command")
	raw, _ := e.get(key)
	if list, err := items(raw); err == nil && (e.dialect.fields.commandList || e.dialect.guess) {
		words := e.texts(key, list)
		if len(words) > 0 {
			s.Command, s.Args = words[0], words[1:]
		}
		return
	}
	if inner, err := members(raw); err == nil && e.dialect.fields.commandObject {
		// Older Zed: the command has everything in it.
		e.members = append(append([]member{}, inner...), e.members...)
		s.Command = e.expanded("path")
		return
	}
	s.Command = e.expanded(key)
}

// environment reads the variables of the entry, and of the file it names.
func (e *entry) environment(f *configFile) map[string]string {
	env := e.table(e.name(e.dialect.fields.env, "env"))
	if len(e.dialect.fields.envFile) == 0 || e.x.raw {
		return env
	}
	path := e.expanded(e.dialect.fields.envFile[0])
	if path == "" || e.err != nil {
		return env
	}
	if path = e.x.home(path); !filepath.IsAbs(path) {
		path = filepath.Join(f.base, path)
	}
	data, err := f.read(path)
	if err != nil {
		e.fail("%q: the file %s cannot be read: %s; create it or take the field out", "envFile", path, reason(err))
		return env
	}
	all, err := parseDotenv(data)
	if err != nil {
		e.fail("%q: %s: %w", "envFile", path, err)
		return env
	}
	for k, v := range env { // the entry's own win
		all[k] = v
	}
	return all
}

// passed adds the variables that the entry names and that come from this
// program's own environment or from the user.
func (e *entry) passed(env map[string]string) map[string]string {
	for _, key := range e.dialect.fields.passedEnv {
		raw, ok := e.get(key)
		if !ok {
			continue
		}
		list, err := items(raw)
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
				e.fail("%q has %q, which is no name for a variable", key, printable(name, 64))
				return env
			}
			if env == nil {
				env = map[string]string{}
			}
			if _, ok := env[name]; !ok && !e.x.raw {
				env[name] = e.x.ask(Input{ID: name, Secret: true})
			}
		}
	}
	return env
}

// remote reads the fields of a server that is reached.
func (e *entry) remote(urlKey string, s *Server) {
	s.URL = strings.TrimSpace(e.expanded(urlKey))
	s.Headers = e.table(e.name(e.dialect.fields.headers, "headers"))
	set := func(name, value string) {
		if s.Headers == nil {
			s.Headers = map[string]string{}
		}
		s.Headers[name] = value
	}
	switch e.dialect.client {
	case "codex":
		if _, ok := e.get("bearer_token"); ok {
			e.fail(`"bearer_token" in the file is not allowed by Codex; put the token into a variable and name it in "bearer_token_env_var"`)
			return
		}
		if name := e.text("bearer_token_env_var"); name != "" {
			set("Authorization", "Bearer "+e.variable(name))
		}
		for header, name := range e.table("env_http_headers") {
			set(header, e.variable(name))
		}
	case "continue":
		if key := e.expanded("apiKey"); key != "" {
			set("Authorization", "Bearer "+key)
		}
		if raw, ok := e.get("requestOptions"); ok {
			options, _ := members(raw)
			inner := entry{members: options, x: e.x, dialect: e.dialect}
			for name, value := range inner.table("headers") {
				set(name, value)
			}
			if inner.err != nil {
				e.fail("%w", inner.err)
			}
		}
	}
	s.OAuth = e.oauth()
}

func (e *entry) variable(name string) string {
	if e.x.raw {
		return ""
	}
	v, err := e.x.named(name)
	if err != nil {
		e.fail("%w", err)
	}
	return v
}

// oauth reads a client that was registered beforehand, in the words of any
// client.
func (e *entry) oauth() *OAuth {
	key := e.name([]string{"oauth", "auth"}, "oauth")
	raw, ok := e.get(key)
	if !ok {
		return nil
	}
	all, err := members(raw)
	if err != nil {
		return nil // true, false or a kind of login: the server says the rest
	}
	in := entry{members: all, x: e.x, dialect: e.dialect}
	o := &OAuth{
		ClientID:     in.expanded(in.name([]string{"clientId", "client_id", "CLIENT_ID", "clientID"}, "clientId")),
		ClientSecret: in.expanded(in.name([]string{"clientSecret", "client_secret", "CLIENT_SECRET"}, "clientSecret")),
	}
	scopes := in.name([]string{"scopes", "scope"}, "scopes")
	if raw, ok := in.get(scopes); ok {
		if list, err := items(raw); err == nil {
			o.Scopes = in.texts(scopes, list)
		} else {
			o.Scopes = strings.Fields(in.expanded(scopes))
		}
	}
	if in.err != nil {
		e.fail("in %q: %w", key, in.err)
	}
	if o.ClientID == "" && o.ClientSecret == "" && len(o.Scopes) == 0 {
		return nil
	}
	return o
}

// checkCommand refuses what execve would refuse, in words that help.
func checkCommand(s Server) error {
	if strings.TrimSpace(s.Command) == "" {
		return errors.New(`"command" is empty`)
	}
	size := len(s.Command) + len(s.Dir)
	words := append([]string{s.Command, s.Dir}, s.Args...)
	for _, k := range sortedKeys(s.Env) {
		if k == "" || strings.Contains(k, "=") {
			return fmt.Errorf("%q is no name for an environment variable", k)
		}
		words = append(words, k, s.Env[k])
	}
	for _, w := range words {
		if strings.ContainsRune(w, 0) {
			return errors.New("its command, arguments or environment contain a NUL character")
		}
		size += len(w) + 1
	}
	if size > maxCommandBytes {
		return errors.New("its command, arguments and environment are too long")
	}
	return nil
}

// headerName is a token, as RFC 9110 calls it in section 5.6.2.
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// checkRemote refuses what no request can be made of.
func checkRemote(s Server) error {
	u, err := url.Parse(s.URL)
	switch {
	case s.URL == "":
		return errors.New(`"url" is empty`)
	case len(s.URL) > maxURL:
		return errors.New("its URL is too long")
	case err != nil || strings.ContainsFunc(s.URL, unicode.IsControl):
		return errors.New("its URL is no URL") // it may hold a token, so it is not quoted
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("its URL begins with %q; only http and https are supported", printable(u.Scheme, 32)+":")
	case u.Hostname() == "":
		return errors.New("its URL names no host")
	}
	size := 0
	for _, k := range sortedKeys(s.Headers) {
		if !headerName.MatchString(k) {
			return fmt.Errorf("%q is no name for a header", printable(k, 64))
		}
		if strings.ContainsFunc(s.Headers[k], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return fmt.Errorf("the value of the header %q has characters that no header can have", k)
		}
		size += len(k) + len(s.Headers[k])
	}
	if size > maxHeaderBytes {
		return errors.New("its headers are too long")
	}
	return nil
}

// launch is what a server starts or reaches, as one line for a person. The
// values of its environment and headers are left out.
func (s Server) launch() string {
	if s.Transport != Stdio {
		return clip(printable(s.URL, 1024), 1024)
	}
	var words []string
	for _, k := range sortedKeys(s.Env) {
		words = append(words, shellWord(clip(k, 128))+"=…")
	}
	for _, w := range append([]string{s.Command}, s.Args...) {
		words = append(words, shellWord(w))
	}
	if s.Dir != "" {
		words = append(words, "(in "+shellWord(s.Dir)+")")
	}
	return clip(strings.Join(words, " "), 2048)
}
