package secrets

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Tokens are put together here, so that no scanner takes this file for a leak.
var (
	github = "ghp_" + strings.Repeat("aB3", 12)
	aws    = "AKIA" + "IOSFODNN7EXAMPLE"
	slack  = "xoxb-" + "123456789012-abcdef"
	claude = "sk-ant-" + "api03-aaaaaaaaaaaaaaaaaaaa"
	openai = "sk-proj-" + strings.Repeat("a1_", 10)
	jwt    = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxIn0" + ".c2lnbmF0dXJl-_x"
	pemKey = "-----BEGIN RSA PRIVATE KEY-----\nMIIB\nAAAA\n-----END RSA PRIVATE KEY-----"
)

func TestTextWithoutSecrets(t *testing.T) {
	h := New(func(s string) string { return strings.ReplaceAll(s, "the-secret", "[hidden:TOKEN]") }, []*regexp.Regexp{regexp.MustCompile(`EMP-\d+`)})
	for _, row := range []struct{ text, want string }{
		{"print(1)", "print(1)"},
		{"x " + github + " y", "x [hidden:github] y"},
		{"github_pat_" + strings.Repeat("a", 30), "[hidden:github]"},
		{aws + "\n", "[hidden:aws]\n"},
		{slack, "[hidden:slack]"},
		{claude + "," + openai, "[hidden:anthropic],[hidden:openai]"},
		{jwt, "[hidden:jwt]"},
		{"a\n" + pemKey + "\nb", "a\n[hidden:private-key]\nb"},
		{"a " + pemKey[:50], "a [hidden:private-key]"},
		{pemKey[40:] + " b", "[hidden:private-key] b"},
		{github + " MIIB\nAAAA+/=\n" + pemKey[40:], "[hidden:github] [hidden:private-key]"},
		{"text.split(\"-----END PRIVATE KEY-----\")", "text.split(\"[hidden:private-key]\")"},
		{"TOKEN=" + strings.Repeat("abc1", 400) + " x", "TOKEN=[hidden:key] x"},
		{"token=" + strings.Repeat("token=", 400), "token=" + strings.Repeat("token=", 400)},
		{"postgres://ada:hunter2@db/x", "postgres://ada:[hidden:url-password]@db/x"},
		{"https://a@b:c@d/", "https://a@b:[hidden:url-password]@d/"},
		{"https://example.org:8080/a@b", "https://example.org:8080/a@b"},
		{"-H 'Authorization: Bearer abc123def'", "-H 'Authorization: [hidden:key]'"},
		{"use bearer abc123def.", "use bearer [hidden:bearer]"},
		{"it is the-secret", "it is [hidden:TOKEN]"},
		{"EMP-7 and EMP-8", "[hidden:redact[0]] and [hidden:redact[0]]"},

		// Keys in JSON, Python, the environment, addresses.
		{`{"password":"hunter2","n":1}`, `{"password":"[hidden:key]","n":1}`},
		{`{"api_key": "a\"b", "n": 1}`, `{"api_key": "[hidden:key]", "n": 1}`},
		{`{"pin":1234}`, `{"pin":"[hidden:key]"}`},
		{`{"secrets":["a","]b"],"n":1}`, `{"secrets":"[hidden:key]","n":1}`},
		{`{"credentials":{"user":"a","key":{"n":1}},"n":1}`, `{"credentials":"[hidden:key]","n":1}`},
		{`{"text":"{\"token\":\"abc\",\"n\":1}"}`, `{"text":"{\"token\":\"[hidden:key]\",\"n\":1}"}`},
		{`{"password":"a\\","n":"b"}`, `{"password":"[hidden:key]","n":"b"}`},
		{`connect(password='hunter2', user="a")`, `connect(password='[hidden:key]', user="a")`},
		{`TOKEN = """a"b"""`, `TOKEN = """[hidden:key]"""`},
		{`secret = b"abc"`, `secret = b"[hidden:key]"`},
		{`os.environ["API_KEY"] = "abc"`, `os.environ["API_KEY"] = "[hidden:key]"`},
		{"export CLIENT_SECRET=abc123 X=1", "export CLIENT_SECRET=[hidden:key] X=1"},
		{"https://a/?access_token=abc123&x=1", "https://a/?access_token=[hidden:key]&x=1"},
		{`{"text":"PIN=12345 secrets=[1,2]","n":1}`, `{"text":"PIN=[hidden:key] secrets=[hidden:key]","n":1}`},
		{`{"text":"token='abc","n":"it's"}`, `{"text":"token='[hidden:key]","n":"it's"}`},
		{`{"text":"secret=[1","n":"b"}`, `{"text":"secret=[hidden:key]","n":"b"}`},
		{`{"text":"-----BEGIN PRIVATE KEY-----","n":"b"}`, `{"text":"[hidden:private-key]","n":"b"}`},
		{`["-----BEGIN PRIVATE KEY-----","MIIB","-----END PRIVATE KEY-----"]`, `["[hidden:private-key]"]`},
		{`"password":"unfinished`, `"password":"[hidden:key]`},

		// What is no secret stays.
		{`{"nextPageToken":"CAUQAA1","max_tokens":4096}`, `{"nextPageToken":"CAUQAA1","max_tokens":4096}`},
		{`"token:'"`, `"token:'"`},
		{`{"password":"","has_password":true,"token":null}`, `{"password":"","has_password":true,"token":null}`},
		{"token = get_token(1)", "token = get_token(1)"},
		{"if token == 'abc1': pass", "if token == 'abc1': pass"},
		{"task-force-of-engineers-123456789", "task-force-of-engineers-123456789"},
		{"the bearer of bad news", "the bearer of bad news"},
		{"token: str = None", "token: str = None"},
		{"monkey: 'x1y2z3'", "monkey: 'x1y2z3'"},
		{"naïve ☃ = “quotes”", "naïve ☃ = “quotes”"},
	} {
		got, rules := h.Text(row.text)
		if got != row.want || (rules == nil) != (got == row.text) {
			t.Errorf("%s\n got %s %q\nwant %s", row.text, got, rules, row.want)
		}
		if json.Valid([]byte(row.text)) && !json.Valid([]byte(got)) {
			t.Errorf("%s is no longer JSON: %s", row.text, got)
		}
	}
}

