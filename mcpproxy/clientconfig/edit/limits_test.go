package edit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestHugeFilesAreNotEdited(t *testing.T) {
	p, err := TargetOf(mcptest.Site(t, nil), "cursor", false)
	if err != nil {
		t.Fatal(err)
	}
	const text = `{"mcpServers": {"toolcell": {"command": "/opt/toolcell"}}}`
	most := []byte(text + strings.Repeat(" ", clientconfig.MaxSize-len(text)))
	if found, err := p.SelfEntries(most); err != nil || len(found) != 1 {
		t.Errorf("the largest: %+v, %v", found, err)
	}
	want := fmt.Sprintf("is larger than %d MiB", clientconfig.MaxSize>>20)
	if found, err := p.SelfEntries(append(most, ' ')); err == nil || err.Error() != want {
		t.Errorf("one more: %+v, %v, want %s", found, err, want)
	}
}
