package hosts

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/toml"
)

// rulesOf takes the section [network] of a text.
func rulesOf(t *testing.T, text string) (*Rules, error) {
	t.Helper()
	var file struct {
		Network Rules `json:"network"`
	}
	err := toml.Unmarshal(t.Context(), []byte(text), &file)
	return &file.Network, err
}

// grant returns what a run may reach under the text of a policy.
func grant(t *testing.T, text string, targets ...string) (*Grant, error) {
	t.Helper()
	n, err := rulesOf(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return n.Grant(targets, "policy.toml")
}

// grantOf fails the test if something may not be reached.
func grantOf(t *testing.T, text string, targets ...string) *Grant {
	t.Helper()
	g, err := grant(t, text, targets...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

const networkRules = `
[network]
allow = ["api.github.com", "*.example.org:8443", "GET https://api.example.com/v1/*", "POST https://api.example.com/v1/items", "http://plain.test", "[2001:db8::1]", "wide.test", "wide.test:8443", "8.8.8.8", "tcp:db.test:5432", "tcp://*.tcp.test:1", "tcp://wide.test:443"]
deny = ["https://wide.test/admin/*", "secret.example.org", "DELETE wide.test", "https://wide.test/Secret/*"]
private = ["intranet.corp", "10.1.0.0/16", "*.lab", "2001:db8::1"]
`

func TestNetworkTargetsNeedARule(t *testing.T) {
	for target, want := range map[string]string{
		"https://api.github.com":              "",
		"https://API.GitHub.com.":             "",
		"https://api.github.com:443":          "",
		"https://api.github.com:80":           "",
		"https://a.b.example.org:8443":        "",
		"https://[2001:db8::1]":               "",
		"https://[2001:DB8:0::1]":             "",
		"https://plain.test":                  "",
		"https://api.example.com":             "",
		"https://example.org:8443":            `add "example.org:8443" to [network] allow`,
		"https://x.example.org":               `add "x.example.org" to [network] allow`,
		"https://secret.example.org:8443":     `policy policy.toml, [network] deny = "secret.example.org": "https://secret.example.org:8443" is not allowed`,
		"https://api.github.com:8080":         `add "api.github.com:8080" to [network] allow`,
		"https://other.com":                   `policy policy.toml: "https://other.com" is not allowed: add "other.com" to [network] allow`,
		"https://evilapi.github.com":          "add",
		"https://api.github.com.evil.com":     "add",
		"tcp://db.test:5432":                  "",
		"tcp://DB.test.:5432":                 "",
		"tcp://a.tcp.test:1":                  "",
		"tcp://db.test:5433":                  `add "tcp://db.test:5433" to [network] allow`,
		"tcp://db.test":                       "tcp:// needs a port, as in tcp://db.example.com:5432",
		"tcp://db.test:5432/x":                "more than a host and a port",
		"tcp://*.tcp.test:1":                  "more than a host and a port, or a *",
		"tcp://10.1.0.1:5432":                 "so an address cannot be",
		"tcp://2130706433:5432":               "neither a host's name nor an address",
		"tcp:db.test:5432":                    "not understood",
		"https://db.test:5432":                `add "db.test:5432" to [network] allow`,
		"tcp://api.github.com:443":            `add "tcp://api.github.com:443" to [network] allow`,
		"tcp://wide.test:443":                 `policy policy.toml, [network] deny = "https://wide.test/admin/*": "tcp://wide.test:443" is not allowed`,
		"http://api.github.com":               "https://HOST",
		"ftp://api.github.com":                "https://HOST",
		"https://api.github.com/":             "more than a host",
		"https://*.example.org:8443":          "more than a host",
		"https://u:p@api.github.com":          "more than a host",
		"https://api.github.com?x":            "more than a host",
		"https://":                            "not the name of a host",
		"https://api.github.com:0":            "not a port",
		"https://api.github.com:":             "not a port",
		"https://api.github.com:99999":        "not a port",
		"https://[2001:db8::1]443":            `a colon and a port must follow "[2001:db8::1]"`,
		"https://[2001:db8::1]:8443":          `add "[2001:db8::1]:8443" to [network] allow`,
		"https://2130706433":                  "neither a host's name nor an address",
		"https://0x7f000001":                  "neither a host's name nor an address",
		"https://127.1":                       "neither a host's name nor an address",
		"https://0177.0.0.1":                  "neither a host's name nor an address",
		"https://api..github.com":             "not the name of a host",
		"https://äpi.github.com":              "xn--",
		"https://\u212aernel.org":             "xn--", // the Kelvin sign, whose small letter is k
		"https://" + strings.Repeat("a", 999): "not understood",
		"https://api.github.com\x00":          "not the name of a host",
		"https://api.github.com evil":         "not the name of a host",
		"https://[fe80::1%25eth0]":            "zone",
		"https://[::ffff:10.1.0.1]":           `add "10.1.0.1" to [network] allow`,
		"https://[::ffff:10.0.0.1]":           `add "10.0.0.1" to [network] private`,
		"https://8.8.8.8":                     `add "8.8.8.8" to [network] private`,
	} {
		_, err := grant(t, networkRules, target)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v, want none", target, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: error %v, want %q", target, err, want)
		}
	}
}

func TestTargetsOfACallAreBounded(t *testing.T) {
	for count, want := range map[int]string{
		maxTargets:     "",
		maxTargets + 1: fmt.Sprintf("%d hosts were asked for; the most is %d", maxTargets+1, maxTargets),
	} {
		g, err := grant(t, networkRules, slices.Repeat([]string{"https://api.github.com"}, count)...)
		switch {
		case want == "" && (err != nil || len(g.Targets) != 1):
			t.Errorf("%d targets: %+v, %v", count, g, err)
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%d targets: error %v, want %s", count, err, want)
		}
	}
}

func TestNetworkRequestsAreChecked(t *testing.T) {
	g := grantOf(t, networkRules, "https://api.github.com", "https://api.example.com", "https://wide.test", "https://wide.test:8443", "https://plain.test", "https://a.example.org:8443")
	for _, c := range []struct {
		method, scheme, host string
		port                 uint16
		path                 string
		rule, refusal        string
	}{
		{"GET", "https", "api.github.com", 443, "/any", "api.github.com", ""},
		{"PUT", "http", "api.github.com", 80, "/any", "api.github.com", ""},
		{"GET", "https", "a.example.org", 8443, "/", "*.example.org:8443", ""},
		{"GET", "https", "b.example.org", 8443, "/", "", `add "https://b.example.org:8443" to the servers`},
		{"GET", "https", "api.example.com", 443, "/v1/items/7", "GET https://api.example.com/v1/*", ""},
		{"HEAD", "https", "api.example.com", 443, "/v1/items/7", "GET https://api.example.com/v1/*", ""},
		{"POST", "https", "api.example.com", 443, "/v1/items", "POST https://api.example.com/v1/items", ""},
		{"POST", "https", "api.example.com", 443, "/v1/items/7", "", `add "POST https://api.example.com/v1/items/7"`},
		{"get", "https", "api.example.com", 443, "/v1/items/7", "", "not in capitals"},
		{"OPTIONS", "https", "api.example.com", 443, "*", "", `add "OPTIONS https://api.example.com" to`},
		{"GET", "https", "api.example.com", 443, "/v2/items", "", "add"},
		{"GET", "http", "api.example.com", 80, "/v1/items", "", `use https://api.example.com, or add "http://api.example.com" to [network] allow`},
		{"GET", "http", "api.example.com", 8080, "/v1/items", "", `add "http://api.example.com:8080" to [network] allow`},
		{"GET", "https", "api.example.com", 80, "/v1/items", "", `add "api.example.com" to [network] allow`},
		{"GET", "http", "plain.test", 443, "/", "", `add "plain.test" to [network] allow`},
		{"GET", "http", "unknown.test", 80, "/v1/items", "", `add "unknown.test" to [network] allow`},
		{"GET", "http", "plain.test", 80, "/", "http://plain.test", ""},
		{"GET", "https", "plain.test", 443, "/", "", "add"},
		{"GET", "https", "wide.test", 443, "/", "wide.test", ""},
		{"GET", "https", "wide.test", 443, "/admin/x", "", `deny = "https://wide.test/admin/*"`},
		{"DELETE", "https", "wide.test", 443, "/x", "", `deny = "DELETE wide.test"`},
		{"GET", "https", "wide.test", 443, "/Admin/x", "", `deny = "https://wide.test/admin/*"`},
		{"GET", "https", "wide.test", 443, "/seCret/x", "", `deny = "https://wide.test/Secret/*"`},
		{"GET", "https", "wide.test", 443, "/admin;a=b/x", "", `deny = "https://wide.test/admin/*"`},
		{"delete", "https", "wide.test", 443, "/x", "", `deny = "DELETE wide.test"`},
		{"DELETE", "https", "wide.test", 8443, "/x", "", `deny = "DELETE wide.test"`},
		{"GET", "https", "wide.test", 8443, "/admin/x", "", `deny = "https://wide.test/admin/*"`},
		{"GET", "https", "other.test", 443, "/", "", `add "other.test"`},
	} {
		rule, err := g.AllowRequest(c.method, c.scheme, c.host, c.port, c.path)
		switch {
		case c.refusal == "" && (err != nil || rule != c.rule):
			t.Errorf("%+v: rule %q, error %v", c, rule, err)
		case c.refusal != "" && (err == nil || !strings.Contains(err.Error(), c.refusal)):
			t.Errorf("%+v: error %v", c, err)
		}
	}
}

// TestRefusalsPointToHTTPS where it is allowed and was not what the code used.
func TestRefusalsPointToHTTPS(t *testing.T) {
	g := grantOf(t, networkRules, "https://api.example.com")
	for scheme, want := range map[string]string{
		"http":  `use https://api.example.com, or add "http://api.example.com" to [network] allow`,
		"https": `add "api.example.com" to [network] allow`,
	} {
		if _, err := g.AllowHost(scheme, "api.example.com", 80); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", scheme, err, want)
		}
	}
}

