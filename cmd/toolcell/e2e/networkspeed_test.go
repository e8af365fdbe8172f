//go:build figures

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// downloadCode is a client that prints how many bytes a second it gets from URL, over
// TLS that it does not verify: only the way differs.
const downloadCode = `
import http.client, os, ssl, time
def rate(address, host, path, proxy):
    context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
    if proxy:
        c = http.client.HTTPSConnection("127.0.0.1", proxy, context=context)
        c.set_tunnel(host, int(address.rpartition(":")[2]))
    else:
        c = http.client.HTTPSConnection(*address.split(":"), context=context)
    c.request("GET", path)
    r = c.getresponse()
    buffer, n, start = memoryview(bytearray(1 << 20)), 0, time.monotonic()
    while more := r.readinto(buffer): n += more
    print(n / (time.monotonic() - start) / 1e6)
`

// TestNetworkFigures prints the throughput of a download through the way out of a
// sandbox, beside that of the same client outside with a connection of its own, on
// loopback: as it passes through, and where requests are looked at. They alternate, and
// ratios are those within a round, since the machine may have more to do in some.
func TestNetworkFigures(t *testing.T) {
	const python, rounds, size = "/usr/bin/python3", 15, 400_000_000
	s := newSite(t)
	script := filepath.Join(t.TempDir(), "download.py")
	at := s.hostPort()
	call := func(proxy string) string {
		return downloadCode + fmt.Sprintf("rate(%q, %q, '/bytes?n=%d', %s)", at, siteAddress, size, proxy)
	}
	if err := os.WriteFile(script, []byte(call("None")), 0o644); err != nil {
		t.Fatal(err)
	}
	lines := fmt.Sprintf("private = [%q]\nallow = ", siteAddress)
	through := call(`int(os.environ["https_proxy"].rpartition(":")[2])`)
	inside := map[string]*client{
		"passed through": firstHost(t).serve(t, s.env(lines+fmt.Sprintf("[%q]", at), nil)),
		"looked at":      firstHost(t).serve(t, s.env(lines+fmt.Sprintf("['GET https://%s/*']", at), nil)),
	}
	rates := map[string][]float64{}
	note := func(name, printed string) {
		rate, err := strconv.ParseFloat(strings.TrimSpace(strings.Split(printed, "\n")[0]), 64)
		if err != nil {
			t.Fatalf("%s: %s", name, printed)
		}
		rates[name] = append(rates[name], rate)
	}
	for range rounds {
		direct := exec.Command(python, script)
		direct.Env = []string{"SSL_CERT_FILE=" + s.roots}
		out, err := direct.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		note("direct", string(out))
		for name, c := range inside {
			note(name, c.call(t, map[string]any{"code": through, "servers": []string{"https://" + at}, "timeout": seconds(100)}).text)
		}
	}
	medians := map[string]float64{}
	for _, name := range []string{"direct", "passed through", "looked at"} {
		ratios := make([]float64, rounds)
		for i, rate := range rates[name] {
			ratios[i] = rate / rates["direct"][i]
		}
		medians[name] = median(rates[name])
		t.Logf("%-15s %5.0f MB/s, %.2f of direct (%.2f)", name, medians[name], median(ratios), ratios)
	}
	if file := os.Getenv("TOOLCELL_FIGURES"); file != "" {
		b, err := json.Marshal(medians)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
