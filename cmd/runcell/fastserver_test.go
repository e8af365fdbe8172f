package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// fastServer is an upstream server with one tool, large, whose answer of 8 MiB
// was made beforehand: what takes time is the way from it. Its lines of text
// are as of a log, with what JSON escapes.
func fastServer() {
	text, _ := json.Marshal(strings.Repeat("2026-11-21 10:00:00 \"GET /index.html\" 200 5120 ms=12\n", 8<<20/53))
	answers := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fast","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"large","inputSchema":{"type":"object"}}]}`,
		"tools/call": `{"content":[{"type":"text","text":` + string(text) + `}]}`,
	}
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriterSize(os.Stdout, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var q struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(line, &q) != nil || q.ID == nil {
			continue
		}
		if answer, ok := answers[q.Method]; ok {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", q.ID, answer)
		} else {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`+"\n", q.ID)
		}
		out.Flush()
	}
}
