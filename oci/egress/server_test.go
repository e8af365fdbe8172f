package egress

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A clock is one that tests set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2030, 1, 2, 15, 0, 30, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// TestAServerWaitsForItsNextBytes: connections end when an hour's bytes are used up. Later ones are
// refused, with the time at which there is room again, and work from then on.
func TestAServerWaitsForItsNextBytes(t *testing.T) {
	var asked atomic.Int32
	minute := time.Now().Truncate(time.Minute) // clients compare certificates with their own clock
	clock := &clock{at: minute.Add(30 * time.Second)}
	o := inspecting("GET /*")
	o.Owner, o.MaxBytes, o.now = Server, 64<<10, clock.now
	o.Rules = testRules{hosts: []string{"plain.test"}, inspected: map[string][]string{"example.com": {"GET /*"}}}
	f := newFixture(t, o, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, strings.Repeat("x", len(r.URL.Path)<<8))
	})
	port, conns := listenRaw(t)
	tunnel := func() (client, server *net.TCPConn) {
		c, err := net.Dial("tcp", f.proxy)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(c, "CONNECT plain.test:%s HTTP/1.1\r\n\r\n", port)
		wantConnected(t, c)
		return c.(*net.TCPConn), <-conns
	}
	open, at := tunnel()
	idle, idleAt := tunnel()
	first := helloFor("plain.test")
	send(t, idle, first)
	if _, err := io.ReadFull(idleAt, make([]byte, len(first))); err != nil {
		t.Fatal(err)
	}

	if _, _, err := f.get(f.url("example.com", "/"+strings.Repeat("a", 500))); err == nil {
		t.Error("an answer passed that is too long")
	}
	send(t, open, helloFor("plain.test"))
	wantEnd(t, "a host that was connected to", at, nil)
	wantEnd(t, "its client", open, nil)
	wantEnd(t, "a host that is sent nothing", idleAt, nil)
	wantEnd(t, "its client", idle, nil)

	wait := "the server has sent and received as many bytes as it may in an hour (64 KiB); there is room again at " +
		minute.UTC().Add(62*time.Minute).Format("15:04") + " UTC"
	before := asked.Load()
	if status, body, err := f.get(f.url("example.com", "/a")); err != nil || status != http.StatusTooManyRequests || body != "toolcell: "+wait+"\n" {
		t.Errorf("inspected: %d %q, error %v", status, body, err)
	}
	if got := f.raw("CONNECT plain.test:" + port + " HTTP/1.1\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 429 toolcell: "+wait+"\r\n") {
		t.Errorf("passed through: %q", got)
	}
	if got := f.raw("GET http://plain.test:" + port + "/ HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 429 toolcell: "+wait+"\r\n") {
		t.Errorf("without TLS: %q", got)
	}
	if asked.Load() != before || len(conns) > 0 {
		t.Error("a host was reached")
	}
	if all := f.broker.RefusedSince(clock.now()); !slices.ContainsFunc(all, func(r Refusal) bool { return r.Reason == wait && r.Host == "plain.test" && r.Count == 2 }) {
		t.Errorf("the refusals are %+v", all)
	}

	clock.add(window + span)
	if status, body, err := f.get(f.url("example.com", "/a")); err != nil || status != http.StatusOK || body != strings.Repeat("x", 512) {
		t.Errorf("an hour later: %d %q, error %v", status, body, err)
	}
	open, at = tunnel()
	send(t, open, first)
	_ = open.CloseWrite()
	wantEnd(t, "a host an hour later", at, first)
}

