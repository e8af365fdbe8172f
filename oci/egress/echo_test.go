package egress

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestEchoesInOtherFormsAreTakenOut: what a server repeats in JSON, HTML, an address,
// hexadecimal or Base64 shows a secret as well as the secret itself.
func TestEchoesInOtherFormsAreTakenOut(t *testing.T) {
	const key, longer = `pä/ss+w"<ö&rd~1`, `pä/ss+w"<ö&rd~1-and-more`
	credentials := []Credential{
		{Secrets: []string{key}, Placeholder: "ONE"},
		{Secrets: []string{longer}, Placeholder: "TWO"},
	}
	replacer := newReplacer(echoesOf(credentials))
	quoted, _ := json.Marshal(longer)
	for name, text := range map[string]string{
		"as it is":         longer,
		"query":            url.QueryEscape(longer),
		"path":             url.PathEscape(longer),
		"lower case":       strings.ReplaceAll(strings.ToLower(url.QueryEscape(longer)), "+", "%20"),
		"JSON":             string(quoted),
		"JSON of PHP":      strings.ReplaceAll(strings.NewReplacer(`\u003c`, "<", `\u0026`, "&").Replace(string(quoted)), "/", `\/`),
		"HTML":             html.EscapeString(longer),
		"hexadecimal":      hex.EncodeToString([]byte(longer)),
		"HEXADECIMAL":      strings.ToUpper(hex.EncodeToString([]byte(longer))),
		"Base64":           base64.StdEncoding.EncodeToString([]byte(longer)),
		"Base64 in a pair": base64.StdEncoding.EncodeToString([]byte("user:" + longer)),
		"Base64 in a text": base64.URLEncoding.EncodeToString([]byte("Bearer " + longer + " and more")),
	} {
		got := replacer.Replace(text)
		if !strings.Contains(got, "TWO") || strings.Contains(got, "ONE") || len(got) > len("TWO")+24 {
			t.Errorf("%s: %s is shown as %s", name, text, got)
		}
	}
	if got := replacer.Replace("x" + key + "-and-less"); got != "xONE-and-less" {
		t.Errorf("the shorter secret: %s", got)
	}
}

// TestOneSecretMayBeginAnother: the longer one is replaced as a whole, whatever the order
// of the credentials.
func TestOneSecretMayBeginAnother(t *testing.T) {
	o := inspecting("GET /*")
	for _, s := range []string{"s3cret", "s3cret-of-production"} {
		o.Credentials = append(o.Credentials, Credential{Host: "example.com", Header: "X-" + s, Value: s, Secrets: []string{s}, Placeholder: "tc_" + s[:2]})
	}
	f := newFixture(t, o, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-s3cret-of-production")+" "+r.Header.Get("X-s3cret"))
	})
	if got := f.ask("GET /x HTTP/1.1\r\nHost: " + f.hostPort() + "\r\nConnection: close\r\n\r\n"); !strings.Contains(got, "tc_s3 tc_s3") || strings.Contains(got, "production") {
		t.Errorf("%q", got)
	}
}

// TestShortSecretsAreTakenOutOfTextsOnly: the same few digits or letters may stand for
// something else in hexadecimal and Base64.
func TestShortSecretsAreTakenOutOfTextsOnly(t *testing.T) {
	for _, c := range []struct{ secret, text, want string }{
		{"ab/cd", "ab/cd ab%2Fcd ab%2fcd 61622f6364 61622F6364 YWIvY2Q=", "KEY KEY KEY 61622f6364 61622F6364 YWIvY2Q="},
		{"ab/cde", "ab/cde ab%2Fcde ab%2fcde 61622f636465 61622F636465 YWIvY2Rl", "KEY KEY KEY KEY KEY KEY"},
	} {
		replacer := newReplacer(echoesOf([]Credential{{Secrets: []string{c.secret}, Placeholder: "KEY"}}))
		if got := replacer.Replace(c.text); got != c.want {
			t.Errorf("%s: %q is shown as %q, want %q", c.secret, c.text, got, c.want)
		}
	}
}
