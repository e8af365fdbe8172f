package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// guarded is an MCP server behind a login, with the authorization server that
// gives the tokens. Its attacks are tested in mcpproxy; here the commands are.
func guarded(t *testing.T) (address string) {
	s := mcp.NewServer(&mcp.Implementation{Name: "guarded"}, nil)
	s.AddTool(&mcp.Tool{Name: "hello", InputSchema: json.RawMessage(`{"type":"object"}`)}, helloTool)
	tools := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	var mu sync.Mutex
	good := map[string]bool{}
	mux := http.NewServeMux()
	web := httptest.NewServer(mux)
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	reply := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{
			"issuer": web.URL, "authorization_endpoint": web.URL + "/authorize", "token_endpoint": web.URL + "/token",
			"registration_endpoint": web.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
		})
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"client_id": "someone", "token_endpoint_auth_method": "none"})
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"one"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, _ *http.Request) {
		token := "SECRET-" + rand.Text()
		mu.Lock()
		good["Bearer "+token] = true
		mu.Unlock()
		reply(w, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": "SECRET-" + rand.Text()})
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		ok := good[r.Header.Get("Authorization")]
		mu.Unlock()
		if !ok {
			http.Error(w, "who are you, "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		tools.ServeHTTP(w, r)
	})
	return web.URL + "/mcp"
}

func TestLoginFromAShell(t *testing.T) {
	h := firstHost(t)
	config := writeConfig(t, map[string]any{"mcpServers": map[string]any{
		"guarded": map[string]any{"type": "http", "url": guarded(t)},
		"command": map[string]any{"command": "/bin/true"},
	}})
	e := env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": config}
	serving := h.serve(t, e)
	code := "try: print(await mcp_guarded.hello())\nexcept Exception as e: print(e)"
	if r := serving.python(t, code, "guarded"); !strings.Contains(r.text, "toolcell servers login guarded") {
		t.Errorf("without a login: %s", r.text)
	}

	cmd := h.command(t, e, "servers", "login", "--no-browser", "guarded")
	var out bytes.Buffer
	cmd.Stdout = &out
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(errs)
	for said.Scan() {
		if address := strings.TrimSpace(said.Text()); strings.HasPrefix(address, "http") {
			resp, err := http.Get(address)
			if err != nil {
				t.Fatal(err)
			}
			page, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if !strings.Contains(string(page), "close this page") {
				t.Errorf("the page says %s", page)
			}
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), `logged in to "guarded", which has 1 tools`) {
		t.Fatalf("%v: %s", err, out.String())
	}
	if r := serving.python(t, code, "guarded"); !strings.Contains(r.text, "hello there") {
		t.Errorf("after the login: %s", r.text)
	}
	files, _ := filepath.Glob(filepath.Join(h.home, "state", "state", "logins", "*.json"))
	if len(files) != 1 {
		t.Fatalf("kept are %v", files)
	}
	if st, err := os.Stat(files[0]); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"logout", "guarded"}, 0, `forgot the login to "guarded"`},
		{[]string{"check", "guarded"}, 1, "toolcell servers login guarded"}, // though its tools are known
		{[]string{"logout", "guarded"}, 0, `there was no login to "guarded"`},
		{[]string{"login", "command"}, 1, "is a command and takes no login"},
		{[]string{"login"}, 2, "takes the name of one server"},
		{[]string{"login", "gaurded"}, 1, `did you mean "guarded"`},
	} {
		out, errs, code := h.run(t, e, append([]string{"servers"}, tt.args...)...)
		if code != tt.code || !strings.Contains(out+errs, tt.want) {
			t.Errorf("%v: %d %s%s", tt.args, code, out, errs)
		}
	}
	if strings.Contains(fmt.Sprint(serving.stderr), "SECRET-") {
		t.Error("a token is in the log")
	}
}

// TestLoginInABrowserOfAnotherMachine, which cannot come back to this one: the user
// brings the address that it ended at.
func TestLoginInABrowserOfAnotherMachine(t *testing.T) {
	h := firstHost(t)
	config := writeConfig(t, map[string]any{"mcpServers": map[string]any{"guarded": map[string]any{
		"type": "http", "url": guarded(t), "oauth": map[string]any{"scope": "read write"},
	}}})
	cmd := h.command(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": config}, "servers", "login", "--no-browser", "--json", "guarded")
	var out bytes.Buffer
	cmd.Stdout = &out
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ended, scopes, said := "", "", bufio.NewScanner(errs)
	paste := func(line string) {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	for said.Scan() {
		switch line := strings.TrimSpace(said.Text()); {
		case strings.HasPrefix(line, "http"):
			resp, err := browser.Get(line)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			ended = resp.Header.Get("Location")
		case strings.HasPrefix(line, "It asks for"):
			scopes = line
		case strings.HasPrefix(line, "paste the address"):
			paste("https://example.com/callback?code=x")
		case strings.HasPrefix(line, "that is not the address"):
			paste(strings.Replace(ended, "state=", "state=another", 1))
		case strings.HasPrefix(line, "That is the address of another login"):
			paste(ended)
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), `"loggedIn": true`) {
		t.Errorf("%v: %s", err, out.String())
	}
	if !strings.Contains(scopes, `"read"`) || !strings.Contains(scopes, `"write"`) {
		t.Errorf("the scopes are said so: %q", scopes)
	}
}

func helloTool(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello there"}}}, nil
}
