package bridge

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/oci/egress"
)

// TestTOONGivesWayToShorterJSON: the mode is there to save tokens.
func TestTOONGivesWayToShorterJSON(t *testing.T) {
	mixed := []any{[]any{1.0, map[string]any{"a": []any{true, map[string]any{}}}}, []any{map[string]any{"b": 1.0}, "x"}}
	var deep any = 1
	for range 200 {
		deep = []any{deep}
	}
	for name, c := range map[string]struct {
		value map[string]any
		want  string
	}{
		"a table":     {map[string]any{"rows": []any{map[string]any{"id": 1.0, "ok": true}, map[string]any{"id": 2.0, "ok": false}}}, "```toon\nrows[2]{id,ok}:\n  1,true\n  2,false\n```"},
		"mixed lists": {map[string]any{"rows": mixed}, "```json\n{\"rows\":[[1,{\"a\":[true,{}]}],[{\"b\":1},\"x\"]]}\n```"},
		"not TOON":    {map[string]any{"deep": deep}, "```json\n{\"deep\":" + strings.Repeat("[", 200) + "1" + strings.Repeat("]", 200) + "}\n```"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := toonOrJSON(c.value, c.value); got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestTOONOfTheNetworkIsATable, also if no rule is about some of the hosts.
func TestTOONOfTheNetworkIsATable(t *testing.T) {
	r := &run.Result{Status: run.StatusSuccess, Network: []egress.Use{
		{Host: "a.example", Port: 443, Requests: 1, BytesSent: 10, BytesReceived: 20, Rule: "https://a.example"},
		{Host: "b.example", Port: 443, Refused: 1},
	}}
	want := "```toon\nstatus: success\nnetwork[2]{host,port,requests,bytesSent,bytesReceived,refused,rule}:\n" +
		"  a.example,443,1,10,20,0,\"https://a.example\"\n  b.example,443,0,0,0,1,\"\"\n```"
	if got := Text(r, OutputTOON); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
