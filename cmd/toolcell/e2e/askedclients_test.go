package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An sdkClient is a program of testdata that uses an official SDK.
type sdkClient struct {
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *syncBuffer
}

// sdkClients are the SDKs, and the versions of the protocol that each speaks.
var sdkClients = []struct{ name, program, era string }{
	{"Python, before 2026", "asked.py", "legacy"},
	{"Python, 2026-07-28", "asked.py", "2026-07-28"},
	{"TypeScript 1", "asked.mjs", "v1"},
	{"TypeScript 2, before 2026", "asked.mjs", "legacy"},
	{"TypeScript 2, 2026-07-28", "asked.mjs", "2026-07-28"},
}

// interpreterOf returns what runs a program of testdata: Node.js or Python, with the SDKs that
// .ci/npm.sh and .ci/pypi.sh have installed.
func interpreterOf(t *testing.T, program string) string {
	t.Helper()
	if filepath.Ext(program) == ".mjs" {
		return npmProgram(t, "node")
	}
	python := filepath.Join(os.Getenv("TOOLCELL_TEST_PYPI"), "bin", "python")
	if _, err := os.Stat(python); err != nil {
		t.Skip("needs the packages of .ci/pypi.sh: make test-pypi")
	}
	return python
}

// startSDK starts a client, and that starts toolcell. Its user makes the choice in each
// form.
func startSDK(t *testing.T, h *host, e env, program, era, choice string) *sdkClient {
	t.Helper()
	serve := h.command(t, e, "serve")
	path, err := filepath.Abs(filepath.Join("testdata", program))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(interpreterOf(t, program), append([]string{path, era, choice}, serve.Args...)...)
	cmd.Dir, cmd.SysProcAttr = serve.Dir, serve.SysProcAttr
	cmd.Env = append(slices.Clone(serve.Env), "PACKAGES="+filepath.Join(os.Getenv("TOOLCELL_TEST_NPM"), "node_modules"))
	c := &sdkClient{stderr: &syncBuffer{}}
	cmd.Stderr = c.stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	t.Cleanup(func() {
		c.in.Close() // the client then ends its server
		_, _ = io.Copy(io.Discard, c.out)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("stderr of the client and toolcell:\n%s", c.stderr)
		}
	})
	return c
}

// call has the client call run_python, and returns its forms so far too.
func (c *sdkClient) call(t *testing.T, args map[string]any) (r reply, forms []string) {
	t.Helper()
	if err := json.NewEncoder(c.in).Encode(args); err != nil {
		t.Fatal(err)
	}
	line, err := c.out.ReadString('\n')
	var answer struct {
		Text   string
		Fields map[string]any
		Forms  []string
	}
	if err != nil || json.Unmarshal([]byte(line), &answer) != nil {
		t.Fatalf("%v: %s\n%s", err, line, c.stderr)
	}
	return reply{text: answer.Text, fields: answer.Fields}, answer.Forms
}

// TestOfficialSDKsAreAsked has clients of the official SDKs answer forms.
func TestOfficialSDKsAreAsked(t *testing.T) {
	for _, sdk := range sdkClients {
		for _, tt := range []struct {
			choice, want string
			forms        int
		}{
			{"call", "t0, t1, t2", 3},
			{"run", "t0, t1, t2", 1},
			{"decline", "denied by the user, denied by the user, denied by the user", 3},
		} {
			t.Run(sdk.name+"/"+tt.choice, func(t *testing.T) {
				t.Parallel()
				h, e := asking(t)
				r, forms := startSDK(t, h, e, sdk.program, sdk.era, tt.choice).call(t, creates(3))
				r.want(t, tt.want)
				if len(forms) != tt.forms || !strings.Contains(forms[0], `arguments: {"title":"t0"}`) {
					t.Errorf("asked %d times, want %d: %q", len(forms), tt.forms, forms)
				}
			})
		}
	}
}

// TestOfficialSDKsAreNotAskedTooOften: since 2026-07-28 they give up after ten rounds of
// one call, and before they count none.
func TestOfficialSDKsAreNotAskedTooOften(t *testing.T) {
	for _, sdk := range sdkClients {
		t.Run(sdk.name, func(t *testing.T) {
			t.Parallel()
			h, e := asking(t)
			r, forms := startSDK(t, h, e, sdk.program, sdk.era, "call").call(t, creates(12))
			if sdk.era == "2026-07-28" {
				approvalID(t, r)
				if len(forms) != 9 {
					t.Errorf("asked %d times, want 9", len(forms))
				}
				return
			}
			if r.status() != "success" || len(forms) != 12 {
				t.Errorf("asked %d times: %s", len(forms), r.text)
			}
		})
	}
}

