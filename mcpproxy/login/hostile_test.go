package login

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
	"github.com/toolcell/toolcell/mcpproxy/redact"
)

// TestHostileMetadataIsRefused before a browser is asked for or anything is posted.
func TestHostileMetadataIsRefused(t *testing.T) {
	server := func(name string, value any) func(*authority) {
		return func(a *authority) { a.Metadata = func(m map[string]any) { m[name] = value } }
	}
	resource := func(name string, value any) func(*authority) {
		return func(a *authority) { a.Resource = func(m map[string]any) { m[name] = value } }
	}
	for name, tt := range map[string]struct {
		attack func(*authority)
		want   string
	}{
		"tokens for another server":          {resource("resource", "https://bank.example/mcp"), "that of another resource"},
		"tokens for no address":              {resource("resource", "https://[::1/mcp"), "that of another resource"},
		"no authorization server":            {resource("authorization_servers", []string{}), "names no authorization server"},
		"an authorization server in clear":   {resource("authorization_servers", []string{"http://login.example"}), "is not an https address"},
		"a file for an authorization server": {resource("authorization_servers", []string{"file:///etc/passwd"}), "is no address"},
		"another issuer":                     {server("issuer", "https://login.example"), "does not match issuer"},
		"no PKCE":                            {server("code_challenge_methods_supported", nil), "PKCE"},
		"PKCE that protects nothing":         {server("code_challenge_methods_supported", []string{"plain"}), "PKCE"},
		"codes in clear":                     {server("token_endpoint", "http://login.example/token"), "is not an https address"},
		"a script to open":                   {server("authorization_endpoint", "javascript:alert(1)"), "is no address"},
		"a file to open":                     {server("authorization_endpoint", "file://localhost/etc/passwd"), "is not an https address"},
		"a terminal to write to":             {server("authorization_endpoint", "https://login.example/\x1b]0;x\x07"), "is no address"},
		"a flag to open":                     {server("authorization_endpoint", "--version"), "is no address"},
		"nothing to open":                    {server("authorization_endpoint", ""), "names no address to log in at"},
		"a state of its own":                 {server("authorization_endpoint", "https://login.example/authorize?state=known"), `has the parameter "state"`},
		"a redirect of its own":              {server("authorization_endpoint", "https://login.example/authorize?redirect_uri=https://evil.example"), `has the parameter "redirect_uri"`},
		"no proof of the code":               {server("authorization_endpoint", "https://login.example/authorize?code_challenge_method=plain"), `"code_challenge_method"`},
		"registration in clear":              {server("registration_endpoint", "http://login.example/register"), "is not an https address"},
		"a huge document":                    {server("more", strings.Repeat("x", 2<<20)), "is larger than"},
		"a huge document of the server":      {resource("more", strings.Repeat("x", 2<<20)), "is larger than"},
		"nonsense":                           {server("issuer", 7), "reading"},
		"codes to a part of an address":      {func(a *authority) { server("token_endpoint", a.URL+"/token#part")(a) }, "is no address"},
		"a part of an authorization server": {func(a *authority) {
			resource("authorization_servers", []string{a.URL + "/#part"})(a)
			server("issuer", a.URL+"/#part")(a)
		}, "the authorization server: "},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			tt.attack(a)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := a.logIn(ctx, a.open(t.TempDir()), http.StatusUnauthorized, func(string) { t.Error("a browser is asked for"); cancel() })
			mcptest.WantError(t, err, tt.want)
			if len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\x1b\x07") {
				t.Errorf("%d bytes: %q", len(err.Error()), err)
			}
			if got := a.requests(); len(got) > 0 {
				t.Errorf("posted: %v", got)
			}
		})
	}
}

// TestAnswerOfAnotherIssuerIsRefused (mix-up, RFC 9207), and its code goes nowhere.
func TestAnswerOfAnotherIssuerIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		promised bool
		iss      string // %s is the issuer
		want     string // empty: the login works
	}{
		"another":              {false, "https://evil.example", "does not match expected issuer"},
		"with a slash":         {true, "%s/", "does not match expected issuer"},
		"promised and missing": {true, "", "does not say who it is of"},
		"right":                {true, "%s", ""},
		"right, not promised":  {false, "%s", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			a.Metadata = func(m map[string]any) { m["authorization_response_iss_parameter_supported"] = tt.promised }
			a.Iss = strings.ReplaceAll(tt.iss, "%s", a.URL)
			err := a.logIn(t.Context(), a.open(t.TempDir()), http.StatusUnauthorized, browser(t))
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			mcptest.WantError(t, err, tt.want)
			if got := a.requests(); len(got) > 0 {
				t.Errorf("the code was posted: %v", got)
			}
		})
	}
}

