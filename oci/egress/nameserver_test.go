package egress

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/time/rate"
)

// question returns a query.
func question(t *testing.T, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	m := dnsmessage.Message{
		ID: 7, RecursionDesired: true,
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	query, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return query
}

// answered writes a reply down.
func answered(t *testing.T, reply []byte) string {
	t.Helper()
	if reply == nil {
		return "nothing"
	}
	var m dnsmessage.Message
	if err := m.Unpack(reply); err != nil {
		t.Fatal(err)
	}
	if !m.Response || m.ID != 7 || len(m.Authorities)+len(m.Additionals) > 0 {
		t.Errorf("the reply is %+v", m)
	}
	said := strings.TrimPrefix(m.RCode.String(), "RCode")
	for _, a := range m.Answers {
		said += fmt.Sprint(" ", a.Header.Name, " ", netip.AddrFrom4(a.Body.(*dnsmessage.AResource).A))
	}
	return said
}

func TestNamesHaveAddressesForTheirHostsOnly(t *testing.T) {
	table := NewNameTable([]Name{{"api.test", 443, false}, {"api.test", 80, false}, {"localhost", 8000, false}})
	addr := table.addrs["api.test"]
	if !netip.MustParsePrefix("127.64.0.0/10").Contains(addr) {
		t.Errorf("the address is %s", addr)
	}
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, b := startBroker(t, Options{Rules: testRules{}, Names: table, NameServers: []net.PacketConn{packets}})
	udp, err := net.Dial("udp", packets.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	inside, outside := net.Pipe()
	defer inside.Close()
	go b.serveNameStream(outside)
	_, _ = udp.Write([]byte("no query")) // which has no answer
	for _, tt := range []struct {
		name string
		kind dnsmessage.Type
		want string
	}{
		{"api.test.", dnsmessage.TypeA, "Success api.test. " + addr.String()},
		{"ApI.tEst.", dnsmessage.TypeA, "Success ApI.tEst. " + addr.String()},
		{"api.test.", dnsmessage.TypeAAAA, "Success"},
		{"api.test.", 65, "Success"}, // HTTPS
		{"api.test.", dnsmessage.TypeALL, "Success"},
		{"localhost.", dnsmessage.TypeA, "Success localhost. 127.0.0.1"},
		{"x.api.test.", dnsmessage.TypeA, "NameError"},
		{"other.test.", dnsmessage.TypeA, "NameError"},
		{"other.test.", dnsmessage.TypeAAAA, "NameError"},
		{"toolcell.", dnsmessage.TypeA, "NameError"},
		{"1.0.64.127.in-addr.arpa.", dnsmessage.TypePTR, "NameError"},
		{".", dnsmessage.TypeNS, "NameError"},
	} {
		query, reply := question(t, tt.name, tt.kind), make([]byte, 600)
		_ = udp.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := udp.Write(query); err != nil {
			t.Fatal(err)
		}
		n, err := udp.Read(reply)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got := answered(t, reply[:n]); got != tt.want {
			t.Errorf("%s %s has %q", tt.name, tt.kind, got)
		}
		_, _ = inside.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...))
		if _, err := io.ReadFull(inside, reply[:2]); err != nil {
			t.Fatal(err)
		}
		reply = reply[:binary.BigEndian.Uint16(reply)]
		if _, err := io.ReadFull(inside, reply); err != nil || answered(t, reply) != tt.want {
			t.Errorf("%s %s has %q by TCP, %v", tt.name, tt.kind, answered(t, reply), err)
		}
	}
	for _, use := range b.Uses() {
		if use.Host != "x.api.test" && use.Host != "other.test" || use.Port != 0 || use.Refused != 2 || use.Requests != 0 {
			t.Errorf("use %+v", use)
		}
	}
	if want := []string{`add "x.api.test" to [network] allow`, `add "other.test" to [network] allow`}; !slices.Equal(b.Refusals(), want) {
		t.Errorf("refused %q", b.Refusals())
	}
}

