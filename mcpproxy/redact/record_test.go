package redact

import (
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

func TestSecretsAreTakenOutOfTheRecord(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", "ghp_inherited")
	t.Setenv("GIT_AUTHOR_NAME", "Ada Lovelace")
	r := New(config.Server{
		Command: "server",
		Env: map[string]string{
			"NODE_ENV": "production", "LOG": "debugging", "REGION": "eu-central-1", "BASE": "https://api.example.org/projects/v2", "DATA": "/home/ada/projects/everything",
			"LOCALE": "en_US.UTF-8", "USE_AUTH": "true", "AUTH_KIND": "Bearer", "SINCE": "2026-11-28", "PIN_PASSWORD": "4711", "DB_PASSWORD": "plainword", "ODD": "hunter2",
			"PHRASE": "correct-horse-battery-staple", "LOGIN": "aBcDeFgHiJkL", "HOOK": "https://hooks.example.org/T0AB12CD34",
		},
		Headers: map[string]string{"X-Org": "acme-corporation", "Accept": "application/json", "Authorization": "Bearer header-secret", "Cookie": "id=plainword2"},
		Args:    []string{"--api-key", "argument"},
		URL:     "https://mcp.example.org/a-path-of-words/0123456789abcdef0123?project=everything&key=ofquery",
		OAuth:   &config.OAuth{ClientSecret: "clientsecret"},
	})
	for text, want := range map[string]string{
		"production or debugging in eu-central-1":        "production or debugging in eu-central-1",
		"https://api.example.org/projects/v2":            "https://api.example.org/projects/v2",
		"/home/ada/projects/everything":                  "/home/ada/projects/everything",
		`{"x":true,"kind":"Bearer","n":"2026-11-28"}`:    `{"x":true,"kind":"Bearer","n":"2026-11-28"}`,
		"acme-corporation application/json en_US.UTF-8":  "acme-corporation application/json en_US.UTF-8",
		"by Ada Lovelace, of everything in server":       "by Ada Lovelace, of everything in server",
		"a-path-of-words":                                "a-path-of-words",
		"4711 plainword hunter2":                         "[hidden:PIN_PASSWORD] [hidden:DB_PASSWORD] [hidden:ODD]",
		"correct-horse-battery-staple":                   "[hidden:PHRASE]",
		"aBcDeFgHiJkL":                                   "[hidden:LOGIN]",
		"https://hooks.example.org/T0AB12CD34":           "[hidden:HOOK]",
		"Bearer header-secret, header-secret":            "[hidden:Authorization], [hidden:Authorization]",
		"id=plainword2":                                  "[hidden:Cookie]",
		"argument ofquery clientsecret":                  "[hidden:--api-key] [hidden:key] [hidden:client secret]",
		"0123456789abcdef0123":                           "[hidden:path]",
		"ghp_inherited":                                  "[hidden:GITHUB_TOKEN]",
		"cGxhaW53b3Jk is plainword in base64":            "[hidden:DB_PASSWORD] is [hidden:DB_PASSWORD] in base64",
		"https://mcp.example.org/?project=project-named": "https://mcp.example.org/?project=project-named",
	} {
		if got := r.Record(text); got != want {
			t.Errorf("%q\n got %q\nwant %q", text, got, want)
		}
	}
	if got := r.Text("production"); got != "[NODE_ENV]" {
		t.Errorf("what a server's errors show is %q", got)
	}
	for _, later := range []string{"laterword", "production"} {
		r.Add("token", later)
		if got := r.Record(later); got != "[hidden:token]" {
			t.Errorf("a token that came later is %q", got)
		}
	}
}

// TestAWordUnderTwoNamesIsSecret if one of them is named like a secret.
func TestAWordUnderTwoNamesIsSecret(t *testing.T) {
	r := New(config.Server{Env: map[string]string{"DATABASE": "production", "PASSWORD": "production", `ODD "NAME" TOKEN`: "odd-word"}})
	if got := r.Record("production odd-word"); got != "[hidden:PASSWORD] [hidden:ODD _NAME_ TOKEN]" {
		t.Error(got)
	}
}