// TestNoHourHasMoreBytesThanMayPass, in whatever way a server spends them, and what it has used of
// them comes back.
func TestNoHourHasMoreBytesThanMayPass(t *testing.T) {
	const most = 1000
	for name, c := range map[string]struct {
		every time.Duration
		bytes int64
	}{
		"at once":    {time.Second, most},
		"steadily":   {7 * time.Second, 3},
		"each 20 m":  {20 * time.Minute, 400},
		"each 59 s":  {59 * time.Second, 10},
		"each 61 s":  {61 * time.Second, 20},
		"each hour":  {time.Hour, most},
		"most of it": {59 * time.Minute, 900},
	} {
		clock := newClock()
		b := budget{owner: Server, most: most}
		type passed struct {
			at    time.Time
			bytes int64
		}
		var all []passed
		var total int64
		for begun := clock.now(); clock.now().Sub(begun) < 10*time.Hour; clock.add(c.every) {
			now := clock.now()
			if b.full(now) != nil || b.spent+c.bytes > most {
				continue
			}
			b.add(c.bytes, now)
			all, total = append(all, passed{now, c.bytes}), total+c.bytes
			var inHour int64
			for _, p := range all {
				if now.Sub(p.at) < window {
					inHour += p.bytes
				}
			}
			if inHour > most {
				t.Fatalf("%s: %d bytes have passed in an hour", name, inHour)
			}
			if len(b.spans) > 62 {
				t.Fatalf("%s: %d spans", name, len(b.spans))
			}
		}
		if least := min(most*4, int64(10*time.Hour/c.every)*c.bytes/2); total < least {
			t.Errorf("%s: %d bytes have passed, want at least %d", name, total, least)
		}
	}
}

// TestThereIsRoomWhenTheErrorSaysSo: not before, and then at once.
func TestThereIsRoomWhenTheErrorSaysSo(t *testing.T) {
	clock := newClock()
	b := budget{owner: Server, most: 100}
	b.add(60, clock.now())
	clock.add(10 * time.Minute)
	b.add(60, clock.now())
	clock.add(time.Minute)
	full, ok := errors.AsType[*bytesError](b.full(clock.now()))
	if !ok {
		t.Fatal("there is room")
	}
	if err := b.full(full.again.Add(-1)); err == nil || err.Error() != full.Error() {
		t.Errorf("a moment before: %v, want %v", err, full)
	}
	if err := b.full(full.again); err != nil {
		t.Error(err)
	}
}

// TestTheLatestHostsOfAServerAreOnRecord: those that it has reached stay when it asks for many others,
// and nothing of what is dropped is lost from the counts.
func TestTheLatestHostsOfAServerAreOnRecord(t *testing.T) {
	clock := newClock()
	u := newUsage(Server, 1<<30, clock.now)
	u.addRequest("reached.test", 443, "reached.test")
	for i := range 3 * maxUses {
		clock.add(time.Second)
		u.addRefusal(fmt.Sprintf("n%d.test", i), 0, "", fmt.Sprintf("no to %d", i))
	}
	_ = u.addBytes("reached.test", 443, 5, 7)
	all := u.contacts()
	if len(all) != maxUses+1 {
		t.Fatalf("%d contacts", len(all))
	}
	first, last := all[0], all[maxUses]
	if first.Host != "reached.test" || first.BytesSent != 5 || first.BytesReceived != 7 || !first.Last.Equal(clock.now()) {
		t.Errorf("the first is %+v", first)
	}
	if all[1].Host != fmt.Sprintf("n%d.test", 3*maxUses-1) || last.Host != "others" || last.Port != 0 || last.Refused != 2*maxUses+1 {
		t.Errorf("%+v to %+v", all[1], last)
	}
	for i := range 2 * maxUses { // then the oldest of them go
		clock.add(time.Second)
		u.addRequest(fmt.Sprintf("r%d.test", i), 443, "")
	}
	all = u.contacts()
	if len(all) != maxUses+1 || all[0].Host != fmt.Sprintf("r%d.test", 2*maxUses-1) || all[maxUses-1].Host != fmt.Sprintf("r%d.test", maxUses) {
		t.Errorf("%d contacts: %+v", len(all), all)
	}
	if last := all[maxUses]; last.Refused != 3*maxUses || last.Requests != maxUses+1 || last.BytesSent != 5 {
		t.Errorf("the others are %+v", last)
	}
}

