package secrets

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestValuesOfSecretKeys in the forms that Python, shells and configs have for them, as they are and within JSON.
func TestValuesOfSecretKeys(t *testing.T) {
	h := New(nil, nil)
	for _, row := range []struct{ text, want string }{
		{`token: str = "pw"`, `token: str = "[hidden:key]"`},
		{`token: Optional[str] = "pw"`, `token: Optional[str] = "[hidden:key]"`},
		{`token: str | None = 'pw'`, `token: str | None = '[hidden:key]'`},
		{`def f(*, api_key: str = "pw", n: int = 3):`, `def f(*, api_key: str = "[hidden:key]", n: int = 3):`},
		{"secret = (\n    \"part one\"\n    \"part two\"\n)", "secret = (\n    \"[hidden:key]\"\n)"},
		{`password = ("a", "b")`, `password = ("[hidden:key]")`},
		{"x = 1\nauth = 'pw'", "x = 1\nauth = '[hidden:key]'"},

		{`run(["--token", "pw", "-v"])`, `run(["--token", "[hidden:key]", "-v"])`},
		{"run([\n  '--token',\n  'pw',\n])", "run([\n  '--token',\n  '[hidden:key]',\n])"},
		{"mysql --password pw1234 -u ada", "mysql --password [hidden:key] -u ada"},
		{`mysql --password "my pw" -u ada`, `mysql --password "[hidden:key]" -u ada`},
		{"mysql --password=pw -u ada", "mysql --password=[hidden:key] -u ada"},
		{"mysql --password='my pw' -u ada", "mysql --password='[hidden:key]' -u ada"},
		{`run("mysql", "--password=my pw", "-u")`, `run("mysql", "--password=[hidden:key]", "-u")`},
		{"gh --api-key=pw", "gh --api-key=[hidden:key]"},

		{`os.environ.setdefault("API_TOKEN","pw")`, `os.environ.setdefault("API_TOKEN","[hidden:key]")`},
		{`os.environ["API_TOKEN"] = "pw"`, `os.environ["API_TOKEN"] = "[hidden:key]"`},
		{`os.environ.get("DB_PASSWORD", "pw")`, `os.environ.get("DB_PASSWORD", "[hidden:key]")`},
		{`os.getenv('DB_PASSWORD', 'pw')`, `os.getenv('DB_PASSWORD', '[hidden:key]')`},
		{`headers.set("Authorization", "pw")`, `headers.set("Authorization", "[hidden:key]")`},

		{`{"name":"password","value":"pw"}`, `{"name":"password","value":"[hidden:key]"}`},
		{`{"key": "API_KEY",
		   "value": "pw"}`, `{"key": "API_KEY",
		   "value": "[hidden:key]"}`},
		{"- name: DB_PASSWORD\n  value: hunter2\n", "- name: DB_PASSWORD\n  value: [hidden:key]\n"},
		{`<add key="Token" value="pw"/>`, `<add key="Token" value="[hidden:key]"/>`},
		{"<user>ada</user><password>my pw</password>", "<user>ada</user><password>[hidden:key]</password>"},

		{"https://abc123def456abc123def456@github.com/a/b", "https://[hidden:url-password]@github.com/a/b"},
		{"https://abc123def456abc123def456:x-oauth-basic@github.com", "https://[hidden:url-password]@github.com"},
	} {
		for in, want := range map[string]string{row.text: row.want, quotedTwice(t, row.text): quotedTwice(t, row.want)} {
			if got, _ := h.Text(in); got != want {
				t.Errorf("%s\n got %s\nwant %s", in, got, want)
			}
		}
	}
}

// quotedTwice returns a text as the content of a file that code passes as an argument, shown in an answer.
func quotedTwice(t *testing.T, text string) string {
	t.Helper()
	for range 2 {
		raw, err := json.Marshal(map[string]string{"content": "# a file\n" + text})
		if err != nil {
			t.Fatal(err)
		}
		text = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(raw))
	}
	return text
}

func TestOrdinaryTextStays(t *testing.T) {
	h := New(nil, nil)
	for _, text := range []string{
		"use --password to set it, or the --token flag and 3 others", "see `--token`.", "mysql --password -u ada", "mysql --password=$PASSWORD --token=${T} --auth={{x}}",
		"usage: gh [--token TOKEN] [--secret=SECRET] [--password <pw1>]", `p.add_argument("--token", "-t", default="x")`, `p.add_argument("--password", "--pw", help="a word")`,
		`@click.option("--token", "token", "the value")`, `{"flag":"--token","value":"abc"}`, `{"help":"set --token ","n":1}`, "a---token b1234", "x--token=abc",
		`df.drop("password", "email")`, `getattr(o, "token", "x")`, `["username","password","email"]`, `fields = ("token", "page1")`, `d.get("token")`, `d.get("name", "token")`,
		`os.environ.get("DB_PASSWORD", "")`, `os.environ.get("DB_PASSWORD", default1)`, `s.set("token", "access_token")`,
		`{"name":"color","value":"red"}`, `{"type":"password","value":"red"}`, `{"name":"password","title":"red"}`, "- name: MODE\n  value: fast1\n", `<input name="q" value="x1">`,
		"user:<password>@host and <token> more <b>x</b>", "<password></password>", "<password>${env.DB_PASSWORD}</password>", "<tokens><token/></tokens>",
		`pw = getpass("Password: ")` + "\n" + `user = "ada"`, `{"text":"Your password: ","n":"b"}`, `{"text":"token=","n":"b"}`, `{"text":"token=abc","n":"b"}`, `{"text":"secret=(","n":"b"}`, `u = "/?token=" + t + "&x="`,
		"if token: strict = 'yes'", "count: int = 3", "x[token:4] = 'abc'", "if token: mode = 'live'", "token: str", "token: str = get()", `timeout: str = "30s"`,
		"https://ada@example.org/x", "ssh://git@github.com/a", "https://ada.lovelace.1815@example.org", "secret = (a + b)", "tokens = []\ntokens = {}", `print(f"password={password!r}")`, "tokens = [first, second]",
	} {
		if got, rules := h.Text(text); got != text {
			t.Errorf("%s\nbecomes %s %q", text, got, rules)
		}
	}
}
