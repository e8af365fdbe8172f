package toolvalue

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestContentsAreCounted(t *testing.T) {
	content := "[" + strings.Repeat("1,", maxContents-1) + "1]"
	v, err := Of(t.Context(), json.RawMessage(`{"content":`+content+`}`))
	if err != nil || string(v.JSON) != content {
		t.Errorf("%d bytes, %v; want %d", len(v.JSON), err, len(content))
	}
	v, err = Of(t.Context(), json.RawMessage(`{"content":[1,`+content[1:]+`}`))
	if err == nil || err.Error() != "reading the answer of the tool: its content has more than 100000 items" {
		t.Errorf("one more: %d bytes, %v", len(v.JSON), err)
	}
}

func TestContentThatCannotBeReadIsNotEmpty(t *testing.T) {
	items, err := contentOf(json.RawMessage(`[{"type":"text","text":"a"},`))
	if err == nil || err.Error() != "its content is not a list" {
		t.Errorf("%d items, %v", len(items), err)
	}
}
