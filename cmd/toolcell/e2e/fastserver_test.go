package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// fastServer answers at once, so that only the way from the server takes time. The
// result of large is 8 MiB of log lines, which JSON has to escape. The results of the
// others are not UTF-8.
func fastServer() {
	text, _ := json.Marshal(strings.Repeat("2026-11-21 10:00:00 \"GET /index.html\" 200 5120 ms=12\n", 8<<20/53))
	serveAnswers(map[string]string{
		"tools/list": `{"tools":[{"name":"large","inputSchema":{}},{"name":"latin","inputSchema":{}},{"name":"large_latin","inputSchema":{}}]}`,

		"tools/call large":       `{"content":[{"type":"text","text":` + string(text) + `}]}`,
		"tools/call latin":       `{"content":[{"type":"text","text":"caf` + "\xe9" + `"}]}`,
		"tools/call large_latin": `{"content":[{"type":"text","text":"` + strings.Repeat("caf\xe9", 1<<15) + `"}]}`,
	})
}

// serveAnswers is an upstream server that sends answers made beforehand.
func serveAnswers(answers map[string]string) {
	answers["initialize"] = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fast","version":"1"}}`
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriterSize(os.Stdout, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var q struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if json.Unmarshal(line, &q) != nil || q.ID == nil {
			continue
		}
		if answer, ok := answers[strings.TrimSpace(q.Method+" "+q.Params.Name)]; ok {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", q.ID, answer)
		} else {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`+"\n", q.ID)
		}
		out.Flush()
	}
}

// TestResultsOfServersThatKnowNoUTF8: what cannot be read of a text is replaced,
// and the rest arrives.
func TestResultsOfServersThatKnowNoUTF8(t *testing.T) {
	exe, err := fakeBinary()
	if err != nil {
		t.Fatal(err)
	}
	c := firstHost(t).serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": fakeConfig(t, map[string]any{
		"fast": map[string]any{"command": exe, "env": map[string]string{fakeServerEnv: "fast"}},
	})})
	r := c.call(t, map[string]any{"servers": []string{"fast"}, "code": "for f in (mcp_fast.latin, mcp_fast.large_latin, mcp_fast.large):\n" +
		"    text = await f()\n    print(len(text), ascii(text[:5]))"})
	r.want(t, fmt.Sprintf("4 'caf\\ufffd'\n%d 'caf\\ufffdc'\n%d '2026-'", 4<<15, 8<<20/53*53))
}