// TestTokensAreFoundAfterEscapes, as JSON, Python's repr and addresses write the character before.
func TestTokensAreFoundAfterEscapes(t *testing.T) {
	h := New(nil, nil)
	tokens := map[string]string{
		github: "github", "github_pat_" + strings.Repeat("a1B", 10): "github", aws: "aws", slack: "slack", claude: "anthropic",
		"sk-" + strings.Repeat("a1B", 16): "openai", openai: "openai", jwt: "jwt", strings.ReplaceAll(pemKey, "\n", `\n`): "private-key",
	}
	for _, before := range []string{`# tokens\n`, `a\t`, `a\r`, `a\\n`, `\u0022`, `\u000a`, `\x0a`, `a%20`, `a%0A`, `a%3D`, "\x1b[0;32m", "=", "&quot;", "é"} {
		for token, rule := range tokens {
			want := before + "[hidden:" + rule + "]" + `\n`
			if got, _ := h.Text(before + token + `\n`); got != want {
				t.Errorf("%s%s\n got %s\nwant %s", before, token, got, want)
			}
		}
		if got, _ := h.Text(before + "Bearer abc123def"); got != before+"Bearer [hidden:bearer]" {
			t.Errorf("%sBearer: %s", before, got)
		}
	}
}

// TestTokensAreFoundWithinWords, where they look more like one than words do.
func TestTokensAreFoundWithinWords(t *testing.T) {
	h := New(nil, nil)
	random := "sk-" + strings.Repeat("a1B", 16)
	for token, befores := range map[string][]string{
		github: {"tok", "key_", "7"}, "github_pat_" + strings.Repeat("a1B", 10): {"tok", "key_", "7"}, aws: {"key", "KEY_", "7"},
		slack: {"tok", "key_", "7", "a-"}, jwt: {"tok", "key_", "7", "a-"}, pemKey: {"key", "key_", "7"}, random: {"key_", "7", "a-"},
		"sk-ant-" + random[3:]: {"key_", "7", "a-"},
	} {
		for _, before := range befores {
			if got, _ := h.Text(before + token + " x"); !strings.HasPrefix(got, before+"[hidden:") || !strings.HasSuffix(got, "] x") {
				t.Errorf("%s%s becomes %s", before, token, got)
			}
		}
	}
}

