package egress

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestHostsOnRecordAreBounded: those beyond the bound share one entry.
func TestHostsOnRecordAreBounded(t *testing.T) {
	u := newUsage(Run, 0, time.Now)
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

// TestTheRuleOfARefusalIsOnRecord, and one without a rule leaves that of the request before.
func TestTheRuleOfARefusalIsOnRecord(t *testing.T) {
	u := newUsage(Run, 0, time.Now)
	u.addRequest("a.test", 443, "allow a.test")
	u.addRefusal("a.test", 443, "", "a path with . or ..")
	u.addRequest("b.test", 443, "allow b.test")
	u.addRefusal("b.test", 443, "deny b.test", "b.test is denied")
	want := []Use{
		{Host: "a.test", Port: 443, Requests: 1, Refused: 1, Rule: "allow a.test"},
		{Host: "b.test", Port: 443, Requests: 1, Refused: 1, Rule: "deny b.test"},
	}
	if got := u.list(); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
