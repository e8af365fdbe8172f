package hostapi

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// noServers are none.
func noServers(t *testing.T) *mcpproxy.Proxy {
	t.Helper()
	p := mcpproxy.New(config.Config{}, mcpproxy.Options{})
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// answering returns a user who gives one answer to all questions, and what they were asked.
func answering(t *testing.T, choice consent.Choice) (*consent.Asker, *[]consent.Call) {
	user := consent.NewQueue(consent.Options{}).Begin(consent.AskerOptions{})
	done, ended, asked := make(chan struct{}), make(chan struct{}), []consent.Call{}
	go func() {
		defer close(ended)
		user.AnswerWith(context.Background(), done, func(_ context.Context, q consent.Question) consent.Answer {
			asked = append(asked, q.Calls...)
			return consent.Answer{Choice: choice}
		})
	}()
	t.Cleanup(func() {
		close(done)
		<-ended
	})
	return user, &asked
}

func privateStore(t *testing.T) savedtools.Store {
	t.Helper()
	store := savedtools.Open(t.TempDir(), "")
	for _, tool := range []savedtools.Tool{
		{Name: "clean", Doc: "adds numbers", Source: "def clean(): pass\n"},
		{Name: "balance", Doc: "knows that the balance is 4711", Source: "def balance(): return 4711\n", Private: []string{"bank.accounts"}},
	} {
		if err := store.Save(tool); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// TestReadingASavedToolCountsAsReadingWhatItWasMadeOf, whichever part of it is read.
func TestReadingASavedToolCountsAsReadingWhatItWasMadeOf(t *testing.T) {
	store := privateStore(t)
	for _, c := range []struct {
		method, params string
		reads          bool
	}{
		{"saved_source", `{"name":"balance"}`, true},
		{"saved_source", `{"name":"clean"}`, false},
		{"saved_tools", `{}`, true},
		{"export_tools", `{"tools":["balance"]}`, true},
		{"export_tools", `{"tools":[]}`, true},
		{"export_tools", `{"tools":["clean"]}`, false},
		{"list_tools", `{"server":"user_tools"}`, true},
		{"describe_server", `{"server":"user_tools"}`, true},
		{"query_tool_docs", `{"server":"user_tools"}`, true},
		{"query_tool_docs", `{"server":"user_tools","tool":"balance","detail":"full"}`, true},
		{"query_tool_docs", `{"server":"user_tools","tool":"clean"}`, false},
		{"search_tool_docs", `{"query":"what is the balance"}`, true},
		{"search_tool_docs", `{"query":"adds numbers"}`, false},
	} {
		taint := &consent.Taint{}
		answer, err := ask(t, newAPI(testOptions{Policy: policy.None().NewEnforcer(), Upstreams: noServers(t), Saved: store, Marks: taint}), c.method, json.RawMessage(c.params))
		if got := slices.Contains(taint.Reads(), "bank.accounts"); err != nil || got != c.reads || strings.Contains(string(answer), "4711") != c.reads {
			t.Errorf("%s %s: %v, read %v: %s", c.method, c.params, err, got, answer)
		}
	}
}

// TestParametersOfSavingAreBounded before they are decoded.
func TestParametersOfSavingAreBounded(t *testing.T) {
	store := savedtools.Open(t.TempDir(), "")
	source, _, _ := strings.Cut(`{"name":"clean","source":"def clean(): pass","doc":"*"}`, "*")
	for size, fits := range map[int]bool{maxSaving: true, maxSaving + 1: false} {
		raw := source + strings.Repeat("x", size-len(source)-2) + `"}`
		err := (&savedTools{store: store}).save(json.RawMessage(raw), nil)
		if (err == nil) != fits || err != nil && !strings.Contains(err.Error(), "the most for a source is 65536") {
			t.Errorf("%d bytes: %v", len(raw), err)
		}
	}
}

// TestSavedToolsBringNothingPrivateToHostsUnasked: a run that reaches hosts gets the
// source if the user allows it, and no documentation.
func TestSavedToolsBringNothingPrivateToHostsUnasked(t *testing.T) {
	store := privateStore(t)
	hosts := []string{"https://paste.example"}
	for choice, denied := range map[consent.Choice]error{consent.Deny: consent.ErrDenied, consent.ForCall: nil} {
		taint := &consent.Taint{}
		user, asked := answering(t, choice)
		api := newAPI(testOptions{Policy: policy.None().NewEnforcer(), Upstreams: noServers(t), Saved: store, Marks: taint, Hosts: hosts, Asker: user})
		for _, c := range []struct{ method, params string }{
			{"saved_tools", `{}`},
			{"export_tools", `{"tools":[]}`},
			{"list_tools", `{"server":"user_tools"}`},
			{"query_tool_docs", `{"server":"user_tools"}`},
			{"query_tool_docs", `{"server":"user_tools","tool":"balance","detail":"full"}`},
			{"search_tool_docs", `{"query":"balance"}`},
		} {
			if answer, err := ask(t, api, c.method, json.RawMessage(c.params)); strings.Contains(string(answer), "4711") || (err != nil) != (c.method == "export_tools") {
				t.Errorf("%s: %s, %v", c.method, answer, err)
			}
		}
		if len(taint.Reads()) > 0 || len(*asked) > 0 {
			t.Errorf("read %v, asked %v", taint.Reads(), *asked)
		}
		if _, err := ask(t, api, "saved_source", json.RawMessage(`{"name":"clean"}`)); err != nil || len(*asked) > 0 {
			t.Errorf("clean: %v, asked %v", err, *asked)
		}
		answer, err := ask(t, api, "saved_source", json.RawMessage(`{"name":"balance"}`))
		if !errors.Is(err, denied) || strings.Contains(string(answer), "4711") != (denied == nil) || slices.Contains(taint.Reads(), "bank.accounts") != (denied == nil) {
			t.Errorf("%s, %v, read %v", answer, err, taint.Reads())
		}
		if len(*asked) != 1 || !(*asked)[0].Once || !strings.Contains((*asked)[0].Reasons[0], "this run can reach https://paste.example, and the tool was saved after private data was read, from bank.accounts") {
			t.Errorf("asked %+v", *asked)
		}
	}
	if _, err := ask(t, newAPI(testOptions{Policy: policy.None().NewEnforcer(), Upstreams: noServers(t), Saved: store, Hosts: hosts}), "saved_source", json.RawMessage(`{"name":"balance"}`)); err == nil {
		t.Error("without a user it is given")
	}
}

// TestSavedToolOfAReservedNameIsNotLoaded, though an earlier toolcell or the user may have put
// it there. The user is not asked about it.
func TestSavedToolOfAReservedNameIsNotLoaded(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "global"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "global", "pd.py"), []byte("# saved by toolcell: {\"private\":[\"bank\"]}\nx\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	user, asked := answering(t, consent.ForCall)
	api := newAPI(testOptions{
		Policy: policy.None().NewEnforcer(), Upstreams: noServers(t), Saved: savedtools.Open(dir, ""),
		Hosts: []string{"https://paste.example"}, Asker: user,
	})
	if answer, err := ask(t, api, "saved_source", json.RawMessage(`{"name":"pd"}`)); !errors.Is(err, savedtools.ErrReserved) || answer != nil {
		t.Errorf("%s, %v", answer, err)
	}
	if len(*asked) > 0 {
		t.Errorf("asked %+v", *asked)
	}
}
