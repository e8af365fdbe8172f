package secrets

import (
	"regexp"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	h := New(func(text string) string { return strings.ReplaceAll(text, "the-secret", "[hidden:SECRET]") }, []*regexp.Regexp{regexp.MustCompile("EMP-[0-9]+")})
	shapes := append(boundtest.JSON("", ""), boundtest.Text("", "")...)
	for _, again := range []string{
		"eyJ-", ".eyJ", "aeyJ", "sk-", "1sk-", "1ghp_", "AKIA", "axoxb-", `\\nsk-`, "bearer%20", "-----END ", "--token ", `"--token",`, "--token='", `--token=\"`, "--token=a ", "(get(", `get("token","`, `get(\"token\",\"`, "get('token' ", "get('token',[", "<token>", "<token>a",
		"token=(", "token=('a',", `token=(\'`, `token=(\n`, ": str=", ":value=", `"name":"token","value":`, "name: token value: ", `\n`, "value=\\", "a://b1b1b1b1b1b1b1b1b1b1@", "xoxe.", "xoxb-a", "token=", "token=a1 ", "authorization: ", `"token":[`, `"token":"`, `\"token\":\"`, "://", "a://b:c@", "-----", "-----BEGIN PRIVATE KEY-----",
		"-----END PRIVATE KEY-----", "bearer ", "bearer a1", "[hidden:", "\"' =", "secret={", "EMP-1",
	} {
		shapes = append(shapes, boundtest.Repeated(again, "", again, ""))
	}
	boundtest.Run(t, boundtest.Parser{
		Row: "text on record", Shapes: shapes,
		Parse: func(text []byte) error {
			h.Text(string(text))
			h.Name(string(text))
			return nil
		},
	})
}
