package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// events writes server-sent events: pairs of a name, which may be empty, and a value.
func events(w http.ResponseWriter, pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		if name := pairs[i].(string); name != "" {
			fmt.Fprintf(w, "event: %s\n", name)
		}
		body, err := json.Marshal(pairs[i+1])
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "data: %s\n\n", body)
	}
}

// object is a JSON object of an API.
type object = map[string]any

// textOf joins the texts in a content, which is a text or a list of parts.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(content, &parts)
	var all []string
	for _, p := range parts {
		all = append(all, p.Text)
	}
	return strings.Join(all, "\n")
}

func argsOf(m move) string {
	b, err := json.Marshal(m.args)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// readMessages reads a request of Anthropic's Messages API.
func readMessages(body []byte) (asked turn, err error) {
	var req struct {
		Stream   bool
		Tools    []struct{ Name string }
		Messages []struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return asked, err
	}
	for _, t := range req.Tools {
		asked.tools = append(asked.tools, t.Name)
	}
	for _, m := range req.Messages {
		var parts []struct {
			Type    string
			Content json.RawMessage
		}
		_ = json.Unmarshal(m.Content, &parts) // a text has no results
		for _, p := range parts {
			if p.Type == "tool_result" {
				asked.results = append(asked.results, textOf(p.Content))
			}
		}
	}
	asked.stream = req.Stream
	return asked, nil
}

func writeMessages(w http.ResponseWriter, m move, id string, stream bool) {
	reason, block := "end_turn", object{"type": "text", "text": m.text}
	start, delta := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": m.text}
	if m.tool != "" {
		reason, block = "tool_use", object{"type": "tool_use", "id": id, "name": m.tool, "input": m.args}
		start = object{"type": "tool_use", "id": id, "name": m.tool, "input": object{}}
		delta = object{"type": "input_json_delta", "partial_json": argsOf(m)}
	}
	usage := object{"input_tokens": 1, "output_tokens": 1}
	message := object{"id": "msg_" + id, "type": "message", "role": "assistant", "model": "fake", "usage": usage, "stop_sequence": nil}
	if !stream {
		message["content"], message["stop_reason"] = []object{block}, reason
		_ = json.NewEncoder(w).Encode(message)
		return
	}
	message["content"], message["stop_reason"] = []object{}, nil
	events(w, "message_start", object{"type": "message_start", "message": message},
		"content_block_start", object{"type": "content_block_start", "index": 0, "content_block": start},
		"content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": delta},
		"content_block_stop", object{"type": "content_block_stop", "index": 0},
		"message_delta", object{"type": "message_delta", "delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": 1}},
		"message_stop", object{"type": "message_stop"})
}

// readCompletions reads a request of OpenAI's Chat Completions API, which others have too.
func readCompletions(body []byte) (asked turn, err error) {
	var req struct {
		Stream   bool
		Tools    []struct{ Function struct{ Name string } }
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return asked, err
	}
	for _, t := range req.Tools {
		asked.tools = append(asked.tools, t.Function.Name)
	}
	for _, m := range req.Messages {
		if m.Role == "tool" {
			asked.results = append(asked.results, textOf(m.Content))
		}
	}
	asked.stream = req.Stream
	return asked, nil
}

func writeCompletions(w http.ResponseWriter, m move, id string, stream bool) {
	reason, message := "stop", object{"role": "assistant", "content": m.text}
	if m.tool != "" {
		reason, message = "tool_calls", object{"role": "assistant", "content": nil, "tool_calls": []object{
			{"index": 0, "id": id, "type": "function", "function": object{"name": m.tool, "arguments": argsOf(m)}},
		}}
	}
	usage := object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
	if !stream {
		_ = json.NewEncoder(w).Encode(object{"id": "chat_" + id, "object": "chat.completion", "created": 1, "model": "fake", "usage": usage, "choices": []object{
			{"index": 0, "message": message, "finish_reason": reason},
		}})
		return
	}
	chunk := func(delta object, reason any) object {
		return object{"id": "chat_" + id, "object": "chat.completion.chunk", "created": 1, "model": "fake", "usage": usage, "choices": []object{
			{"index": 0, "delta": delta, "finish_reason": reason},
		}}
	}
	events(w, "", chunk(message, nil), "", chunk(object{}, reason))
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// readGenerate reads a request of the Gemini API.
func readGenerate(body []byte) (asked turn, err error) {
	var req struct {
		Tools []struct {
			FunctionDeclarations []struct{ Name string }
		}
		Contents []struct {
			Parts []struct {
				FunctionResponse *struct{ Response json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return asked, err
	}
	for _, t := range req.Tools {
		for _, f := range t.FunctionDeclarations {
			asked.tools = append(asked.tools, f.Name)
		}
	}
	for _, c := range req.Contents {
		for _, p := range c.Parts {
			if p.FunctionResponse == nil {
				continue
			}
			var response struct{ Output, Error string }
			_ = json.Unmarshal(p.FunctionResponse.Response, &response)
			asked.results = append(asked.results, response.Output+response.Error)
		}
	}
	return asked, nil
}

func writeGenerate(w http.ResponseWriter, m move, id string, stream bool) {
	part := object{"text": m.text}
	if m.tool != "" {
		part = object{"functionCall": object{"id": id, "name": m.tool, "args": m.args}}
	}
	answer := object{
		"candidates":    []object{{"index": 0, "content": object{"role": "model", "parts": []object{part}}, "finishReason": "STOP"}},
		"usageMetadata": object{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
	}
	if stream {
		events(w, "", answer)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}
