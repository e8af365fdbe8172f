package mcpproxy

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestResultsPassUnchanged(t *testing.T) {
	p := proxyFor(t, Options{}, fake(t))
	args := `{"n":9007199254740993,"f":1.50,"s":"a<b&c","u":"\u00e9"}`
	if got := mustCall(t, p, "echo", args); !strings.Contains(got, "9007199254740993") || !strings.Contains(got, "1.50") {
		t.Errorf("echo changed the numbers: %s", got)
	}
	got := mustCall(t, p, "fail", "")
	for _, part := range []string{`"isError":true`, `"n":9007199254740993`, `"unknown":1.50`, `"extra":[1]`, `"data":"AA=="`, "no such issue"} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is not in %s", part, got)
		}
	}
}

func TestResultsOfManyMegabytesPassWhole(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	p := proxyFor(t, Options{}, fake(t))
	if got := mustCall(t, p, "big", "{}"); len(got) < 34<<20 || !strings.HasSuffix(got, `b"}}`) {
		t.Errorf("the result has %d bytes", len(got))
	}
	args := fmt.Sprintf(`{"text":%q}`, strings.Repeat("a", 17<<20))
	if got := mustCall(t, p, "echo", args); len(got) < 17<<20 {
		t.Errorf("the echo has %d bytes", len(got))
	}
}

func TestCallErrors(t *testing.T) {
	p := proxyFor(t, Options{}, fake(t))
	for _, tt := range []struct {
		name, server, tool, args string
		want                     []string
	}{
		{"unknown server", "fkae", "echo", "{}", []string{`no server "fkae"`, `did you mean "fake"? Servers: "fake"`}},
		{"unknown tool", "fake", "ehco", "{}", []string{`no tool "ehco"`, `"echo"`}},
		{"arguments are a list", "fake", "echo", "[1]", []string{"not a JSON object"}},
		{"arguments are not JSON", "fake", "echo", "{", []string{"not a JSON object"}},
		{"the server refuses", "fake", "refuse", "{}", []string{"bad arguments"}},
		{"nested too deeply", "fake", "deep", "{}", []string{"nests deeper than 1000"}},
		{"asks for input", "fake", "ask", "{}", []string{"asks the user for input"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := p.Call(t.Context(), CallRequest{Server: tt.server, Tool: tt.tool, Arguments: []byte(tt.args)})
			mcptest.WantError(t, err, tt.want...)
		})
	}
}

func TestToolListFollowsPagesWithinBounds(t *testing.T) {
	for _, tt := range []struct {
		mode  string
		count int
	}{{"pages", 10}, {"loop", 1}, {"endless", 0}} {
		t.Run(tt.mode, func(t *testing.T) {
			p := proxyFor(t, Options{}, fake(t, "FAKE_TOOLS", tt.mode))
			tools, err := p.Tools(t.Context(), "fake")
			if err != nil || len(tools) != tt.count {
				t.Errorf("%d tools, %v; want %d", len(tools), err, tt.count)
			}
		})
	}
}

func TestToolListSurvivesHostileEntries(t *testing.T) {
	p := proxyFor(t, Options{}, fake(t, "FAKE_TOOLS", "hostile"))
	tools, err := p.Tools(t.Context(), "fake")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tool := range tools {
		got = append(got, tool.Name+"="+tool.Alias)
		if len(tool.Description) > 64<<10 {
			t.Errorf("%s: a description of %d bytes", tool.Name, len(tool.Description))
		}
	}
	want := "get-Issue=get_issue_2 get_issue=get_issue class=class_ 9lives=_9lives 日本=日本 long=long"
	if strings.Join(got, " ") != want {
		t.Errorf("tools = %v, want %v", got, want)
	}
	if tools[0].Description != "first" || string(tools[0].InputSchema) != `{"type":"object"}` {
		t.Errorf("tool = %+v", tools[0])
	}
	if docs, err := p.Docs(t.Context(), "fake", "get_issue", false); err != nil || docs[0].Tool != "get_issue" {
		t.Errorf("a tool's own name does not go before another's alias: %+v, %v", docs, err)
	}
}

func TestBigSchemasLoadUnchanged(t *testing.T) {
	p := proxyFor(t, Options{}, fake(t, "FAKE_TOOLS", "big"))
	docs, err := p.Docs(t.Context(), "fake", "", true)
	if err != nil || len(docs) != 100 {
		t.Fatalf("%d docs, %v", len(docs), err)
	}
	for _, d := range docs {
		if len(d.InputSchema) < 4096 || !strings.Contains(string(d.InputSchema), "9007199254740993") {
			t.Fatalf("schema of %s has %d bytes", d.Tool, len(d.InputSchema))
		}
	}
}

