package config_test

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestChecksSayWhatIsWrong(t *testing.T) {
	command := func(change func(*config.Server)) config.Server {
		s := config.Server{Transport: config.Stdio, Command: "server"}
		change(&s)
		return s
	}
	url := func(address string, headers map[string]string) config.Server {
		return config.Server{Transport: config.Remote, URL: address, Headers: headers}
	}
	oauth := func(o config.OAuth) config.Server {
		return config.Server{Transport: config.Remote, URL: "https://x/mcp", OAuth: &o}
	}
	for name, tt := range map[string]struct {
		server config.Server
		want   string
	}{
		"no command":         {command(func(s *config.Server) { s.Command = " " }), `"command" is empty`},
		"NUL in the command": {command(func(s *config.Server) { s.Command = "a\x00b" }), "NUL character"},
		"NUL in an argument": {command(func(s *config.Server) { s.Args = []string{"a\x00b"} }), "NUL character"},
		"NUL in a value":     {command(func(s *config.Server) { s.Env = map[string]string{"A": "\x00"} }), "NUL character"},
		"a variable with =":  {command(func(s *config.Server) { s.Env = map[string]string{"A=B": "c"} }), `"A=B" is no name for an environment variable`},
		"a variable of none": {command(func(s *config.Server) { s.Env = map[string]string{"": "c"} }), `"" is no name for an environment variable`},

		"no URL":                   {url("", nil), `"url" is empty`},
		"not a URL":                {url("http://s3cret\x7f@x", nil), "its URL is no URL"},
		"an open bracket":          {url("http://[s3cret", nil), "its URL is no URL"},
		"a control of latin-1":     {url("http://x/s3cret\u0085", nil), "its URL is no URL"},
		"another scheme":           {url("file:///etc/passwd", nil), `begins with "file:"; only http and https are supported`},
		"no host":                  {url("https://:443/mcp", nil), "names no host"},
		"no name for a header":     {url("https://x", map[string]string{"A B": "c"}), `"A B" is no name for a header`},
		"a header within another":  {url("https://x", map[string]string{"A": "s3cret\r\nHost: evil"}), `the value of the header "A"`},
		"a machine without id":     {oauth(config.OAuth{Machine: true, ClientSecret: "s3cret"}), `client_credentials needs "clientId"`},
		"a machine without secret": {oauth(config.OAuth{Machine: true, ClientID: "bot"}), `"clientSecret" or "privateKey"`},
		"a document in clear":      {oauth(config.OAuth{MetadataURL: "http://x/client.json"}), `"clientMetadataUrl" is not an https address`},
		"a document without path":  {oauth(config.OAuth{MetadataURL: "https://x/"}), `"clientMetadataUrl" is not an https address`},
		"a document of nobody":     {oauth(config.OAuth{MetadataURL: "https:///client.json"}), `"clientMetadataUrl" is not an https address`},
		"a document's part":        {oauth(config.OAuth{MetadataURL: "https://x/client.json#s3cret"}), `"clientMetadataUrl" is not an https address`},
		"a document of a user":     {oauth(config.OAuth{MetadataURL: "https://s3cret@x/client.json"}), `"clientMetadataUrl" is not an https address`},
		"a document nowhere":       {oauth(config.OAuth{MetadataURL: "https://[x/client.json"}), `"clientMetadataUrl" is not an https address`},
		"a browser sent nowhere":   {oauth(config.OAuth{RedirectURL: "http://[::1:80/"}), "only to http://localhost:PORT/…"},
		"a browser sent by TLS":    {oauth(config.OAuth{RedirectURL: "https://localhost:80/"}), "only to http://localhost:PORT/…"},
		"a browser with a query":   {oauth(config.OAuth{RedirectURL: "http://localhost:80/?a=s3cret"}), "only to http://localhost:PORT/…"},
		"a browser with a place":   {oauth(config.OAuth{RedirectURL: "http://localhost:80/#s3cret"}), "only to http://localhost:PORT/…"},
		"a browser sent elsewhere": {oauth(config.OAuth{RedirectURL: "http://evil.example:80/"}), "only to http://localhost:PORT/…"},
		"a browser sent to 80":     {oauth(config.OAuth{RedirectURL: "http://localhost/callback"}), "only to http://localhost:PORT/…"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tt.server.Check()
			mcptest.WantError(t, err, tt.want)
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error has a secret: %v", err)
			}
		})
	}
	for name, s := range map[string]config.Server{
		"a command": command(func(s *config.Server) { s.Args, s.Env, s.Dir = []string{"", "-y"}, map[string]string{"A": ""}, "/x" }),
		"a machine": oauth(config.OAuth{Machine: true, ClientID: "bot", PrivateKey: "key"}),
		"a client":  oauth(config.OAuth{MetadataURL: "https://x/client.json", RedirectURL: "http://localhost:7777/callback", Scopes: []string{"read"}}),
		"a URL":     url("http://localhost:8080/mcp?key=value", map[string]string{"X-Api-Key": "a\tb", "authorization": ""}),
	} {
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNamesThatCannotBeShownAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		"": "empty", " \t": "empty", strings.Repeat("ä", config.MaxNameLength+1): "longer than 128 characters", "a\x1b[31m": "control characters", "a\nb": "control characters",
	} {
		mcptest.WantError(t, config.CheckName(name), want)
	}
	for _, name := range []string{"files", "my files", "é/@x", strings.Repeat("ä", config.MaxNameLength)} {
		if err := config.CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestMissingValuesNameBothCures(t *testing.T) {
	token := config.Input{ID: "API_TOKEN"}
	asked := config.Input{ID: "my key", Asked: true, Description: "the key\x1b of the service"}
	for name, tt := range map[string]struct {
		missing []config.Input
		want    []string
	}{
		"a variable": {[]config.Input{token}, []string{"needs the variable API_TOKEN: run toolcell servers set 'my files' API_TOKEN, or start toolcell with API_TOKEN set"}},
		"an input":   {[]config.Input{asked}, []string{`needs a value for "my key" (the key of the service)`, "with TOOLCELL_INPUT_MY_KEY set"}},
		"digits":     {[]config.Input{{ID: "Key2-of.2026:é/", Asked: true}}, []string{"with TOOLCELL_INPUT_KEY2_OF_2026___ set"}},
		"both":       {[]config.Input{token, {ID: "B"}, asked}, []string{"needs the variables API_TOKEN and B and needs a value for"}},
	} {
		t.Run(name, func(t *testing.T) {
			mcptest.WantError(t, config.NewMissingValueError("my files", tt.missing), tt.want...)
		})
	}
	if err := config.NewMissingValueError("x", make([]config.Input, 10_000)); len(err.Error()) > 1000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}
