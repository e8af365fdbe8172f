package mcpproxy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// everything describes the reference server of the protocol, which has a tool for each
// way to ask, if the client says that it can be asked so.
func everything(t *testing.T) config.Server {
	t.Helper()
	bin := filepath.Join(os.Getenv("TOOLCELL_TEST_NPM"), "node_modules", ".bin")
	if _, err := os.Stat(filepath.Join(bin, "mcp-server-everything")); err != nil {
		t.Skip("needs Node.js and npm: apt-get install nodejs npm, then make test")
	}
	return config.Server{
		Name: "fake", Alias: "fake", Transport: config.Stdio, Command: filepath.Join(bin, "node"), Source: "test.json",
		Args: []string{filepath.Join(bin, "mcp-server-everything"), "stdio"},
	}
}

// TestTheReferenceServerAsks with every kind of field and with an address, by a request
// and by an error; and has no such tools where nobody can be asked.
func TestTheReferenceServerAsks(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a server from npm")
	}
	p := proxyFor(t, Options{openTimeout: time.Second}, everything(t))
	asks := func() (names []string) {
		list, err := p.Tools(t.Context(), "fake")
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list {
			if tool.Name == "trigger-elicitation-request" || tool.Name == "trigger-url-elicitation" {
				names = append(names, tool.Name)
			}
		}
		return names
	}
	if got := asks(); len(got) > 0 {
		t.Errorf("without a user it has %q", got)
	}
	p.SetElicits(both)
	call := func(u *user, tool, args string) string {
		t.Helper()
		res, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: tool, Arguments: []byte(args), User: u, Can: both})
		if err != nil {
			t.Fatal(err)
		}
		return string(res.JSON)
	}
	u := entering(`{"name":"Ada","check":true,"email":"a@b.example","birthdate":"1815-12-10","integer":7,"number":2.50,"untitledSingleSelectEnum":"Ross",
		"untitledMultipleSelectEnum":["Piano","Bass"],"titledSingleSelectEnum":"hero-2","titledMultipleSelectEnum":["fish-3"],"legacyTitledEnum":"pet-2"}`)
	got := call(u, "trigger-elicitation-request", `{}`)
	for _, part := range []string{"User provided the requested information", "Ada", "hero-2", "fish-3", "pet-2"} {
		if !strings.Contains(got, part) {
			t.Errorf("the server did not get %q: %s", part, got)
		}
	}
	if got := asks(); !slices.Equal(got, []string{"trigger-elicitation-request", "trigger-url-elicitation"}) {
		t.Errorf("with a user it has %q", got)
	}
	if len(u.asked) != 1 || !strings.HasPrefix(string(u.asked[0].Schema), `{"type":"object","properties":{"name":{"title":"String"`) {
		t.Errorf("the user was asked %+v", u.asked)
	}
	if got := call(&user{reply: ElicitationReply{Action: "decline"}}, "trigger-elicitation-request", `{}`); !strings.Contains(got, "declined") {
		t.Errorf("it does not know that the user declined: %s", got)
	}
	u = &user{reply: ElicitationReply{Action: "accept"}}
	if got := call(u, "trigger-url-elicitation", `{"url":"https://login.example/a","errorPath":true}`); !strings.Contains(got, "User completed the URL elicitation flow") {
		t.Errorf("the address: %s", got)
	}
	if len(u.asked) != 2 || u.asked[0].URL != "https://modelcontextprotocol.io" || u.asked[1].URL != "https://login.example/a" {
		t.Errorf("the user was asked %+v", u.asked)
	}
}