// TestRefusalsNameARuleThatAllows what was refused, whatever the path has in it: one that
// is not valid would close everything.
func TestRefusalsNameARuleThatAllows(t *testing.T) {
	g := grantOf(t, networkRules, "https://api.example.com")
	for _, path := range []string{
		"/v2/a b", "/v2/100%", "/v2/%zz", "/v2/a?b", "/v2/a#b", "/v2/[x]{y}", `/v2/"quoted"\`, "/v2/*", "/v2/\u00fc\u4e16", "/v2/a:b@c;d=e,f&g+h",
		"/v2/" + strings.Repeat("\u00fc", 300), "/v2/" + strings.Repeat("/x", 200),
	} {
		_, err := g.AllowRequest("GET", "https", "api.example.com", 443, path)
		if err == nil {
			t.Fatalf("%q is allowed", path)
		}
		written := strings.TrimSuffix(strings.TrimPrefix(err.Error(), `add "`), `" to [network] allow`)
		if strings.ContainsAny(written, `"\`) {
			t.Errorf("%q: no string of TOML: %s", path, written)
		}
		r, err := parseRule(written)
		if err != nil || !r.matches(request{"GET", "https", "api.example.com", 443, path}) {
			t.Errorf("%q: the rule %q does not allow it, error %v", path, written, err)
		}
	}
}

