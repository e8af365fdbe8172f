package catalog

import (
	"encoding/json"
	"fmt"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

// decodeTool reads the members of a tool. Only its name has to be right: a text of
// another type is left out, and schemas are checked where they are used.
func decodeTool(raw json.RawMessage) (t Tool, execution json.RawMessage, err error) {
	members, err := rawjson.Members(raw)
	if err != nil {
		return t, nil, fmt.Errorf("its definition must be an object, not %s", wire.KindOf(raw))
	}
	var name json.RawMessage
	for _, m := range members { // of two of one name, the last counts
		switch m.Name {
		case "name":
			name = m.Value
		case "title":
			t.Title = textOr(m.Value)
		case "description":
			t.Description = textOr(m.Value)
		case "inputSchema":
			t.InputSchema = m.Value
		case "outputSchema":
			t.OutputSchema = m.Value
		case "annotations":
			t.Annotations = m.Value
		case "execution":
			execution = m.Value
		}
	}
	if json.Unmarshal(name, &t.Name) != nil {
		return t, nil, fmt.Errorf("its name must be text, not %s", wire.KindOf(name))
	}
	return t, execution, nil
}

// textOr returns a text, or "" for anything else.
func textOr(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}
