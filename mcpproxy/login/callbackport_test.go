package login

import (
	"net"
	"net/http"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestPortIsClosedAfterTheLogin(t *testing.T) {
	a := newAuthority(t)
	a.loggedIn(t)
	a.Lock()
	back := a.Queries[0].Get("redirect_uri")
	a.Unlock()
	resp, err := http.Get(back)
	if err == nil {
		resp.Body.Close()
		t.Errorf("it still answers: %s", resp.Status)
	}
}

// TestTakenPortIsReported before a browser is asked for.
func TestTakenPortIsReported(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a := newAuthority(t)
	a.oauth = &config.OAuth{ClientID: "known", RedirectURL: "http://" + l.Addr().String() + "/callback"}
	err = a.logIn(t.Context(), a.open(t.TempDir()), http.StatusUnauthorized, func(string) { t.Error("a browser is asked for") })
	mcptest.WantError(t, err, "opening a port for the browser", "in use")
}