// TestRefusalsShowSoMuchOfAPath in characters, and a rule with a * covers the rest.
func TestRefusalsShowSoMuchOfAPath(t *testing.T) {
	g := grantOf(t, networkRules, "https://api.example.com")
	for length, end := range map[int]string{maxPath: "", maxPath + 1: "*"} {
		_, err := g.AllowRequest("GET", "https", "api.example.com", 443, "/"+strings.Repeat("\u00fc", length-1))
		want := `add "GET https://api.example.com/` + strings.Repeat("%C3%BC", maxPath-1) + end + `" to [network] allow`
		if err == nil || err.Error() != want {
			t.Errorf("%d characters: error %v, want %s", length, err, want)
		}
	}
}

func TestNetworkHostsAreInspectedWhereARuleSeesInside(t *testing.T) {
	g := grantOf(t, networkRules+`
[[network.credential]]
host = "api.github.com"
header = "Authorization"
value = "Bearer x"
`, "https://api.github.com", "https://api.example.com", "https://wide.test", "https://a.example.org:8443")
	for host, want := range map[string]bool{"api.example.com": true, "wide.test": true, "api.github.com": true, "a.example.org": false} {
		port := uint16(443)
		if host == "a.example.org" {
			port = 8443
		}
		if got := g.Inspected("https", host, port); got != want {
			t.Errorf("Inspected(%q) = %v", host, got)
		}
	}
}

