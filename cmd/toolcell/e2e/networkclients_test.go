package e2e

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed testdata/httpclients.py
var clientsPy string

// installedClients copies what .ci/clients.sh has installed to where every user can read
// it, or skips the test.
func installedClients(t *testing.T) (dir string) {
	t.Helper()
	from := filepath.Join(os.Getenv("TOOLCELL_TEST_CLIENTS"), "packages")
	if _, err := os.Stat(from); os.Getenv("TOOLCELL_TEST_CLIENTS") == "" || err != nil {
		t.Skip("needs HTTP clients from PyPI: make test-clients")
	}
	for _, program := range []string{"curl", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program)
		}
	}
	dir = filepath.Join(sharedFolder(t), "packages")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestClientsFindTheWayOut has real clients ask a host that is passed through, and one
// whose requests are looked at.
func TestClientsFindTheWayOut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	e := s.env(`
allow = ["api.test", "GET https://rules.test/v1/*", "POST https://rules.test/v1/*"]
via = "env"`, env{"TOOLCELL_MOUNTS": installedClients(t) + ":/clients:ro", "TOOLCELL_MAX_TIMEOUT": "10m"})
	all := []string{"urllib", "requests", "httpx", "httpx_async", "aiohttp", "curl"}
	inEveryWay(t, onFirstHost, func(t *testing.T, h *host) {
		c := h.serve(t, e)
		for _, host := range []string{"api.test", "rules.test"} {
			names := all
			if host == "api.test" {
				names = append(names, "git")
			}
			var want []string
			for _, name := range names {
				method := "GET"
				switch name {
				case "requests":
					method = "POST"
				case "git":
					want = append(want, "git: cloned")
					continue
				}
				want = append(want, fmt.Sprintf("%s: %s /v1/%s of %s", name, method, name, host))
			}
			code := fmt.Sprintf("ORIGIN = 'https://%s'\nCLIENTS = %q.split()\n%s", host, strings.Join(names, " "), clientsPy)
			c.call(t, map[string]any{"code": code, "servers": []string{"https://" + host}, "timeout": seconds(100)}).want(t, strings.Join(want, "\n"))
		}
		// A refusal is seen in each of them.
		code := fmt.Sprintf("ORIGIN = 'https://other.test'\nCLIENTS = %q.split()\n%s", "urllib requests httpx aiohttp curl git", clientsPy)
		r := c.call(t, map[string]any{"code": code, "servers": []string{"https://api.test"}, "timeout": seconds(100)})
		for line := range strings.SplitSeq(strings.Split(r.text, "\nnote")[0], "\n") {
			if !strings.Contains(line, "403") {
				t.Errorf("a refusal: %s", line)
			}
		}
		// Without trust_env it uses no proxy, and finds the host by its name.
		const bare = "import sys; sys.path.insert(0, '/clients')\nimport aiohttp\nasync with aiohttp.ClientSession() as session: print((await (await session.get('https://api.test/x')).text()).splitlines()[0])"
		c.python(t, bare, "https://api.test").want(t, "GET /x of api.test")
	})
}

// TestInspectedHostsAreTrusted by the strict checks of newer Pythons, too.
func TestInspectedHostsAreTrusted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	versions, another := pythons()
	prefix := registry(t, "", "", append(versions, another)...)
	for _, version := range append(versions, another) {
		c := firstHost(t).serve(t, s.env("allow = ['GET https://rules.test/*', 'GET https://"+s.hostPort()+"/*']\nprivate = ['127.0.0.2']\nvia = 'env'",
			env{"TOOLCELL_IMAGE": prefix + version + "-slim"}))
		for _, host := range []string{"rules.test", s.hostPort()} {
			c.python(t, "import ssl; ctx = ssl.create_default_context(); ctx.verify_flags |= ssl.VERIFY_X509_STRICT\n"+
				strings.Replace(fetch("https://"+host+"/v"+version), "/v"+version+`"`, "/v"+version+`", context=ctx`, 1), "https://"+host).want(t, "GET /v"+version+" of "+host)
		}
	}
}
