package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestCredentialsStayOutside: code finds a placeholder, the host gets the credential, and
// nothing that comes back has it.
func TestCredentialsStayOutside(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	secret := newSecret()
	e := s.env(`
allow = ["token.test", "other.test", "http://token.test"]
via = "env"
[[network.credential]]
host = "token.test"
header = "Authorization"
value = "Bearer ${env:TOOLCELL_TEST_TOKEN}"
env = "API_TOKEN"
`, env{"TOOLCELL_TEST_TOKEN": secret, "TOOLCELL_LOG_LEVEL": "DEBUG"})
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		c := h.serve(t, e)
		var all strings.Builder
		run := func(code string) reply {
			r := c.call(t, map[string]any{"code": code, "servers": []string{"https://token.test", "https://other.test"}, "timeout": seconds(60)})
			fmt.Fprint(&all, r.text, r.fields)
			return r
		}
		const get = `
import os, re, urllib.error, urllib.request
def get(url, **headers):
    request = urllib.request.Request(url, headers={"Authorization": "Bearer " + os.environ["API_TOKEN"], **headers})
    try: return urllib.request.urlopen(request).read().decode()
    except urllib.error.HTTPError as e: return str(e)
print(bool(re.fullmatch("tc_[A-Z2-7]{32}", os.environ["API_TOKEN"])))
def shown(text): print([v.split()[-1] == os.environ["API_TOKEN"] for v in re.findall("(?m)^Authorization: (.*?)\r?$", text)])
`
		run(get+"shown(get('https://token.test/x'))").want(t, "True\n[True]")
		if got := s.credential("token.test"); got != "Bearer "+secret {
			t.Errorf("the host got %q", got)
		}
		// Elsewhere, by itself or by a redirect, and without TLS, it is a placeholder.
		for url, host := range map[string]string{
			"https://other.test/x": "other.test", "https://token.test/to?url=https://other.test/y": "other.test",
			"http://token.test/x": "token.test", "https://token.test/to?url=http://token.test/y": "token.test",
		} {
			run(get+"shown(get('"+url+"'))").want(t, "True\n[True]")
			if got := s.credential(host); !strings.HasPrefix(got, "Bearer tc_") {
				t.Errorf("%s: the host got %q", url, got)
			}
		}
		run(get+"print(get('https://token.test/x', Upgrade='websocket', Connection='Upgrade'))").want(t, "True\nHTTP Error 403: toolcell: WebSockets and other upgrades do not pass here")
		run(get+"print(get('https://token.test/x', Host='other.test'))").want(t, "True\nHTTP Error 403: toolcell: the request is for other.test:443, and the connection for token.test:443")
		// All that code can look through: variables, command lines and memory. The half that it
		// looks for is not the whole, which must not be found in its own code.
		run(get+fmt.Sprintf("half = %q\n", secret[len(secret)-16:])+`
get("https://token.test/x")
def memory(pid):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as mem:
        for line in maps:
            start, end = (int(n, 16) for n in line.split()[0].split("-"))
            if " r" in line and end - start < 1 << 28:
                try: mem.seek(start); yield mem.read(end - start)
                except (OSError, ValueError, OverflowError): pass
found = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline"):
        try: found += [name] * (half.encode() in open(f"/proc/{pid}/{name}", "rb").read())
        except OSError: pass
whole = b"trap-"
found += ["memory"] * any(re.search(whole + b"[0-9a-f]{16}" + half.encode(), m) for m in memory("self"))
print(found)`).want(t, "True\n[]")
		if text := all.String() + c.stderr.String(); strings.Contains(text, secret) {
			t.Errorf("the secret is in what came back:\n%s", text)
		}
	})
	e["TOOLCELL_TEST_TOKEN"] = ""
	r := firstHost(t).serve(t, e).python(t, "pass", "https://token.test")
	if r.status() != "validation_error" || !strings.Contains(r.text, `the credential of "token.test": the variable TOOLCELL_TEST_TOKEN is not set where toolcell runs`) {
		t.Errorf("an unset variable: %s", r.text)
	}
}
