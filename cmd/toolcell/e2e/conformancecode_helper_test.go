package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// What code does for a request, with the request's parameters as p.
const (
	// Of a tool, the answer is there also if it is an error.
	callCode = `
try:
    value = await runtime.call_tool("fixture", p["name"], p.get("arguments"), check=False)
    answer = value.raw
except runtime.MCPError as e:
    answer = e.raw or {"isError": True, "content": [{"type": "text", "text": str(e)}]}`
	promptCode = `
answer = (await runtime.get_prompt("fixture", p["name"], p.get("arguments"))).raw`
	resourceCode = `
answer = (await runtime.read_resource("fixture", p["uri"])).raw`
	listCode = `
answer = [
    {"name": doc["tool"], "description": doc["description"], "inputSchema": doc["inputSchema"]}
    for doc in await runtime.query_tool_docs("fixture", detail="full")
]`
)

// ofFixture are the resources that the fixture has. Others are for toolcell to find.
var ofFixture = regexp.MustCompile(`^"test://(static|template)`)

// codeFor returns what code does for a request for something of the fixture, or "".
func codeFor(m suiteMessage) string {
	switch {
	case m.Method == "tools/call":
		return callCode
	case m.Method == "prompts/get":
		return promptCode
	case m.Method == "resources/read" && ofFixture.Match(m.Params["uri"]):
		return resourceCode
	}
	return ""
}

// runOf returns the parameters of a run in place of those of the suite. What is not of
// the request itself stays: metadata, answers and states.
func runOf(code string, params map[string]json.RawMessage) map[string]json.RawMessage {
	asked, kept := map[string]json.RawMessage{}, map[string]json.RawMessage{"name": json.RawMessage(`"run_python"`)}
	for name, value := range params {
		switch name {
		case "name", "arguments", "uri":
			asked[name] = value
		default:
			kept[name] = value
		}
	}
	p, err := json.Marshal(asked)
	if err != nil {
		panic(err)
	}
	code = fmt.Sprintf("import json\nfrom mcp import runtime\np = json.loads(%q)%s\nprint(json.dumps(answer))", p, code)
	if kept["arguments"], err = json.Marshal(map[string]any{"code": code, "servers": []string{"fixture"}}); err != nil {
		panic(err)
	}
	return kept
}

// printedResult returns the answer that code has printed as the result of the suite's
// request, or the result of a run that printed none.
func printedResult(result json.RawMessage) json.RawMessage {
	answer := map[string]json.RawMessage{}
	if json.Unmarshal(printed(result), &answer) != nil || len(answer) == 0 {
		return result
	}
	result = withMember(result, "structuredContent", nil)
	for _, name := range []string{"content", "isError", "structuredContent", "messages", "description", "contents", "ttlMs", "cacheScope"} {
		result = withMember(result, name, answer[name])
	}
	return result
}

// printed returns what code has printed, if its run is over.
func printed(result json.RawMessage) json.RawMessage {
	var run struct {
		StructuredContent struct {
			Status string
			Stdout []string
		}
	}
	if json.Unmarshal(result, &run) != nil || run.StructuredContent.Status != "success" {
		return nil
	}
	return json.RawMessage(strings.Join(run.StructuredContent.Stdout, "\n"))
}

// withMember returns a JSON object with another value of a member, or, with nil, without.
func withMember(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil || members == nil {
		return object // an error has no result
	}
	members[name] = value
	if value == nil {
		delete(members, name)
	}
	changed, err := json.Marshal(members)
	if err != nil {
		return object
	}
	return changed
}
