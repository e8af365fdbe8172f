package clientfile

import (
	"strings"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/rawjson"
)

// remote reads the fields of a server that is reached.
func (r *fieldReader) remote(urlKey string, s *config.Server) {
	s.URL = strings.TrimSpace(r.expanded(urlKey))
	s.Headers = r.table(r.name(r.dialect.Fields.headers, "headers"))
	set := func(name, value string) {
		if s.Headers == nil {
			s.Headers = map[string]string{}
		}
		s.Headers[name] = value
	}
	switch r.dialect.Client {
	case "codex":
		if _, ok := r.get("bearer_token"); ok {
			r.fail(`"bearer_token" in the file is not allowed by Codex; put the token into a variable and name it in "bearer_token_env_var"`)
			return
		}
		if name := r.text("bearer_token_env_var"); name != "" {
			set("Authorization", "Bearer "+r.variable(name))
		}
		for header, name := range r.table("env_http_headers") {
			set(header, r.variable(name))
		}
	case "continue":
		if key := r.expanded("apiKey"); key != "" {
			set("Authorization", "Bearer "+key)
		}
		if raw, ok := r.get("requestOptions"); ok {
			options, _ := rawjson.Members(raw)
			inner := fieldReader{members: options, x: r.x, dialect: r.dialect}
			for name, value := range inner.table("headers") {
				set(name, value)
			}
			if inner.err != nil {
				r.fail("%w", inner.err)
			}
		}
	}
	s.OAuth = r.oauth()
}

func (r *fieldReader) variable(name string) string {
	if r.x.raw {
		return ""
	}
	v, err := r.x.named(name)
	if err != nil {
		r.fail("%w", err)
	}
	return v
}

// oauth reads a client that was registered beforehand, in the words of any
// client.
func (r *fieldReader) oauth() *config.OAuth {
	key := r.name([]string{"oauth", "auth"}, "oauth")
	raw, ok := r.get(key)
	if !ok {
		return nil
	}
	all, err := rawjson.Members(raw)
	if err != nil {
		return nil // true, false or a kind of login: the server says the rest
	}
	in := fieldReader{members: all, x: r.x, dialect: r.dialect}
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
		r.fail("in %q: %w", key, in.err)
	}
	if o.ClientID == "" && o.ClientSecret == "" && len(o.Scopes) == 0 {
		return nil
	}
	return o
}
