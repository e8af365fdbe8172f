package login

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// TestAnswersToPostsAreBounded: libraries read all of them, and more than we take.
func TestAnswersToPostsAreBounded(t *testing.T) {
	padded := func(w http.ResponseWriter, status, size int, value string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, value, strings.Repeat(" ", size-len(value)))
	}
	for size, want := range map[int]string{maxAnswer: "", maxAnswer + 1: "the answer is larger than 256 KiB"} {
		token, client := newAuthority(t), newAuthority(t)
		token.Refuse = func(w http.ResponseWriter, _ *http.Request) bool {
			padded(w, http.StatusOK, size, `{"access_token":"t"}`)
			return true
		}
		client.Metadata = func(m map[string]any) { m["registration_endpoint"] = client.URL + "/enroll" }
		client.Mux.HandleFunc("/enroll", func(w http.ResponseWriter, _ *http.Request) {
			padded(w, http.StatusCreated, size, `{"client_id":"enrolled"}`)
		})
		for name, a := range map[string]*authority{"a token": token, "a registration": client} {
			err := a.logIn(t.Context(), a.open(t.TempDir()), http.StatusUnauthorized, browser(t))
			if want != "" {
				mcptest.WantError(t, err, want)
			} else if err != nil {
				t.Errorf("%s of %d bytes: %v", name, size, err)
			}
		}
	}
}

func TestHugeHeadersAreRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 2<<20))
	}))
	defer server.Close()
	resp, err := newClient(server.URL).Get(server.URL)
	if err == nil {
		resp.Body.Close()
	}
	mcptest.WantError(t, err, "server response headers exceeded")
}

// TestProxyMayBeOfThisHost: it is the user's, and no server leads there. Package http reads
// its address once, so another process does.
func TestProxyMayBeOfThisHost(t *testing.T) {
	const server, child = "https://198.97.190.53/mcp", "LOGIN_TEST_CHILD" // an address of the Internet
	if os.Getenv(child) != "" {
		if resp, err := newClient(server).Get(server); err == nil {
			resp.Body.Close()
		}
		return
	}
	asked := make(chan string, 8)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.Host
		http.Error(w, "none here", http.StatusBadGateway)
	}))
	defer proxy.Close()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=1", "HTTPS_PROXY="+proxy.URL, "https_proxy=", "NO_PROXY=", "no_proxy=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	select {
	case got := <-asked:
		if got != "CONNECT 198.97.190.53:443" {
			t.Errorf("the proxy is asked to %s", got)
		}
	default:
		t.Error("the proxy is not asked")
	}
}

// TestFaultsOfAConnectionAreContained: package net calls in goroutines of its own, where a
// panic would end the process.
func TestFaultsOfAConnectionAreContained(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, point := range []string{"connecting to an authorization server", "checking an address"} {
		t.Run(point, func(t *testing.T) {
			contain.Inject(t, func(at string) bool { return at == point })
			resp, err := newClient(server.URL).Get(server.URL)
			if err == nil {
				resp.Body.Close()
			}
			mcptest.WantError(t, err, "an internal error in toolcell while "+point)
		})
	}
}
