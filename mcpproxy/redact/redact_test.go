package redact

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

func TestSecretsOfAnEntryAreTakenOut(t *testing.T) {
	r := New(config.Server{
		Env:     map[string]string{"API_KEY": "env-s3cret", "PORT": "8080", "ODD": "with \"quotes\" & more", "FROM_FILE": " file-s3cret\n"},
		Headers: map[string]string{"Authorization": "Bearer header-s3cret"},
		Args: []string{
			"--api-key", "arg-s3cret", "--token=joined-s3cret", "--verbose", "harmless-value", "--password", "--next-option",
			"monkey", "business",
		},
		URL:   "https://someone:url-s3cret@mcp.example/v1/0123456789abcdef0123/sse?key=query-s3cret",
		OAuth: &config.OAuth{ClientSecret: "oauth-s3cret", PrivateKey: "pem-s3cret\nof-two-lines\n"},
	})
	for text, want := range map[string]string{
		"env-s3cret":                       "[API_KEY]",
		"port 8080":                        "port 8080", // too short to be a secret
		"sent Bearer header-s3cret":        "sent [Authorization]",
		"header-s3cret alone":              "[Authorization] alone",
		"arg-s3cret, joined-s3cret":        "[--api-key], [--token]",
		"harmless-value and --next-option": "harmless-value and --next-option",
		"url-s3cret query-s3cret":          "[password] [key]",
		"/v1/0123456789abcdef0123/sse":     "/v1/[path]/sse",
		"monkey business":                  "monkey business", // a word with "key" in it is no option
		"oauth-s3cret":                     "[client secret]",
		"read file-s3cret.":                "read [FROM_FILE].", // without the end of its line
		"pem-s3cret\nof-two-lines":         "[private key]",
		`with "quotes" & more`:             "[ODD]",
		"with+%22quotes%22+%26+more":       "[ODD]", // as in an address
	} {
		if got := r.Text(text); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
	raw, err := json.Marshal(map[string]string{"error": `with "quotes" & more`, "key": "env-s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.JSON(raw); err != nil || string(got) != `{"error":"[ODD]","key":"[API_KEY]"}` {
		t.Errorf("JSON: %s, %v", got, err)
	}
}

// TestSecretsInArgumentsAreTakenOut, as programs take them that start a server.
func TestSecretsInArgumentsAreTakenOut(t *testing.T) {
	r := New(config.Server{Args: []string{
		"run", "-e", "GITHUB_TOKEN=variable-s3cret", "--env=api_key=joined-s3cret", "-eDB_PASSWORD=short-s3cret", "MODE=something",
		"--header", "Authorization: Bearer header-s3cret", "X-API-Key:tight-s3cret", "Accept: text/plain",
		"postgresql://someone:password-s3cret@db.example/a-long-name-of-a-database", "--url=https://x.example/?token=query-s3cret&project=everything",
	}})
	for text, want := range map[string]string{
		"variable-s3cret": "[GITHUB_TOKEN]", "joined-s3cret": "[api_key]", "short-s3cret": "[-eDB_PASSWORD]", "something": "something",
		"header-s3cret": "[Authorization]", "Bearer header-s3cret": "[Authorization]", "tight-s3cret": "[X-API-Key]", "text/plain": "text/plain",
		"password-s3cret": "[password]", "query-s3cret": "[token]", "run": "run",
		// They tell one server from another.
		"a-long-name-of-a-database": "a-long-name-of-a-database", "everything": "everything", "someone": "someone",
	} {
		if got := r.Text(text); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestSecretsOfAnAddressAreTakenOut, also as the user has written them.
func TestSecretsOfAnAddressAreTakenOut(t *testing.T) {
	r := New(config.Server{URL: "https://ghp_user@mcp.example/p%2b0123456789abcdef/x?key=ab%20cdsecret&t=x%2bysecret&odd=broken%zzsecret"})
	for text, want := range map[string]string{
		"ghp_user": "[user]", "p%2b0123456789abcdef": "[path]", "p+0123456789abcdef": "[path]",
		"ab%20cdsecret": "[key]", "ab cdsecret": "[key]", "x%2bysecret": "[t]", "x+ysecret": "[t]",
		"broken%zzsecret": "[odd]",
	} {
		if got := r.Text(text); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
	r = New(config.Server{URL: "https://someone:pass%2fw0rd@mcp.example"})
	if got := r.Text("someone, pass/w0rd and pass%2fw0rd"); got != "someone, [password] and [password]" {
		t.Errorf("got %q", got)
	}
}

// TestInheritedSecretsAreTakenOut: a process has our environment beside its own.
func TestInheritedSecretsAreTakenOut(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", "ghp_inherited")
	t.Setenv("SSH_AUTH_SOCK", "/run/user/1000/agent")
	t.Setenv("NAME_OF_NOTE", "not hidden")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-team=ours-alone, x-thing=Basic%20bWU6c2VjcmV0")
	r := New(config.Server{Command: "server", Env: map[string]string{"PIN_PASSWORD": "4711", "MODE": "4712"}})
	for text, want := range map[string]string{
		"ghp_inherited":        "[GITHUB_TOKEN]",
		"ours-alone":           "[x-team]",
		"Basic%20bWU6c2VjcmV0": "[x-thing]",
		"Basic bWU6c2VjcmV0":   "[x-thing]",
		"bWU6c2VjcmV0":         "[x-thing]",
		"not hidden":           "not hidden",
		"/run/user/1000/agent": "/run/user/1000/agent",
		"4711 4712":            "[PIN_PASSWORD] 4712",
		"NDcxMQ is NDcxM":      "NDcxMQ is NDcxM", // in base64 it is too short to be told from a word
	} {
		if got := r.Text(text); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
	if r := New(config.Server{URL: "https://mcp.example"}); r.Text("ghp_inherited") != "ghp_inherited" {
		t.Error("a remote server does not get our environment")
	}
}

// TestSecretsInBase64AreTakenOut, wherever they begin in the text.
func TestSecretsInBase64AreTakenOut(t *testing.T) {
	const secret = "s3cret>>value??"
	r := New(config.Server{Env: map[string]string{"KEY": secret}})
	for _, before := range []string{"", "u", "me:", "user:", "x-token:"} {
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			text := e.EncodeToString([]byte(before + secret + "."))
			if got := r.Text(text); !strings.Contains(got, "[KEY]") {
				t.Errorf("%s%s: %s became %s", before, secret, text, got)
			} else if left, _ := e.DecodeString(strings.ReplaceAll(got, "[KEY]", "")); strings.Contains(string(left), "cret") {
				t.Errorf("%q is left of %s", left, text)
			}
		}
	}
}

// TestLongerSecretGoesFirst: or the end of it would stay.
func TestLongerSecretGoesFirst(t *testing.T) {
	r := New(config.Server{Env: map[string]string{"SHORT": "s3cret-1", "LONG": "s3cret-1-and-more"}})
	if got := r.Text("s3cret-1-and-more s3cret-1"); got != "[LONG] [SHORT]" {
		t.Errorf("got %q", got)
	}
}

func TestErrorKeepsWhatItWraps(t *testing.T) {
	r := New(config.Server{Env: map[string]string{"KEY": "s3cret-key"}})
	if r.Error(nil) != nil {
		t.Error("no error became one")
	}
	plain := errors.New("nothing secret")
	if got := r.Error(plain); got != plain { //nolint:errorlint // it is the very same
		t.Errorf("got %v", got)
	}
	got := r.Error(fmt.Errorf("opening s3cret-key: %w", fs.ErrNotExist))
	if got.Error() != "opening [KEY]: file does not exist" || !errors.Is(got, fs.ErrNotExist) {
		t.Errorf("got %v", got)
	}
}

func TestAddressThatCannotBeReadStopsNothing(t *testing.T) {
	r := New(config.Server{URL: "https://mcp.example/%zz?key=query-s3cret", Headers: map[string]string{"X-Key": "header-s3cret"}})
	if got := r.Text("header-s3cret"); got != "[X-Key]" {
		t.Errorf("got %q", got)
	}
}

func TestSecretNamesTheCredentialInAnAddress(t *testing.T) {
	r := New(config.Server{
		Headers: map[string]string{"Authorization": "Bearer header-s3cret", "X-Token-Issuer": "https://login.example"},
		Env:     map[string]string{"CLIENT_ID": "client-12345"},
		OAuth:   &config.OAuth{ClientSecret: "a&b s3cret"},
	})
	for address, want := range map[string]string{
		"https://other.example/?q=header-s3cret":              "[Authorization]",
		"https://other.example/?q=a%26b+s3cret":               "[client secret]",
		"https://other.example/?q=nothing":                    "",
		"https://login.example/authorize?client=client-12345": "", // neither opens anything by itself
	} {
		if got := r.Secret(address); got != want {
			t.Errorf("Secret(%q) = %q, want %q", address, got, want)
		}
	}
}

// TestTokensComeUpLater, while others redact.
func TestTokensComeUpLater(t *testing.T) {
	r := New(config.Server{})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() { r.Add("access token", fmt.Sprintf("t0ken-number-%d", i)) })
		all.Go(func() { _ = r.Text("t0ken-number-0") })
		all.Go(func() { _ = r.Secret("t0ken-number-0") })
	}
	all.Wait()
	r.Add("access token", "t0ken-number-4")
	if got := r.Secret("https://mcp.example/t0ken-number-4"); got != "[access token]" {
		t.Errorf("got %q", got)
	}
	if got := r.Text("t0ken-number-3"); got != "[access token]" {
		t.Errorf("got %q", got)
	}
}
