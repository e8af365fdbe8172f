package clientconfig

import (
	"cmp"
	"net/url"
	"reflect"
	"strings"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// remote reads the fields of a server that is reached.
func (r *fieldReader) remote(urlKey string, s *config.Server) {
	s.URL = strings.TrimSpace(r.expanded(urlKey))
	s.Headers = r.table(r.optional(r.name(r.dialect.Fields.headers, "headers")))
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
			options, err := rawjson.Members(raw)
			if err != nil {
				r.fail("%q is not an object", "requestOptions")
			}
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

// oauth reads what an entry says of logins, in the words of any client.
func (r *fieldReader) oauth() *config.OAuth {
	key := r.name([]string{"oauth", "auth"}, "oauth")
	raw, _ := r.get(key)
	all, err := rawjson.Members(raw)
	if err != nil {
		all = nil // true, false or a kind of login: the server says the rest
	}
	in := fieldReader{members: all, x: r.x, dialect: r.dialect}
	o := &config.OAuth{
		ClientID:     in.oneOf("clientId", "client_id", "CLIENT_ID", "clientID"),
		ClientSecret: in.oneOf("clientSecret", "client_secret", "CLIENT_SECRET"),
		PrivateKey:   in.oneOf("privateKey", "private_key"),
		KeyID:        in.oneOf("keyId", "key_id", "kid"),
		MetadataURL:  in.oneOf("clientMetadataUrl", "client_metadata_url"),
		Issuer:       in.oneOf("issuer"),
		Scopes:       in.scopes("scopes", "scope"),
		RedirectURL:  in.redirect(),
	}
	// Copilot, Codex and Kiro have some beside the object.
	o.ClientID = cmp.Or(o.ClientID, r.oneOf("oauthClientId"))
	if o.Scopes == nil {
		o.Scopes = r.scopes("oauthScopes", "scopes")
	}
	switch grant := cmp.Or(in.oneOf("grantType", "grant_type"), r.oneOf("oauthGrantType")); grant {
	case "", "authorization_code":
	case "client_credentials":
		o.Machine = true
	default:
		in.fail("grantType %s is not supported; there are authorization_code and client_credentials", text.Printable(grant, 80))
	}
	if in.err != nil {
		r.fail("in %q: %w", key, in.err)
	}
	if reflect.DeepEqual(o, &config.OAuth{}) {
		return nil
	}
	return o
}

// oneOf reads a text that clients have different names for.
func (r *fieldReader) oneOf(names ...string) string {
	return r.expanded(r.name(names, names[0]))
}

// scopes reads a list, or a text with spaces.
func (r *fieldReader) scopes(names ...string) []string {
	key := r.name(names, names[0])
	raw, ok := r.get(key)
	if !ok {
		return nil
	}
	if list, err := rawjson.Items(raw); err == nil {
		return r.texts(key, list, 1)
	}
	return strings.Fields(r.expanded(key))
}

// redirect reads where the browser comes back to. An address of another host is one
// that only its client can serve.
func (r *fieldReader) redirect() string {
	if raw, ok := r.get("callbackPort"); ok {
		return "http://localhost:" + r.scalar("callbackPort", raw) + "/callback"
	}
	address := r.oneOf("redirectUri", "redirect_uri")
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.Port() == "" || u.Hostname() != "localhost" && u.Hostname() != "127.0.0.1" {
		return ""
	}
	return address
}