func TestHostileQueriesHaveAnErrorOrNoAnswer(t *testing.T) {
	table := NewNameTable([]Name{{"api.test", 443, false}})
	query := question(t, "api.test.", dnsmessage.TypeA)
	changed := func(change func(q []byte) []byte) []byte { return change(slices.Clone(query)) }
	for name, tt := range map[string]struct {
		query []byte
		want  string
	}{
		"nothing":             {nil, "nothing"},
		"a part of a header":  {query[:11], "nothing"},
		"an answer":           {changed(func(q []byte) []byte { q[2] |= 0x80; return q }), "nothing"},
		"another operation":   {changed(func(q []byte) []byte { q[2] |= 5 << 3; return q }), "NotImplemented"},
		"a header alone":      {query[:12], "FormatError"},
		"no question":         {changed(func(q []byte) []byte { q[5] = 0; return q }), "FormatError"},
		"many questions":      {changed(func(q []byte) []byte { q[4], q[5] = 0xff, 0xff; return q }), "FormatError"},
		"two questions":       {changed(func(q []byte) []byte { q[5] = 2; return append(q, q[12:]...) }), "FormatError"},
		"a name cut short":    {query[:len(query)-5], "FormatError"},
		"a name of itself":    {append(slices.Clone(query[:12]), 0xc0, 12, 0, 1, 0, 1), "FormatError"},
		"a name of a pointer": {append(slices.Clone(query[:12]), 0xc0, 0xff, 0, 1, 0, 1), "FormatError"},
		"a label too long":    {append(append(slices.Clone(query[:12]), 64), make([]byte, 80)...), "FormatError"},
		"a name with a dot":   {append(append(slices.Clone(query[:12]), 8), "api.test\x00\x00\x01\x00\x01"...), "FormatError"},
		"another class":       {changed(func(q []byte) []byte { q[len(q)-1] = 3; return q }), "Success"},
		"more after it":       {append(slices.Clone(query), make([]byte, 3000)...), "Success api.test. " + table.addrs["api.test"].String()},
	} {
		reply, missing := table.answer(tt.query)
		if got := answered(t, reply); got != tt.want || missing != "" {
			t.Errorf("%s: %q, missing %q", name, got, missing)
		}
	}
	b := &Broker{o: Options{Names: table}}
	inside, outside := net.Pipe()
	go func() {
		_, _ = inside.Write([]byte{0xff, 0xff})
		_, _ = io.Copy(io.Discard, inside)
	}()
	b.serveNameStream(outside) // returns: it is too long
	outside.Close()
}

// TestRefusedNamesAreBounded, however many code asks for.
func TestRefusedNamesAreBounded(t *testing.T) {
	_, b := startBroker(t, Options{Rules: testRules{}, Names: NewNameTable([]Name{{"api.test", 443, false}})})
	for i := range 5000 {
		b.answer(question(t, fmt.Sprintf("n%d.test.", i), dnsmessage.TypeA))
	}
	if n, m := len(b.Uses()), len(b.Refusals()); n != maxUses+1 || m != maxReasons {
		t.Errorf("%d names and %d reasons", n, m)
	}
}

// TestCodeThatAsksTooOftenWaits: answers take time of toolcell.
func TestCodeThatAsksTooOftenWaits(t *testing.T) {
	_, b := startBroker(t, Options{Rules: testRules{}, Names: NewNameTable([]Name{{"api.test", 443, false}})})
	b.questions = rate.NewLimiter(rate.Every(time.Hour), 2)
	served, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	go b.serveNames(served)
	c, err := net.Dial("udp", served.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	reply := make([]byte, 512)
	for n := range 3 {
		if _, err := c.Write(question(t, "api.test.", dnsmessage.TypeA)); err != nil {
			t.Fatal(err)
		}
		within := time.Minute
		if n == 2 {
			within = 100 * time.Millisecond
		}
		_ = c.SetReadDeadline(time.Now().Add(within))
		if _, err := c.Read(reply); err == nil != (n < 2) {
			t.Errorf("question %d: %v", n+1, err)
		}
	}
}

// TestAddressesFollowFromNames, so that code of a session cannot mistake one host for another
// when it keeps them, and never lead to two.
func TestAddressesFollowFromNames(t *testing.T) {
	var names []Name
	for i := range 1000 {
		names = append(names, Name{fmt.Sprintf("h%d.test", i/2), uint16(i%2 + 1), false})
	}
	table := NewNameTable(names)
	if n := len(table.names); n != maxNames {
		t.Errorf("%d names", n)
	}
	if n := len(table.TCP()); n != maxNames+1 {
		t.Errorf("%d places", n)
	}
	for at, n := range table.names {
		if table.addrs[n.Host] != at.Addr() || n.Port != at.Port() {
			t.Errorf("%s leads to %+v", at, n)
		}
		if alone := NewNameTable([]Name{n}); alone.addrs[n.Host] != at.Addr() {
			t.Errorf("%s is at %s, and alone at %s", n.Host, at.Addr(), alone.addrs[n.Host])
		}
	}
	used := map[netip.Addr]bool{}
	first := addressFor("a", used)
	used[first] = true
	if second := addressFor("a", used); second == first {
		t.Errorf("two names have the address %s", first)
	}
	both := NewNameTable([]Name{{"a.test", 443, true}, {"a.test", 443, false}})
	for _, n := range both.names {
		if n.Any {
			t.Error("what allows less does not count")
		}
	}
	if NewNameTable(nil) != nil {
		t.Error("there is a table of nothing")
	}
}

// TestFaultOfAQuestionIsItsOwn: the next has an answer.
func TestFaultOfAQuestionIsItsOwn(t *testing.T) {
	_, b := startBroker(t, Options{Rules: testRules{}, Names: NewNameTable([]Name{{"api.test", 443, false}})})
	query := question(t, "other.test.", dnsmessage.TypeA)
	t.Run("fault", func(t *testing.T) {
		contain.Inject(t, func(at string) bool { return at == "answering a question about a name" })
		if reply := b.answer(query); reply != nil {
			t.Errorf("it has the answer %q", answered(t, reply))
		}
	})
	if got := answered(t, b.answer(query)); got != "NameError" {
		t.Errorf("the next has %q", got)
	}
}
