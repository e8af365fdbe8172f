package mcpproxy

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// authority is an authorization server with the MCP server that it guards. As clients with
// a secret of their own it knows one.
type authority struct {
	*mcptest.Authority
	t      *testing.T
	Server config.Server

	opaque bool   // asks for a login only when a tool is called
	modern bool   // knows no initialize, and lets it through
	needs  string // the scope that a call needs
}

func newAuthority(t *testing.T) *authority {
	a := &authority{Authority: mcptest.NewAuthority(t), t: t}
	a.Server = config.Server{Name: "fake", Alias: "fake", Transport: config.Remote, URL: a.URL + "/mcp", Source: "test.json"}
	a.Refuse = a.refuseMachine
	tools := answers(nil)
	a.Mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) { a.guard(w, r, tools) })
	return a
}

func (a *authority) refuseMachine(w http.ResponseWriter, r *http.Request) bool {
	id, secret, _ := r.BasicAuth()
	if r.Form.Get("grant_type") != "client_credentials" || id == "bot" && secret == "bot-s3cret" && r.Form.Get("resource") == a.Server.URL {
		return false
	}
	mcptest.Respond(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
	return true
}

// guard lets requests with a good token through.
func (a *authority) guard(w http.ResponseWriter, r *http.Request, next http.Handler) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	scope, good := a.Scope(token)
	scoped := a.needs == "" || slices.Contains(strings.Fields(scope), a.needs)
	if a.modern && strings.Contains(string(body), `"initialize"`) {
		http.Error(w, "Missing MCP-Protocol-Version header", http.StatusBadRequest)
		return
	}
	if good && !scoped && strings.Contains(string(body), "tools/call") {
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+a.needs+`"`)
		http.Error(w, "not with this token", http.StatusForbidden)
		return
	}
	if !good && (!a.opaque || strings.Contains(string(body), "tools/")) {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", resource_metadata="`+a.URL+`/.well-known/oauth-protected-resource/mcp"`)
		http.Error(w, "token "+token+" is not good", http.StatusUnauthorized)
		return
	}
	next.ServeHTTP(w, r)
}

func (a *authority) logIn(p *Proxy) error {
	return p.Login(a.t.Context(), "fake", func(address string) { mcptest.Browse(a.t, address) })
}