func TestListChangedRefreshesTools(t *testing.T) {
	sdk := fake(t, "FAKE_SERVER", "sdk")
	for name, s := range map[string]config.Server{"old protocol": fake(t), "new protocol": sdk} {
		t.Run(name, func(t *testing.T) {
			p := proxyFor(t, Options{}, s)
			before, err := p.Tools(t.Context(), "fake")
			if err != nil {
				t.Fatal(err)
			}
			mustCall(t, p, "grow", "{}")
			eventually(t, "the new tool", func() bool {
				after, err := p.Tools(t.Context(), "fake")
				return err == nil && len(after) == len(before)+1
			})
		})
	}
}

func TestDocsGiveSchemaOnlyInFull(t *testing.T) {
	p := proxyFor(t, Options{}, fake(t))
	for _, full := range []bool{false, true} {
		docs, err := p.Docs(t.Context(), "fake", "get_pid", full)
		if err != nil || len(docs) != 1 || docs[0].Tool != "get-pid" || docs[0].ToolAlias != "get_pid" {
			t.Fatalf("docs = %+v, %v", docs, err)
		}
		if docs[0].Signature != "get_pid(**more)" {
			t.Errorf("full = %v: signature %s", full, docs[0].Signature)
		}
		if (docs[0].InputSchema != nil) != full {
			t.Errorf("full = %v: schema %s", full, docs[0].InputSchema)
		}
	}
	_, err := p.Docs(t.Context(), "fake", "nope", false)
	mcptest.WantError(t, err, "nearest")
}

// TestToolsThatAreRightAreKept, whatever is wrong with others, or with the next page.
func TestToolsThatAreRightAreKept(t *testing.T) {
	for name, tt := range map[string]struct{ pages, want, failure string }{
		"a member of another type": {`{"tools":[{"name":"a","title":5,"description":["x"],"annotations":"no","inputSchema":[],"outputSchema":true,"icons":7}]}`, "a", ""},
		"a name of another type":   {`{"tools":[{"name":5},{"name":null},{},7,[],"x",{"name":"a"}]}`, "a", ""},
		"a cursor that is 2":       {`{"tools":[{"name":"a"}],"nextCursor":2}`, "a", ""},
		"a cursor of null":         {`{"tools":[{"name":"a"}],"nextCursor":null}`, "a", ""},
		"metadata in a list":       {`{"tools":[{"name":"a","_meta":[]}],"_meta":[],"ttlMs":"5"}`, "a", ""},
		"an empty object":          {`{"tools":{}}`, "", ""},
		"null":                     {`{"tools":null}`, "", ""},
		"none":                     {`{}`, "", ""},
		"an empty list":            {`[]`, "", ""},
		"an object":                {`{"tools":{"a":{"name":"a"}}}`, "", `"tools" must be a list, not an object`},
		"a text":                   {`{"tools":"a"}`, "", `"tools" must be a list, not text`},
		"NaN":                      {`{"tools":[{"name":"a","inputSchema":{"default":NaN}}]}`, "", `it is not JSON from byte`},
		"one that nests too deep":  {`{"tools":[{"name":"b","inputSchema":{"default":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}},{"name":"a"}]}`, "b a", ""},
		"one deeper than decoders": {`{"tools":[{"name":"b","inputSchema":{"default":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}},{"name":"a"}]}`, "a", ""},
		"no object":                {`7`, "", "is not an object"},
		"NaN on the second page":   {`{"tools":[{"name":"a"}],"nextCursor":"1"}` + "\n" + `{"tools":[NaN]}`, "a", ""},
		"a text on the third page": {`{"tools":[{"name":"a"}],"nextCursor":"1"}` + "\n" + `{"tools":[{"name":"b"}],"nextCursor":"2"}` + "\n" + `{"tools":"x"}`, "a b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pages")
			mcptest.WriteFile(t, path, tt.pages)
			p := proxyFor(t, Options{}, fake(t, "FAKE_TOOLS", "pages given", "FAKE_GIVEN", path))
			tools, err := p.Tools(t.Context(), "fake")
			if tt.failure != "" {
				mcptest.WantError(t, err, `listing the tools of server "fake"`, tt.failure)
				return
			}
			var got []string
			for _, one := range tools {
				got = append(got, one.Name)
			}
			if err != nil || strings.Join(got, " ") != tt.want {
				t.Errorf("%v, %v", got, err)
			}
			wantPartial(t, p, tt.pages)
		})
	}
}

// wantPartial checks that it is said where a page of these cannot be read.
func wantPartial(t *testing.T, p *Proxy, pages string) {
	t.Helper()
	_, missing := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "no_such_tool"})
	said := fmt.Sprint(p.Servers()[0].Partial, missing, p.PinNotes([]string{"fake"}))
	partial := strings.Contains(pages, "\n") || strings.Contains(pages, `"nextCursor":2`)
	if times := strings.Count(said, "page "); partial && times != 3 || !partial && times != 0 {
		t.Errorf("it is said %d times: %s", times, said)
	}
	if again := p.PinNotes([]string{"fake"}); partial && len(again) > 0 {
		t.Errorf("a second note: %v", again)
	}
}
