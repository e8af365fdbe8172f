package egress

import (
	"fmt"
	"testing"
)

// TestHostsOnRecordAreBounded: those beyond the bound share one entry.
func TestHostsOnRecordAreBounded(t *testing.T) {
	var u usage
	for i := range maxUses + 5 {
		u.addRequest(fmt.Sprintf("h%d.example", i), 443, "rule")
	}
	u.addRequest("h0.example", 443, "rule")
	if n := len(u.uses); n != maxUses+1 {
		t.Fatalf("%d entries", n)
	}
	if first, last := u.uses[0], u.uses[maxUses]; first.Requests != 2 || last.Host != "others" || last.Port != 0 || last.Requests != 5 {
		t.Errorf("%+v to %+v", first, last)
	}
}
