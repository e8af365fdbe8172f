package mcpproxy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/pyname"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// publicServers returns a Proxy that knows the tools of public servers, as they list
// them, and the names of those. None is there to be started.
func publicServers(t *testing.T) (*Proxy, map[string][]string) {
	t.Helper()
	files, err := filepath.Glob("mcptest/testdata/servers/*.json")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d lists, %v", len(files), err)
	}
	dir, names := t.TempDir(), map[string][]string{}
	var servers []config.Server
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(body, &list); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		s := config.Server{Name: name, Alias: pyname.Identifier(name), Transport: config.Stdio, Command: "/nonexistent/" + name, Source: "test.json"}
		var texts []string
		for _, tool := range list.Tools {
			var named struct {
				Name      string
				Execution struct{ TaskSupport string }
			}
			if err := json.Unmarshal(tool, &named); err != nil {
				t.Fatal(err)
			}
			if texts = append(texts, string(tool)); named.Execution.TaskSupport != "required" {
				names[name] = append(names[name], named.Name)
			}
		}
		diskRecord(dir, s).Put(toolDefinitions(t, texts...), 0)
		servers = append(servers, s)
	}
	return proxyFor(t, Options{CatalogDir: dir}, servers...), names
}

// TestToolsOfPublicServers are all listed, documented, found and called by the names that
// their documentation has.
//
//test:alone
func TestToolsOfPublicServers(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads the tools of many servers")
	}
	p, names := publicServers(t)
	searched, found := 0, 0
	for server, tools := range names {
		docs, err := p.Docs(t.Context(), server, "", true)
		if err != nil || len(docs) != len(tools) {
			t.Fatalf("%s has %d tools of %d, %v", server, len(docs), len(tools), err)
		}
		for i, doc := range docs {
			if doc.Tool != tools[i] || !pyname.IsIdentifier(doc.ToolAlias) || !strings.HasPrefix(doc.Signature, doc.ToolAlias+"(") {
				t.Errorf("%s: %q is %q, called %q: %.100s", server, tools[i], doc.Tool, doc.ToolAlias, doc.Signature)
			}
			for _, key := range []string{doc.Tool, doc.ToolAlias} {
				if tool, _, err := p.Signature(t.Context(), server, key); err != nil || tool.Name != doc.Tool {
					t.Errorf("%s: %q reaches %q, %v", server, key, tool.Name, err)
				}
			}
			if i%10 > 0 {
				continue
			}
			searched++
			hits, problems, err := p.Search(t.Context(), doc.Tool+" "+server, 20, i%2 == 0, AnyServer)
			if err != nil || len(problems) > 0 {
				t.Fatal(problems, err)
			}
			for _, hit := range hits {
				if hit.Server == server && hit.Tool == doc.Tool {
					found++
					break
				}
			}
		}
	}
	if found < searched*9/10 {
		t.Errorf("%d of %d tools were found by their names", found, searched)
	}
}

// TestPolicyHitsToolsOfPublicServers: a rule that names a tool, as its server or its
// documentation does, is about that tool alone.
//
//test:alone
func TestPolicyHitsToolsOfPublicServers(t *testing.T) {
	p, names := publicServers(t)
	for server := range names {
		tools, err := p.Tools(t.Context(), server)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		section := func(name, rule string) { fmt.Fprintf(&text, "[servers.%q]\ndeny = [%q]\n", name, rule) }
		step := 1 + len(tools)/10
		for i := 0; i < len(tools); i += step {
			tool := tools[i]
			section(fmt.Sprint("name", i), tool.Name)
			section(fmt.Sprint("alias", i), tool.Alias)
		}
		run := policyRun(t, text.String())
		for i := 0; i < len(tools); i += step {
			for _, kind := range []string{"name", "alias"} {
				s := policy.Server{Name: fmt.Sprint(kind, i)}
				for j, other := range tools {
					_, err := run.Check(t.Context(), policy.Call{Server: s, Tool: policy.Tool{Name: other.Name, Alias: other.Alias}})
					if denied := err != nil; denied != (i == j) {
						t.Errorf("%s: a rule for %q (%s) hits %q: %v", server, tools[i].Name, tools[i].Alias, other.Name, err)
					}
				}
			}
		}
	}
}
