package mcpproxy

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestClientsFileHidesTools(t *testing.T) {
	for name, tt := range map[string]struct {
		allow, deny []string
		sees        string // of echo, env and get-pid
		refused     string
	}{
		"nothing said":        {nil, nil, "echo env get-pid", ""},
		"names allowed":       {[]string{"echo", "get-pid"}, nil, "echo get-pid", `test.json allows only "echo", "get-pid"`},
		"names denied":        {nil, []string{"env"}, "echo get-pid", `test.json excludes "env"`},
		"denied goes first":   {[]string{"e*", "get-*"}, []string{"env"}, "echo get-pid", `test.json excludes "env"`},
		"none allowed at all": {[]string{}, nil, "", "test.json allows no tool of this server"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fake(t)
			s.AllowTools, s.DenyTools = tt.allow, tt.deny
			p := proxyFor(t, Options{CatalogDir: t.TempDir()}, s)
			for _, from := range []string{"the server", "disk"} {
				if from == "disk" {
					p = proxyFor(t, Options{CatalogDir: p.options.CatalogDir}, s)
				}
				tools, err := p.Tools(t.Context(), "fake")
				if err != nil {
					t.Fatal(err)
				}
				var sees []string
				for _, tool := range tools {
					if strings.Contains(" echo env get-pid ", " "+tool.Name+" ") {
						sees = append(sees, tool.Name)
					}
				}
				if got := strings.Join(sees, " "); got != tt.sees {
					t.Errorf("from %s: sees %q, want %q", from, got, tt.sees)
				}
				if got := p.Servers()[0].Tools; got != len(tools) {
					t.Errorf("from %s: %d tools in the status, %d in the list", from, got, len(tools))
				}
			}
			if tt.refused == "" {
				return
			}
			want := []string{`tool "env" of server "fake" is hidden: `, tt.refused}
			_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "env"})
			mcptest.WantError(t, err, want...)
			_, err = p.Docs(t.Context(), "fake", "env", true)
			mcptest.WantError(t, err, want...)
			docs, _, err := p.Search(t.Context(), "env", 50, false, AnyServer)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range docs {
				if d.Tool == "env" {
					t.Error("a search finds it")
				}
			}
		})
	}
}
