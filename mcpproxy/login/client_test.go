package login

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// TestClientOfTheEntryComesBeforeRegistration: the service may allow it more than others.
func TestClientOfTheEntryComesBeforeRegistration(t *testing.T) {
	a := newAuthority(t)
	a.oauth = &config.OAuth{ClientID: "known"}
	a.loggedIn(t)
	a.Lock()
	defer a.Unlock()
	if got := a.Queries[0].Get("client_id"); got != "known" || a.Forms[0].Get("client_id") != "known" {
		t.Errorf("the client is %q, %v", got, a.Forms[0])
	}
}

// TestServerWithoutRegistrationAsksForAClient of the entry, which is all that helps.
func TestServerWithoutRegistrationAsksForAClient(t *testing.T) {
	a := newAuthority(t)
	a.Metadata = func(m map[string]any) { delete(m, "registration_endpoint") }
	err := a.logIn(t.Context(), a.open(t.TempDir()), http.StatusUnauthorized, func(string) { t.Error("a browser is asked for") })
	mcptest.WantError(t, err, "the authorization server registers no clients by itself", `"clientId"`, `"clientSecret"`)
}

// TestClientRegistersAsTheServerTakesIt: without a secret, where that is possible.
func TestClientRegistersAsTheServerTakesIt(t *testing.T) {
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("enrolled:s3cret"))
	for name, tt := range map[string]struct {
		supported           []string
		method, basic, post string
	}{
		"unsaid":           {nil, "none", "", ""},
		"none":             {[]string{"client_secret_basic", "client_secret_post", "none"}, "none", "", ""},
		"in a header":      {[]string{"private_key_jwt", "client_secret_basic"}, "client_secret_basic", basic, ""},
		"in the form":      {[]string{"client_secret_basic", "client_secret_post"}, "client_secret_post", "", "s3cret"},
		"nothing of these": {[]string{"private_key_jwt"}, "none", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			a.Metadata = func(m map[string]any) {
				m["registration_endpoint"], m["token_endpoint_auth_methods_supported"] = a.URL+"/enroll", tt.supported
			}
			methods := make(chan string, 1)
			a.Mux.HandleFunc("/enroll", func(w http.ResponseWriter, r *http.Request) {
				var wanted struct {
					Method string `json:"token_endpoint_auth_method"`
				}
				if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil {
					t.Error(err)
				}
				methods <- wanted.Method
				client := map[string]any{"client_id": "enrolled", "token_endpoint_auth_method": wanted.Method}
				if wanted.Method != "none" {
					client["client_secret"] = "s3cret"
				}
				mcptest.Respond(w, http.StatusCreated, client)
			})
			a.loggedIn(t)
			if got := <-methods; got != tt.method {
				t.Errorf("registered with %q, want %q", got, tt.method)
			}
			a.Lock()
			defer a.Unlock()
			if a.Basic[0] != tt.basic || a.Forms[0].Get("client_secret") != tt.post {
				t.Errorf("sent %q and %v", a.Basic[0], a.Forms[0])
			}
		})
	}
}
