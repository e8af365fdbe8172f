package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkAuthorize takes a call that a policy with globs and limits allows, without and
// with rules that ask about others.
func BenchmarkAuthorize(b *testing.B) {
	plain := "[default]\ndeny = ['drop_*', 'delete_*']\n[servers.bank]\ncallsPerRun = 1000000\n"
	for i := range 5 {
		plain += fmt.Sprintf("[servers.'other-%d-*']\nreadOnly = true\n", i)
	}
	asking := strings.Replace(plain, "callsPerRun", "ask = ['transfer*', 'close_*', 'order_*']\ncallsPerRun", 1) +
		"[[servers.bank.tools.pay.when]]\npath = 'amount'\nop = '>'\nvalue = 100\n[[servers.bank.tools.pay.when]]\npath = 'to.name'\nop = '!='\nvalue = ['me', 'you']\n"
	for name, text := range map[string]string{"plain": plain, "asking": asking} {
		b.Run(name, func(b *testing.B) {
			r, err := parseRules(text, "policy.toml")
			if err != nil {
				b.Fatal(err)
			}
			run := &Enforcer{policy: &Policy{now: time.Now, minutes: map[limitKey][]time.Time{}}, rules: r, counts: map[limitKey]int{}}
			c := Call{
				Server: Server{Name: "bank", Alias: "bank"}, Tool: Tool{Name: "pay", Alias: "pay"},
				Arguments: json.RawMessage(`{"to":{"name":"you","account":"DE02120300000000202051"},"amount":99.50,"currency":"EUR","purpose":"Rent of November, as agreed on the phone","urgent":false,"tags":["rent","flat"],"note":null}`),
			}
			b.ReportAllocs()
			for b.Loop() {
				clear(run.counts)
				if err := run.Authorize(b.Context(), c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
