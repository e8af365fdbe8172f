package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestForgedFrames writes to the control socket what no runner does, beyond
// what the tests of the bridge write: the run ends as told, nobody learns
// anything, and the next run is clean.
func TestForgedFrames(t *testing.T) {
	c := firstHost(t).serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": fakeConfig(t, nil)})
	const frame = "import json, os, time\ndef put(b): os.write(3, len(b).to_bytes(4, 'big') + b)\n" +
		"def get():\n  n = int.from_bytes(os.read(3, 4), 'big')\n  return json.loads(os.read(3, n))\n"
	const call = `b'{"type":"call","id":%s,"method":"call_tool","params":{"server":"filesystem","tool":"list_directory"}}'`
	for name, tt := range map[string]struct{ code, status, want string }{
		"deep JSON":             {"put(b'{\"params\":' + b'[' * 1_000_000)\ntime.sleep(20)", "error", "connection"},
		"deep JSON, balanced":   {"put(b'{\"type\":\"call\",\"params\":' + b'[' * 100_000 + b']' * 100_000 + b'}')\ntime.sleep(20)", "error", "connection"},
		"id beyond 64 bits":     {"put(" + fmt.Sprintf(call, "99999999999999999999") + ")\ntime.sleep(20)", "error", "connection"},
		"id with a fraction":    {"put(" + fmt.Sprintf(call, "1.5") + ")\ntime.sleep(20)", "error", "connection"},
		"negative id":           {"put(" + fmt.Sprintf(call, "-5") + ")\nprint(get()['id'], 'end')", "success", "-5 end"},
		"same id twice":         {"put(" + fmt.Sprintf(call, "5") + ")\nput(" + fmt.Sprintf(call, "5") + ")\nprint('error' in get(), 'error' in get())", "success", "True True"},
		"no length":             {"os.write(3, b'\\0\\0')\nos._exit(7)", "error", "7"},
		"cut short":             {"os.write(3, (1000).to_bytes(4, 'big') + b'{}')\nos._exit(7)", "error", "7"},
		"not UTF-8":             {"put(b'{\"type\":\"call\",\"method\":\"\\xff\\xfe\"}')\nprint('error' in get())", "success", "True"},
		"two types":             {"put(b'{\"type\":\"call\",\"type\":\"start\"}')\ntime.sleep(20)", "error", "connection"},
		"done, then a call":     {"put(b'{\"type\":\"done\",\"exitCode\":0}')\nput(" + fmt.Sprintf(call, "5") + ")\nprint('refused' if 'error' in get() else 'answered')\nos._exit(0)", "success", "refused"},
		"done, with no result":  {"put(b'{\"type\":\"done\",\"result\":{\"path\":\"/etc/passwd\"}}')\nos._exit(0)", "success", "no output"},
		"done, with a template": {"put(b'{\"type\":\"done\",\"result\":\"{{.Env}} $HOME %s %n\"}')\nos._exit(0)", "success", "{{.Env}} $HOME %s %n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.python(t, frame+tt.code)
			if r.status() != tt.status || !strings.Contains(r.text, tt.want) {
				t.Errorf("got %.2000s\nwant %s and %q", r.text, tt.status, tt.want)
			}
			c.python(t, "print('next')").want(t, "next")
		})
	}
}