// TestServerOfTheInternetLeadsToNoInternalAddress: metadata and redirects could have
// us ask the services of this host, its network, or its cloud.
func TestServerOfTheInternetLeadsToNoInternalAddress(t *testing.T) {
	var reached atomic.Int32
	internal := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer internal.Close()
	const server = "https://198.97.190.53/mcp" // an address of the Internet, which nothing here connects to
	outside := newClient(server)
	for _, address := range []string{internal.URL, strings.Replace(internal.URL, "127.0.0.1", "localhost", 1)} {
		resp, err := outside.Get(address)
		if err == nil {
			resp.Body.Close()
		}
		mcptest.WantError(t, err, "must not lead")
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("reached %d times", n)
	}
	resp, err := newClient("http://127.0.0.1:1/mcp").Get(internal.URL) // a server of this host may
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	guard := newDialGuard(server)
	for address, want := range map[string]bool{
		"10.1.2.3:443": true, "192.168.0.1:80": true, "169.254.169.254:80": true, "168.63.129.16:80": true, "100.64.1.1:443": true, "[::1]:443": true,
		"[fd00::1]:443": true, "[::ffff:127.0.0.1]:80": true, "[64:ff9b::a00:1]:80": true, "[2002:a00:1::]:80": true, "0.0.0.0:80": true,
		"192.0.1.7:443": false, "[2606:4700::1]:443": false, "[64:ff9b::c000:107]:443": false,
	} {
		if err := guard.checkAddress("tcp", address, nil); (err != nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestPublicAddressOfThisHostIsInternal: what listens on one may trust this host, and
// the kernel alone knows which addresses are routed here.
func TestPublicAddressOfThisHostIsInternal(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for server, ok := range map[string]bool{"https://198.97.190.53/mcp": false, "http://localhost:1/mcp": true} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got, err := newDialGuard(server).checkConn(c); (err == nil) != ok || (got != nil) != ok {
			t.Errorf("%s: %v", server, err)
		}
		if _, err := c.Write([]byte("x")); (err == nil) != ok {
			t.Errorf("%s: writing to the connection: %v", server, err)
		}
	}
}

// TestRedirectsOfDocumentsStaySafe: to clear text none is followed, and none for ever.
func TestRedirectsOfDocumentsStaySafe(t *testing.T) {
	var asked atomic.Int32
	var to string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, to, http.StatusFound)
	}))
	defer server.Close()
	entry := config.Server{Name: "fake", URL: server.URL + "/mcp"}
	for _, to = range []string{"http://login.example/metadata", "ftp://login.example/", server.URL + "/round"} {
		asked.Store(0)
		s := NewStore(entry, t.TempDir(), redact.New(entry))
		err := s.LogIn(t.Context(), &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{}, Body: http.NoBody}, "",
			func(string) { t.Error("a browser is asked for") })
		mcptest.WantError(t, err, "redirects a request that must not be redirected")
		if n := asked.Load(); n > 3*(maxRedirects+1) {
			t.Errorf("%s: asked %d times", to, n)
		}
	}
}

// TestHugeRegistrationIsCutShort: the SDK puts all of a bad answer into its error.
func TestHugeRegistrationIsCutShort(t *testing.T) {
	huge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		for range 1000 {
			fmt.Fprint(w, strings.Repeat("\x1b[31m", 400))
		}
	}))
	defer huge.Close()
	a := newAuthority(t)
	a.Metadata = func(m map[string]any) { m["registration_endpoint"] = huge.URL }
	err := a.logIn(t.Context(), a.open(t.TempDir()), http.StatusUnauthorized, func(string) { t.Error("a browser is asked for") })
	mcptest.WantError(t, err, "registering with the authorization server", `"clientId"`)
	if len(err.Error()) > 1000 || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%d bytes: %.300q", len(err.Error()), err)
	}
}

// TestMetadataAsServersHaveIt: what is not quite as RFC 9728 has it, and harmless.
func TestMetadataAsServersHaveIt(t *testing.T) {
	for name, tt := range map[string]struct {
		published string // resource, at the path of the server
		root      string // and at the root, if it is there
		want      string // the resource that is asked for; %s is the origin
	}{
		"a slash more":                   {"%s/mcp/", "", "%s/mcp/"},
		"the host, at the root":          {"", "%s", "%s"},
		"the host with a slash":          {"", "%s/", "%s/"},
		"the host, not at the root":      {"%s", "", "%s/mcp"}, // a path of a shared host could say so
		"another path":                   {"%s/other", "", "%s/mcp"},
		"the host, at both":              {"%s", "%s", "%s"},
		"an error, and none at the root": {"500", "", "%s/mcp"},
		"an error, and one at the root":  {"500", "%s", "%s"},
		"a page for people":              {"<html>", "", "%s/mcp"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			var front *httptest.Server
			serve := func(w http.ResponseWriter, resource string) {
				switch resource {
				case "":
					http.Error(w, "none", http.StatusNotFound)
				case "500":
					http.Error(w, "down", http.StatusInternalServerError)
				case "<html>":
					fmt.Fprint(w, "<html><body>Welcome</body></html>")
				default:
					mcptest.Respond(w, 200, map[string]any{"resource": strings.ReplaceAll(resource, "%s", front.URL), "authorization_servers": []string{front.URL}})
				}
			}
			front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/.well-known/oauth-protected-resource/mcp":
					serve(w, tt.published)
				case "/.well-known/oauth-protected-resource":
					serve(w, tt.root)
				default:
					a.Mux.ServeHTTP(w, r)
				}
			}))
			defer front.Close()
			a.Metadata = func(m map[string]any) {
				m["issuer"], m["authorization_endpoint"], m["token_endpoint"], m["registration_endpoint"] = front.URL, front.URL+"/authorize", front.URL+"/token", front.URL+"/register"
			}
			entry := config.Server{Name: "fake", URL: front.URL + "/mcp"}
			err := NewStore(entry, t.TempDir(), redact.New(entry)).LogIn(t.Context(), &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody},
				"", browser(t))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := a.requests()[0].Get("resource"), strings.ReplaceAll(tt.want, "%s", front.URL); got != want {
				t.Errorf("asked for %q, want %q", got, want)
			}
		})
	}
}