func TestWordsAreNoTokens(t *testing.T) {
	h := New(nil, nil)
	for _, text := range []string{
		"risk-assessment-of-the-year-2026", "desk-0123456789abcdef0123456789abcdef", "task-550e8400e29b41d4a716446655440000", `C:\desk-550e8400e29b41d4a716446655440000`,
		`docs\task-550e8400e29b41d4a716446655440000`, "flask-ant-colony-optimization-2026", "highs_and_lows_of_the_year_2026", "laughs_2026_by_region_and_city_of_origin",
		"MKTAYIAKIAAKQRQISFVKSHFSRQLEERLGLIEVQ", "PAKIArandomlettersand12digits", "maxapp-prod-2026-11-28", "Torchbearer 2024-2025", "abc.eyJ", "keyJ.eyJhbGciOiJIUzI1NiJ9", "%gg: x",
		"<!-- a comment -->", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", `"\u003AKIAIOSFODNN7EXAMPLE"`, `"\u003eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0"`,
	} {
		if got, rules := h.Text(text); got != text {
			t.Errorf("%s becomes %s %q", text, got, rules)
		}
	}
}

// TestBase64StaysWhole: in a megabyte of it the key IDs of AWS begin by chance. In base64url so do the
// tokens of GitHub, of which nothing tells a random text.
func TestBase64StaysWhole(t *testing.T) {
	h := New(nil, nil)
	data := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{1}).Read(data)
	for _, text := range []string{base64.StdEncoding.EncodeToString(data), base64.RawURLEncoding.EncodeToString(data[:1<<17])} {
		if _, rules := h.Text(text); rules != nil {
			t.Errorf("found %q", rules)
		}
	}
}

func TestHiddenTextIsHiddenOnce(t *testing.T) {
	h := New(nil, nil)
	text := strings.Join([]string{github, aws, jwt, pemKey, `{"token":"abc123"}`, "a://b:c1@d", "TOKEN=abc123"}, " ")
	once, rules := h.Text(text)
	if twice, again := h.Text(once); twice != once {
		t.Errorf("%s\nbecomes\n%s %q", once, twice, again)
	}
	if want := []string{"github", "aws", "jwt", "private-key", "key", "url-password"}; !slices.Equal(rules, want) {
		t.Errorf("rules %q, want %q", rules, want)
	}
}

// TestKnownNumbersLeaveJSON, as a PIN may be one.
func TestKnownNumbersLeaveJSON(t *testing.T) {
	h := New(func(s string) string { return strings.ReplaceAll(s, "4711", "[hidden:PIN]") }, nil)
	for text, want := range map[string]string{
		`{"n":4711,"a":[1471112, "x4711\"4711", 1]}`: `{"n":"[hidden:PIN]","a":["[hidden:PIN]", "x[hidden:PIN]\"[hidden:PIN]", 1]}`,
		`4711`:             `[hidden:PIN]`,
		`f(n=4711)`:        `f(n=[hidden:PIN])`,
		`{"n":"4711"}`:     `{"n":"[hidden:PIN]"}`,
		`{"pin":"4711"}`:   `{"pin":"[hidden:PIN]"}`,
		`{"pin":4711,"n":`: `{"pin":[hidden:PIN],"n":`,
	} {
		if got, rules := h.Text(text); got != want || !slices.Equal(rules, []string{"known"}) {
			t.Errorf("%s becomes %s %q, want %s", text, got, rules, want)
		}
	}
}

func TestNameKeepsWhatIsKnown(t *testing.T) {
	h := New(func(string) string { return "x" }, []*regexp.Regexp{regexp.MustCompile(".")})
	if got, rules := h.Name("production"); got != "production" || rules != nil {
		t.Error(got, rules)
	}
	if got, _ := h.Name(github); got != "[hidden:github]" {
		t.Error(got)
	}
}

func FuzzText(f *testing.F) {
	for _, text := range []string{
		`{"password":"a","b":[{"token":1}]}`, pemKey, "a://b:c@d", `x = {'token': '''a'''}`, jwt, `\"key\":\"`,
		`{"a":"token='x","b":"y's"}`, `["--token","a1"]`, `{"name":"pin","value":[1]}`, `"get('token', 'x')"`, "<pin>1</pin>", `"secret=('a' 'b')"`, `"x: str = 'a'"`,
	} {
		f.Add(text)
	}
	h := New(nil, nil)
	f.Fuzz(func(t *testing.T, text string) {
		got, rules := h.Text(text)
		if rules == nil && got != text {
			t.Errorf("%q became %q by no rule", text, got)
		}
		if json.Valid([]byte(text)) && !json.Valid([]byte(got)) {
			t.Errorf("%q is no longer JSON: %q", text, got)
		}
	})
}

func BenchmarkText(b *testing.B) {
	h := New(nil, nil)
	code := strings.Repeat("issues = await mcp_github.list_issues(owner=\"toolcell\", state=\"open\")\n", 60)[:4096]
	b.SetBytes(int64(len(code)))
	for b.Loop() {
		h.Text(code)
	}
}
