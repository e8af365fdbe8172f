package clientfile

import (
	"strings"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/rawjson"
)

// remote reads the fields of a server that is reached.
func (e *entry) remote(urlKey string, s *config.Server) {
	s.URL = strings.TrimSpace(e.expanded(urlKey))
	s.Headers = e.table(e.name(e.dialect.Fields.headers, "headers"))
	set := func(name, value string) {
		if s.Headers == nil {
			s.Headers = map[string]string{}
		}
		s.Headers[name] = value
	}
	switch e.dialect.Client {
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
			options, _ := rawjson.Members(raw)
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
func (e *entry) oauth() *config.OAuth {
	key := e.name([]string{"oauth", "auth"}, "oauth")
	raw, ok := e.get(key)
	if !ok {
		return nil
	}
	all, err := rawjson.Members(raw)
	if err != nil {
		return nil // true, false or a kind of login: the server says the rest
	}
	in := entry{members: all, x: e.x, dialect: e.dialect}
	o := &config.OAuth{
		ClientID:     in.expanded(in.name([]string{"clientId", "client_id", "CLIENT_ID", "clientID"}, "clientId")),
		ClientSecret: in.expanded(in.name([]string{"clientSecret", "client_secret", "CLIENT_SECRET"}, "clientSecret")),
	}
	scopes := in.name([]string{"scopes", "scope"}, "scopes")
	if raw, ok := in.get(scopes); ok {
		if list, err := rawjson.Items(raw); err == nil {
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