func TestNetworkPrivateAddresses(t *testing.T) {
	g := grantOf(t, networkRules, "https://api.github.com")
	for _, c := range []struct {
		host, addr string
		want       bool
	}{
		{"intranet.corp", "192.168.1.1", true},
		{"x.lab", "10.9.9.9", true},
		{"lab", "10.9.9.9", false},
		{"api.github.com", "10.1.2.3", true},
		{"api.github.com", "10.2.2.3", false},
		{"api.github.com", "2001:db8::1", true},
		{"api.github.com", "2001:db8::2", false},
	} {
		if got := g.AllowPrivate(c.host, netip.MustParseAddr(c.addr)); got != c.want {
			t.Errorf("AllowPrivate(%q, %s) = %v", c.host, c.addr, got)
		}
	}
}

func TestNetworkViaTheProxyOfTheEnvironment(t *testing.T) {
	if !grantOf(t, "[network]\nvia = 'env'\nallow = 'x.test'", "https://x.test").ViaProxy || grantOf(t, networkRules, "https://plain.test").ViaProxy {
		t.Error("via is not as the file says")
	}
}

func TestNetworkCredentialsAreFilledIn(t *testing.T) {
	t.Setenv("TOOLCELL_TEST_TOKEN", "s3cret")
	const text = `
[network]
allow = ["*.github.com"]
[[network.credential]]
host = "*.github.com"
header = "Authorization"
value = "Bearer ${env:TOOLCELL_TEST_TOKEN}"
env = "GITHUB_TOKEN"
`
	got := grantOf(t, text, "https://api.github.com").Credentials
	want := []Credential{{"api.github.com", "Authorization", "Bearer s3cret", []string{"s3cret"}, "GITHUB_TOKEN"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("credentials are %+v", got)
	}
	// Two headers for one host, the first entry for each, and what is secret of a value
	// without a variable.
	const two = text + `
[[network.credential]]
host = "api.github.com"
header = "authorization"
value = "Bearer other"
[[network.credential]]
host = "api.github.com"
header = "X-Key"
value = "Key abcd"
`
	want = append(want, Credential{"api.github.com", "X-Key", "Key abcd", []string{"abcd"}, ""})
	if got := grantOf(t, two, "https://api.github.com", "https://api.github.com:80").Credentials; !reflect.DeepEqual(got, want) {
		t.Errorf("credentials are %+v", got)
	}
	t.Setenv("TOOLCELL_TEST_TOKEN", " s3cret ")
	if got := grantOf(t, text, "https://api.github.com").Credentials[0].Secrets; !reflect.DeepEqual(got, []string{"s3cret"}) {
		t.Errorf("of a value with spaces around it, %q is secret", got)
	}
	t.Setenv("TOOLCELL_TEST_TOKEN", "")
	if _, err := grant(t, text, "https://api.github.com"); err == nil || !strings.Contains(err.Error(), "TOOLCELL_TEST_TOKEN is not set") {
		t.Errorf("an unset variable: error %v", err)
	}
	t.Setenv("TOOLCELL_TEST_TOKEN", "a\r\nb")
	if _, err := grant(t, text, "https://api.github.com"); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("a value with a line break: error %v", err)
	}
}

