//nolint:bodyclose // exchange closes them
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// fakeTokens is a TokenSource that records what it is asked and told.
type fakeTokens struct {
	token   func(rejected string) (string, error)
	refused func() (again bool, err error)
	told    []string
}

func (f *fakeTokens) Token(_ context.Context, rejected string) (string, error) {
	f.told = append(f.told, "token, rejected "+rejected)
	return f.token(rejected)
}

func (f *fakeTokens) Refused(_ context.Context, token string, answer *http.Response) (bool, error) {
	f.told = append(f.told, fmt.Sprintf("refused %s, %d", token, answer.StatusCode))
	return f.refused()
}

func TestTokensAreRenewedOnce(t *testing.T) {
	renew := func(rejected string) (string, error) {
		return map[string]string{"": "old", "old": "new"}[rejected], nil
	}
	none := func(string) (string, error) { return "", nil }
	for name, tt := range map[string]struct {
		accepts string
		token   func(string) (string, error)
		refused func() (bool, error)
		sent    []string // the Authorization of each request
		told    []string
		want    string // the error
	}{
		"accepted": {
			accepts: "Bearer old", token: renew,
			sent: []string{"Bearer old"}, told: []string{"token, rejected "},
		},
		"expired": {
			accepts: "Bearer new", token: renew,
			sent: []string{"Bearer old", "Bearer new"}, told: []string{"token, rejected ", "token, rejected old"},
		},
		"the new one is refused": {
			token: renew, refused: func() (bool, error) { return false, nil },
			sent: []string{"Bearer old", "Bearer new"}, told: []string{"token, rejected ", "token, rejected old", "refused new, 401"},
			want: "servers login fake",
		},
		"another one is refused too": {
			token: renew, refused: func() (bool, error) { return true, nil },
			sent: []string{"Bearer old", "Bearer new", "Bearer new"},
			told: []string{"token, rejected ", "token, rejected old", "refused new, 401", "token, rejected old"},
			want: "servers login fake",
		},
		"none": {
			token: none, refused: func() (bool, error) { return false, errors.New("log in, please") },
			sent: []string{""}, told: []string{"token, rejected ", "refused , 401"},
			want: "log in, please",
		},
		"cannot be renewed": {
			token: func(string) (string, error) { return "", errors.New("the token expired") },
			told:  []string{"token, rejected "},
			want:  "the token expired",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if tt.accepts == "" || r.Header.Get("Authorization") != tt.accepts {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				mcptest.Respond(w, http.StatusOK, json.RawMessage(`{"jsonrpc":"2.0","id":1,"result":{}}`))
			})
			tokens := &fakeTokens{token: tt.token, refused: tt.refused}
			_, _, err := exchange(soon(t), linkWith(t, config.HTTP, server.URL, tokens), http.MethodPost, ping)
			if tt.want == "" && err != nil {
				t.Error(err)
			} else if tt.want != "" {
				mcptest.WantError(t, err, tt.want)
				if failed, ok := errors.AsType[*Error](err); !ok || !failed.IsCurable() {
					t.Errorf("the user cannot log in at %#v", err)
				}
			}
			var sent []string
			for _, r := range server.requests() {
				sent = append(sent, r.header.Get("Authorization"))
				if r.body != ping {
					t.Errorf("sent %q", r.body)
				}
			}
			if fmt.Sprintf("%q", sent) != fmt.Sprintf("%q", tt.sent) || fmt.Sprintf("%q", tokens.told) != fmt.Sprintf("%q", tt.told) {
				t.Errorf("sent %q, told %q", sent, tokens.told)
			}
		})
	}
}

// TestDiscoverThatWantsALoginFailsTheHandshake, whatever the older handshake comes to.
func TestDiscoverThatWantsALoginFailsTheHandshake(t *testing.T) {
	for name, tt := range map[string]struct {
		method  string
		refused error
		want    string
	}{
		"said by the status": {message.MethodDiscover, nil, "servers login fake"},
		"said by the tokens": {message.MethodDiscover, errors.New("log in, please"), "log in, please"},
		"another method":     {"initialize", nil, "the other error"},
	} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
		tokens := &fakeTokens{token: func(string) (string, error) { return "", nil }, refused: func() (bool, error) { return false, tt.refused }}
		r := linkWith(t, config.HTTP, server.URL, tokens)
		_, _, err := exchange(soon(t), r, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"`+tt.method+`"}`)
		if err == nil || isPanic(err) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.Fail(errors.New("x"), errors.New("the other error")); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: the handshake fails with %v, want %s", name, err, tt.want)
		}
	}
}

func TestNothingIsSentToAnotherHost(t *testing.T) {
	other, server := serve(t, nil), serve(t, nil)
	req, err := http.NewRequestWithContext(soon(t), http.MethodPost, other.URL, strings.NewReader(ping))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := linkTo(t, server.URL, map[string]string{"X-Api-Key": "s3cret"}).RoundTrip(req)
	if err == nil {
		resp.Body.Close()
	}
	mcptest.WantError(t, err, "wants messages to be sent to another host, "+other.URL+", which is refused")
	if got := append(other.requests(), server.requests()...); len(got) > 0 {
		t.Errorf("sent %v", got)
	}
}

func TestRedirectsKeepTheMessage(t *testing.T) {
	for name, tt := range map[string]struct {
		status   int
		location string
		sent     []string // paths
		want     []string
	}{
		"kept":       {http.StatusTemporaryRedirect, "/new", []string{"/", "/new"}, nil},
		"lost":       {http.StatusFound, "/new", []string{"/"}, []string{"/new in a way that loses the message", "test.json"}},
		"no address": {http.StatusTemporaryRedirect, "http://[::1", []string{"/"}, []string{"redirects to what is no address"}},
	} {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				w.Header().Set("Location", tt.location)
				w.Header().Set("Connection", "close") // package http sends again over an old connection
				w.WriteHeader(tt.status)
				return
			}
			mcptest.Respond(w, http.StatusOK, json.RawMessage(`{"jsonrpc":"2.0","id":1,"result":{}}`))
		})
		_, _, err := exchange(soon(t), linkTo(t, server.URL, nil), http.MethodPost, ping)
		if tt.want != nil {
			mcptest.WantError(t, err, tt.want...)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var sent []string
		for _, r := range server.requests() {
			sent = append(sent, r.path)
			if r.body != ping {
				t.Errorf("%s: sent %q to %s", name, r.body, r.path)
			}
		}
		if fmt.Sprint(sent) != fmt.Sprint(tt.sent) {
			t.Errorf("%s: sent to %v, want %v", name, sent, tt.sent)
		}
	}
}

// TestHeadersOfAServerAreBounded: package http takes 10 MiB of them.
func TestHeadersOfAServerAreBounded(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 1<<20+8<<10))
		mcptest.Respond(w, http.StatusOK, json.RawMessage(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	})
	_, _, err := exchange(soon(t), linkTo(t, server.URL, nil), http.MethodPost, ping)
	mcptest.WantError(t, err, "broke off", "headers exceeded 1048576 bytes")
}

func TestEntryDoesNotSayWhatAnswersItAccepts(t *testing.T) {
	server := serve(t, nil)
	r := linkTo(t, server.URL, map[string]string{"accept": "text/html", "X-A": "b"})
	if _, _, err := exchange(soon(t), r, http.MethodPost, ping, "Accept", "application/json"); err != nil {
		t.Fatal(err)
	}
	if h := server.requests()[0].header; h.Get("Accept") != "application/json" || h.Get("X-A") != "b" {
		t.Errorf("sent %v", h)
	}
}