// TestOfficialSDKsWithoutForms have their users answer in a terminal.
func TestOfficialSDKsWithoutForms(t *testing.T) {
	for _, sdk := range sdkClients {
		t.Run(sdk.name, func(t *testing.T) {
			t.Parallel()
			h, e := asking(t)
			c := startSDK(t, h, e, sdk.program, sdk.era, "none")
			r, _ := c.call(t, creates(1))
			id := approvalID(t, r)
			p := inOtherTerminal(t, h.command(t, e, "approvals", "approve", id))
			p.sees("To allow this call, type ")
			p.enters(p.sees(":")+"\r", "approved: "+id)
			r, _ = c.call(t, map[string]any{"code": "", "session": id})
			r.want(t, "t0")

			r, _ = c.call(t, creates(1))
			id = approvalID(t, r)
			if _, errs, code := h.run(t, e, "approvals", "deny", id); code != 0 {
				t.Fatal(errs)
			}
			r, forms := c.call(t, map[string]any{"code": "", "session": id})
			r.want(t, "denied by the user")
			if len(forms) > 0 {
				t.Errorf("a client without forms was asked by them: %q", forms)
			}
		})
	}
}

// approvalID returns the session to come back with.
func approvalID(t *testing.T, r reply) string {
	t.Helper()
	approval, _ := r.fields["approval"].(map[string]any)
	id, _ := approval["id"].(string)
	if r.status() != "approval_needed" || id == "" {
		t.Fatalf("no approval is needed: %s", r.text)
	}
	return id
}

// TestInspectorShowsNoForms: its command line cannot be asked, in neither era of the
// protocol, and prints what the user has to do.
func TestInspectorShowsNoForms(t *testing.T) {
	_, e := asking(t)
	for _, era := range []string{"legacy", "modern"} {
		var pass []string
		for k, v := range e {
			pass = append(pass, "-e", k+"="+v)
		}
		out := inspectWith(t, append([]string{"--protocol-era", era}, pass...), "--method", "tools/call", "--tool-name", "run_python",
			"--tool-arg", `code=await mcp_github.create_issue(title="t")`, "--tool-arg", `servers=["github"]`)
		if !strings.Contains(out, `"status": "approval_needed"`) || !strings.Contains(out, `"tool": "create_issue"`) {
			t.Errorf("%s: got %s", era, out)
		}
	}
}

// TestServersOfThePythonSDKAsk as they do where the client is connected to them directly.
func TestServersOfThePythonSDKAsk(t *testing.T) {
	program, err := filepath.Abs("testdata/asking.py")
	if err != nil {
		t.Fatal(err)
	}
	python := interpreterOf(t, program)
	e := env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": writeConfig(t, map[string]any{"mcpServers": map[string]any{
		"stdio":     map[string]any{"command": python, "args": []string{program}},
		"sessions":  map[string]any{"type": "http", "url": serveHTTP(t, python, program)},
		"stateless": map[string]any{"type": "http", "url": serveHTTP(t, python, program, "stateless")},
	}})}
	h := firstHost(t)
	for _, sdk := range sdkClients {
		t.Run(sdk.name, func(t *testing.T) {
			t.Parallel()
			c := startSDK(t, h, e, sdk.program, sdk.era, "yes")
			want := 0
			for _, server := range []string{"stdio", "sessions", "stateless"} {
				tools := []string{"before", "during", "before"}
				if sdk.era == "2026-07-28" || server == "stateless" {
					tools = []string{"before"} // the other has no way to reach such a client
				}
				for _, tool := range tools {
					r, forms := c.call(t, map[string]any{"servers": []string{server}, "code": "print(await mcp_" + server + "." + tool + "())"})
					r.want(t, "yes")
					if want++; len(forms) != want || !strings.Contains(strings.ToLower(forms[want-1]), tool+"?") {
						t.Errorf("%s.%s: the forms are %q", server, tool, forms)
					}
				}
			}
		})
	}
}

// serveHTTP starts a program of testdata that serves MCP over HTTP at the port that it is
// given, and returns its address.
func serveHTTP(t *testing.T, command, program string, args ...string) string {
	t.Helper()
	port := strconv.Itoa(freePort(t))
	address := "127.0.0.1:" + port
	c := exec.Command(command, append([]string{program, port}, args...)...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return "http://" + address + "/mcp"
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