func TestNetworkSectionThatIsWrongSaysWhere(t *testing.T) {
	for text, want := range map[string]string{
		`allow = "https//x.test"`:                                  `[network] allow: "https//x.test": the scheme needs ://, as in https://x.test`,
		`allow = "GET https:/x.test/v1"`:                           `as in https://x.test/v1`,
		`deny = "http:x.test:80"`:                                  `as in http://x.test:80`,
		`allow = 1`:                                                "[network] allow: it must be a string or a list of strings, not a number",
		`alow = []`:                                                "[network] alow: there is no such key; the keys are allow, deny, ask, private, via, credential",
		`allow = ["ftp://x.com"]`:                                  "the scheme must be https, http or tcp",
		`allow = ["tcp://x.com"]`:                                  `"tcp://x.com": tcp:// needs a port`,
		`allow = ["tcp://10.0.0.1:5432"]`:                          "so an address cannot be",
		`allow = ["GET tcp://x.com:1"]`:                            "no method and no path",
		`allow = ["tcp://x.com:1/"]`:                               "no method and no path",
		`allow = ["get x.com"]`:                                    "not a method in capitals",
		`allow = ["a*.com"]`:                                       "not the name of a host",
		`allow = ["*"]`:                                            "not the name of a host",
		`allow = ["*.10.0.0.1"]`:                                   "nothing below it",
		`allow = ["x.com:https"]`:                                  "not a port",
		`allow = ["https://x.com/a?b"]`:                            "only * has a meaning in a path",
		`allow = ["https://x.com/%zz"]`:                            `"https://x.com/%zz": the path: invalid URL escape "%zz"`,
		`allow = ["::1"]`:                                          "must be in brackets",
		`via = "http://proxy"`:                                     `it must be "env"`,
		`private = ["10.0.0.0/33"]`:                                "[network] private",
		`credential = 1`:                                           "[[network.credential]]",
		"[[network.credential]]\nhost = \"x.com\"":                 "needs host, header and value",
		"[[network.credential]]\nhost = \"x.com\"\nheader = \"A\"": "needs host, header and value",
		"[[network.credential]]\nhost = \"x.com\"\nheader = \"Host\"\nvalue = \"x\"":              "not a header that may have a credential",
		"[[network.credential]]\nhost = \"x.com\"\nheader = \"A\"\nvalue = \"x\"\nenv = \"a-b\"":  "not a name for a variable",
		"[[network.credential]]\nhost = \"x.com\"\nheader = \"A B\"\nvalue = \"x\"":               "not a header",
		"[[network.credential]]\nhost = \"x.com\"\nheader = \"A\"\nvalue = \"x\"\nvalues = \"a\"": "the keys are host, header, value, env",
	} {
		_, err := rulesOf(t, "[network]\n"+text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

// TestNetworkAsks: deny wins, and what allow lets code do anyway is not asked about.
func TestNetworkAsks(t *testing.T) {
	const text = `
[network]
allow = ["free.test", "GET https://part.test/v1/*"]
deny = ["no.ask.test", "DELETE part.test"]
ask = ["tcp://any.ask.test:1", "*.ask.test", "free.test", "part.test", "POST https://write.test/x", "plain.ask.test:8080"]
`
	for target, want := range map[string][]string{
		"https://free.test":           nil,
		"tcp://any.ask.test:1":        {`[network] ask = "tcp://any.ask.test:1": the code wants to reach tcp://any.ask.test:1 with any protocol: nothing sees what it does there, and it can send that host anything`},
		"https://a.ask.test":          {`[network] ask = "*.ask.test": the code wants to reach a.ask.test`},
		"https://part.test":           {`[network] ask = "part.test": the code wants to reach part.test`},
		"https://write.test":          {`[network] ask = "POST https://write.test/x": the code wants to reach write.test`},
		"https://plain.ask.test:8080": {`[network] ask = "plain.ask.test:8080": the code wants to reach plain.ask.test:8080`},
	} {
		g, err := grant(t, text, target)
		if err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		for i := range want {
			want[i] = "policy policy.toml, " + want[i]
		}
		if got := g.Ask; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
	for target, want := range map[string]string{"https://no.ask.test": `deny = "no.ask.test"`, "https://other.test": `add "other.test" to [network] allow`} {
		_, err := grant(t, text, "https://a.ask.test", target)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", target, err, want)
		}
	}
	g, err := grant(t, text, "https://part.test", "https://free.test", "https://b.ask.test", "https://a.ask.test")
	if err != nil || len(g.Ask) != 3 {
		t.Fatalf("%+v, %v", g, err)
	}
	for request, want := range map[[2]string]string{
		{"GET", "part.test"}: "", {"POST", "part.test"}: "", {"DELETE", "part.test"}: `deny = "DELETE part.test"`, {"POST", "a.ask.test"}: "",
		{"GET", "c.ask.test"}: `add "https://c.ask.test" to the servers of the call`,
	} {
		_, err := g.AllowRequest(request[0], "https", request[1], 443, "/v1/x")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", request, err, want)
		}
	}
	if g, err := grant(t, text, "https://free.test"); err != nil || g.Ask != nil {
		t.Errorf("the next grant: %+v, %v", g, err)
	}
}

// TestAnyProtocolIsAGrantOfItsOwn: it opens nothing to https, nor https anything to it.
func TestAnyProtocolIsAGrantOfItsOwn(t *testing.T) {
	const text = `
[network]
allow = ["tcp://both.test:443", "both.test", "tcp://db.test:5432", "x.test:8443"]
[[network.credential]]
host = "both.test"
header = "Authorization"
value = "${env:TOOLCELL_TEST_TOKEN}"
`
	t.Setenv("TOOLCELL_TEST_TOKEN", "token")
	g, err := grant(t, text, "tcp://both.test:443", "tcp://db.test:5432")
	if err != nil || len(g.Credentials) != 0 {
		t.Fatalf("%+v, %v", g, err)
	}
	for _, tt := range []struct {
		scheme string
		port   uint16
		want   string
	}{
		{"tcp", 443, ""},
		{"tcp", 80, `add "tcp://both.test:80" to [network] allow`},
		{"https", 443, `add "https://both.test" to the servers of the call`},
		{"http", 80, `add "https://both.test" to the servers of the call`},
	} {
		_, err := g.AllowHost(tt.scheme, "both.test", tt.port)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || err.Error() != tt.want) {
			t.Errorf("%s %d: %v", tt.scheme, tt.port, err)
		}
	}
	g, err = grant(t, text, "https://both.test")
	if err != nil || len(g.Credentials) != 1 {
		t.Fatalf("%+v, %v", g, err)
	}
	if _, err := g.AllowHost("tcp", "both.test", 443); err == nil || err.Error() != `add "tcp://both.test:443" to the servers of the call` {
		t.Errorf("tcp: %v", err)
	}
	for host, want := range map[string]string{
		"db.test":    `add "tcp://db.test:5432" to the servers of the call`,
		"x.test":     `add "https://x.test:8443" to the servers of the call`,
		"other.test": `add "other.test" to [network] allow`,
	} {
		if _, err := g.ExplainName(host); err == nil || err.Error() != want {
			t.Errorf("the name %s: %v", host, err)
		}
	}
}

// TestZeroGrantsReachNothing, and all that they see is checked.
func TestZeroGrantsReachNothing(t *testing.T) {
	for name, g := range map[string]*Grant{"nil": nil, "zero": {}} {
		_, host := g.AllowHost("https", "example.com", 443)
		_, request := g.AllowRequest("GET", "https", "example.com", 443, "/")
		_, known := g.ExplainName("example.com")
		if host == nil || known == nil || request == nil || g.AllowPrivate("localhost", netip.MustParseAddr("127.0.0.1")) || !g.Inspected("https", "example.com", 443) || g != nil && g.ViaProxy {
			t.Errorf("a %s grant reaches something: %v, %v", name, host, request)
		}
	}
}
