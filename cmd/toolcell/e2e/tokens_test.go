package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tiktoken-go/tokenizer/codec"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/installer"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
)

// replayPrefix makes a fake server offer the tools that a public server once
// listed, from a file of mcpproxy/search/testdata/recall.
const replayPrefix = "replay:"

// A keptList is what a public MCP server answered to tools/list.
type keptList struct {
	file  string
	Tools []catalog.Tool
}

func readKept(file string) (l keptList, err error) {
	text, err := os.ReadFile(file)
	if err == nil {
		l.file, err = file, json.Unmarshal(text, &l)
	}
	return l, err
}

// replay adds the tools of a file to a server. None of them does anything.
func replay(s *mcp.Server, file string) {
	list, err := readKept(file)
	if err != nil {
		panic(err)
	}
	for _, t := range list.Tools {
		schema := t.InputSchema
		var head struct{ Type string }
		if json.Unmarshal(schema, &head) != nil || head.Type != "object" {
			schema = json.RawMessage(`{"type": "object"}`)
		}
		s.AddTool(&mcp.Tool{Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: schema},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{}, nil
			})
	}
}

// keptLists are those of all public servers that are kept, in the order of their
// names, so that more servers are always those before and others.
func keptLists(t *testing.T) []keptList {
	t.Helper()
	files, err := filepath.Glob("../../../mcpproxy/search/testdata/recall/*/*.json")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d lists, %v", len(files), err)
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(filepath.Base(a), filepath.Base(b)) })
	var all []keptList
	for _, f := range files {
		l, err := readKept(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

// typicalRun is what a model writes when it was asked about some issues.
const typicalRun = `
titles = ["Crash on start", "Login fails behind a proxy", "Dark mode", "Typo in the manual", "Slow search", "Export as CSV"]
issues = [{"id": f"API-{100 + i}", "title": t, "status": ["open", "closed"][i % 2], "assignee": ["ann", "bob", None][i % 3], "votes": i * i} for i, t in enumerate(titles)]
print(len([i for i in issues if i["status"] == "open"]), "of", len(issues), "are open")
issues`

const typicalSearch = `
from mcp import runtime
for h in await runtime.search_tool_docs("send a message to a channel"):
    print(h.server, h.tool, "-", h.description)
`

// TestTokens counts what a client pays, through a real client: for tools/list,
// which is the same however many servers there are, for the manual, for results
// that are typical or as long as they can be, for a search, and beside it for the same servers connected directly. With
// TOOLCELL_TOKENS it writes the figures there.
func TestTokens(t *testing.T) {
	h, count, lists := firstHost(t), codec.NewO200kBase(), keptLists(t)
	tokens := func(text string) int {
		n, err := count.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var doc strings.Builder
	rows := tabwriter.NewWriter(&doc, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprint(rows, "| servers\t tools\t directly, each request\t with toolcell, each request\t one search, once\t\n|---\t---\t---\t---\t---\t\n")
	for _, n := range []int{1, 10, 50} {
		config, tools, direct := replayConfig(t, lists, n, count)
		e := env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": config, "TOOLCELL_TIMEOUT": "60"}
		own := tokens(rawToolList(t, h, e))
		if own > 200 || own >= direct && n > 1 {
			t.Errorf("with %d servers tools/list costs %d tokens; at most 200 are allowed, and connected directly they cost %d", n, own, direct)
		}
		c := h.serve(t, e)
		r := c.python(t, typicalSearch)
		if r.isError {
			t.Fatalf("the search with %d servers: %s", n, r.text)
		}
		fmt.Fprintf(rows, "| %d\t %d\t %d\t %d\t %d\t\n", n, tools, direct, own, tokens(typicalSearch)+tokens(r.text))
		c.Close()
	}
	rows.Flush()
	fmt.Fprint(rows, "\n| once\t tokens\t\n|---\t---\t\n")
	fmt.Fprintf(rows, "| the manual, if it is read\t %d\t\n", tokens(manualOf(t, h)))
	for _, mode := range []string{"compact", "toon", "json"} {
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_OUTPUT": mode})
		c.python(t, "1") // what a host lacks is said once
		r := c.python(t, typicalRun)
		if r.isError || !strings.Contains(r.text, "API-105") {
			t.Fatalf("%s: %s", mode, r.text)
		}
		fmt.Fprintf(rows, "| a typical result, `%s`\t %d\t\n", mode, tokens(r.text))
	}
	rows.Flush()
	fmt.Fprint(rows, "\n", worstResults(t, h, tokens))
	rows.Flush()
	if file := os.Getenv("TOOLCELL_TOKENS"); file != "" {
		if err := os.WriteFile(file, []byte(fmt.Sprintf(tokensDoc, len(lists), 50-len(lists), doc.String())), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Log("\n" + doc.String())
}

const tokensDoc = `# What a client pays

Made by ` + "`make tokens`" + `, which counts with o200k_base, the tokenizer of recent OpenAI models, through a real MCP client.
A model is told every tool of every connected server in each request; with toolcell it is told of one.

The servers are %d public ones, with the tools that they list, in the order of their names; for 50 the first %d of them
are there twice. "Directly" is name, description and input schema of each tool. "With toolcell" is the whole answer
to ` + "`tools/list`" + `. A search is the model's code and what comes back: five tools of all that there are.

%s
The last table is the most that one result can cost with the default of ` + "`TOOLCELL_OUTPUT_BYTES`" + `: the code prints
the text without end, to both streams, and has it as its value too. A result has the same content twice: as text in one of
the three output modes, and as structured content. The columns count each by itself; a client that shows its model both pays
the sum. Text in a script that the tokenizer has hardly seen costs a token for each byte; lines of one letter cost more in
the modes that quote each line. Pictures and the list of files are extra.
`

// toolTokens counts the tokens of tool definitions as a model gets them.
func toolTokens(t *testing.T, count *codec.Codec, tools []catalog.Tool) int {
	t.Helper()
	n := 0
	for _, tool := range tools {
		text, err := installer.ToolText(tool)
		if err != nil {
			t.Fatal(err)
		}
		tokens, err := count.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		n += tokens
	}
	return n
}

// TestEstimatedTokensAreNearTheCount holds the estimate against a tokenizer, on
// the tools of real servers.
func TestEstimatedTokensAreNearTheCount(t *testing.T) {
	count := codec.NewO200kBase()
	all, about := 0, 0
	for _, list := range keptLists(t) {
		counted, estimated := toolTokens(t, count, list.Tools), 0
		for _, tool := range list.Tools {
			text, err := installer.ToolText(tool)
			if err != nil {
				t.Fatal(err)
			}
			estimated += installer.EstimateTokens(text)
		}
		if off := float64(estimated) / float64(counted); off < 0.8 || off > 1.2 {
			t.Errorf("%s: about %d, counted %d", list.file, estimated, counted)
		}
		all, about = all+counted, about+estimated
	}
	if off := float64(about) / float64(all); off < 0.95 || off > 1.05 {
		t.Errorf("all: about %d, counted %d", about, all)
	}
}

// replayConfig makes servers of the first n lists, and counts what they cost
// directly.
func replayConfig(t *testing.T, lists []keptList, n int, count *codec.Codec) (config string, tools, direct int) {
	t.Helper()
	exe, err := fakeBinary()
	if err != nil {
		t.Fatal(err)
	}
	servers := map[string]any{}
	for i := range n {
		list := lists[i%len(lists)]
		cost := toolTokens(t, count, list.Tools)
		tools, direct = tools+len(list.Tools), direct+cost
		file := filepath.Join(shared, filepath.Base(list.file))
		text, err := os.ReadFile(list.file)
		if err == nil {
			err = os.WriteFile(file, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if i >= len(lists) {
			name += "-again"
		}
		servers[name] = map[string]any{"command": exe, "args": []string{name}, "env": map[string]string{fakeServerEnv: replayPrefix + file}}
	}
	return writeConfig(t, map[string]any{"mcpServers": servers}), tools, direct
}

// rawToolList is the result of tools/list as it is on the wire.
func rawToolList(t *testing.T, h *host, e env) string {
	t.Helper()
	c := h.command(t, e, "serve")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		_ = c.Wait() // it has answered
	}()
	_, err = io.WriteString(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/list"}
`)
	var answer struct {
		ID     int
		Result json.RawMessage
	}
	for d := json.NewDecoder(out); err == nil && answer.ID != 1; {
		err = d.Decode(&answer)
	}
	if err != nil {
		t.Fatalf("asking for the tools: %v", err)
	}
	return string(answer.Result)
}

func manualOf(t *testing.T, h *host) string {
	t.Helper()
	c := h.serve(t, env{"TOOLCELL_IMAGE": "host"})
	r, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "resource://toolcell/capabilities"})
	if err != nil || len(r.Contents) != 1 {
		t.Fatalf("the manual: %v, %v", r, err)
	}
	return r.Contents[0].Text
}