// TestTheLatestRefusalsOfAServerAreOnRecord, each with its count and time.
func TestTheLatestRefusalsOfAServerAreOnRecord(t *testing.T) {
	clock := newClock()
	u := newUsage(Server, 1<<30, clock.now)
	for i := range 2 * maxRecent {
		clock.add(time.Second)
		u.addRefusal(fmt.Sprintf("n%d.test", i), 443, "", "not allowed")
	}
	call := clock.now().Add(time.Second)
	clock.add(time.Second)
	u.addRefusal("n60.test", 443, "deny", "not allowed")
	clock.add(time.Second)
	u.addFailure("slow.test", 443, "it does not answer")
	want := []Refusal{
		{Host: "slow.test", Port: 443, Reason: "it does not answer", Failed: true, Count: 1, Last: clock.now()},
		{Host: "n60.test", Port: 443, Rule: "deny", Reason: "not allowed", Count: 2, Last: call},
	}
	if got := u.since(call); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if all := u.since(time.Time{}); len(all) != maxRecent+1 || all[maxRecent].Host != fmt.Sprintf("n%d.test", maxRecent) {
		t.Errorf("%d refusals: %+v", len(all), all)
	}
	for i := range 2 * maxRecent {
		u.addFailure(fmt.Sprintf("n%d.test", i), 443, "it does not answer")
	}
	if n := len(u.since(time.Time{})); n != 2*maxRecent {
		t.Errorf("%d refusals", n)
	}
}

// TestAServerMeetsNoExpiredCertificate for as long as it may live, though the file that it trusts does
// not change and the host's clock is set.
func TestAServerMeetsNoExpiredCertificate(t *testing.T) {
	clock := newClock()
	a, err := newAuthority([]string{"example.com"}, Server, clock.now)
	if err != nil {
		t.Fatal(err)
	}
	roots, issued := x509.NewCertPool(), map[string]bool{}
	roots.AppendCertsFromPEM(a.pem)
	const day = 24 * time.Hour
	for _, later := range []time.Duration{0, 0, 11 * time.Hour, 11 * time.Hour, 11 * time.Hour, -20 * time.Hour, 60 * day, 3 * 365 * day, 6 * 365 * day} {
		clock.add(later)
		leaf, err := a.leafFor(nil)
		if err != nil {
			t.Fatal(err)
		}
		issued[string(leaf.Certificate[0])] = true
		cert, err := x509.ParseCertificate(leaf.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "example.com", CurrentTime: clock.now()}); err != nil {
			t.Errorf("at %v: %v", clock.now(), err)
		}
		if left := cert.NotAfter.Sub(clock.now()); left < certificateLife/2 {
			t.Errorf("at %v it has %v left", clock.now(), left)
		}
	}
	if n := len(issued); n != 6 {
		t.Errorf("%d certificates were issued", n)
	}
}

// TestTheCertificateIsThereBeforeTheListener, and a listener that comes too late is closed.
func TestTheCertificateIsThereBeforeTheListener(t *testing.T) {
	o := inspecting("GET /*")
	o.Owner = Server
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Certificate()) == 0 {
		t.Error("there is no certificate")
	}
	b.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.Serve(l, nil, []net.Listener{l})
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Error("it listens after the end")
	}
}

// TestErrorsOfAServerSpeakOfNoRun: it knows of none.
func TestErrorsOfAServerSpeakOfNoRun(t *testing.T) {
	o := inspecting("GET /*")
	o.Owner = Server
	_, b := startBroker(t, o)
	_, noRules := New(Options{Owner: Server})
	for _, text := range []string{
		(&bytesError{owner: Server}).Error(), Server.ended().Error(), Server.listsHosts(), noRules.Error(), b.authority.cert.Subject.CommonName,
	} {
		if strings.Contains(text, "run") || !strings.Contains(text, "server") {
			t.Errorf("%q", text)
		}
	}
}
