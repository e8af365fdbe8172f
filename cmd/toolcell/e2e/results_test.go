package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTimeoutSaysWhereTheCodeWas looks at sandboxes of every kind: each has its
// own way from the host to the code's process.
func TestTimeoutSaysWhereTheCodeWas(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host"})
		c.python(t, "1").want(t, "1") // what is slow about a first start does not count
		for name, tt := range map[string][2]string{
			"asleep":       {"import time\ndef nap():\n    time.sleep(60)\nnap()", "line 4, in <module>: nap()\n  line 3, in nap: time.sleep(60)"},
			"busy in C":    {"total = sum(range(10**13))", "line 1, in <module>: total = sum(range(10**13))"},
			"awaiting":     {"async def f():\n    await asyncio.sleep(60)\nawait f()", "line 3, in <module>: await f()\n  line 2, in f: await asyncio.sleep(60)"},
			"a subprocess": {"import subprocess\nsubprocess.run(['sleep', '60'])", "line 2, in <module>: subprocess.run(['sleep', '60'])"},
		} {
			start := time.Now()
			r := c.call(t, map[string]any{"code": tt[0], "timeout": seconds(3)})
			if r.status() != "timeout" || !strings.Contains(r.text, "it was at:\n  "+tt[1]) {
				t.Errorf("%s: %s", name, r.text)
			}
			if took := time.Since(start); took > slow(45*time.Second) {
				t.Errorf("%s: it took %s", name, took)
			}
		}
	})
}

// TestErrorsSayWhatToDo: the text that a model reads of an error.
func TestErrorsSayWhatToDo(t *testing.T) {
	c := firstHost(t).serve(t, env{"TOOLCELL_IMAGE": "host"})
	for code, want := range map[string]string{
		"row = {'title': 1}\nrow['titel']": "KeyError: 'titel'. Did you mean: 'title'?",
		"pirnt(1)":                         "NameError: name 'pirnt' is not defined. Did you mean: 'print'?",
		"import json\njson.loads('{')":     "line 2, in <module>\n    json.loads('{')\n",
		"import polars":                    "hint: the host's Python does not have polars: begin the code with three lines, # /// script, # dependencies = [\"polars\"] and # ///",
		"import no_such_package":           "hint: the host's Python does not have no_such_package, and no well-known package is called so: check the name",
	} {
		r := c.python(t, code)
		if r.status() != "error" || !strings.Contains(r.text, want) || strings.Contains(r.text, "toolcell_runner") {
			t.Errorf("%s\ngave:\n%s\nwant %s", code, r.text, want)
		}
	}
	c.python(t, "[{'id': n, 'name': 'a name that is rather long ' + str(n)} for n in range(2)]").want(t,
		"[{'id': 0, 'name': 'a name that is rather long 0'},\n {'id': 1, 'name': 'a name that is rather long 1'}]")
}

// TestProjectsHaveTheirOwnSavedTools starts servers in two projects and in none.
func TestProjectsHaveTheirOwnSavedTools(t *testing.T) {
	h := firstHost(t)
	serveIn := func(dir string) *client {
		if err := os.MkdirAll(filepath.Join(h.home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := h.command(t, env{"TOOLCELL_IMAGE": "host"}, "serve")
		cmd.Dir = filepath.Join(h.home, dir)
		return connect(t, cmd)
	}
	if err := os.MkdirAll(filepath.Join(h.home, "shop", ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	const save = "from mcp import runtime\nimport math\n@runtime.save_tool\ndef area(r: float) -> float:\n    '''Area of a circle.'''\n    return math.pi * r * r"
	serveIn("shop").python(t, save).want(t, "Success (no output)")
	r := serveIn("shop/src").python(t, "from mcp import runtime\nfor hit in await runtime.search_tool_docs('surface of a circle'): print(hit.server, hit.tool)\nround(area(2), 2)")
	r.want(t, "user_tools area\n12.57")
	for _, other := range []string{"desk", "."} {
		serveIn(other).python(t, "from mcp import runtime\nruntime.saved_tools()").want(t, "()")
	}
	c := serveIn("shop")
	c.python(t, "from mcp import runtime\nprint(runtime.export_tools())\nruntime.remove_tool('area')\nruntime.saved_tools()").want(t,
		"\"\"\"Functions saved by run_python.\"\"\"\n\n\nimport math as math\ndef area(r: float) -> float:\n    '''Area of a circle.'''\n    return math.pi * r * r\n()")
}

// TestClientFollowsALongRun: what a run prints reaches a client that gave a
// token during the run, and its numbers rise.
func TestClientFollowsALongRun(t *testing.T) {
	heard := heardProgress(t, firstHost(t), env{"TOOLCELL_IMAGE": "host"}, map[string]any{
		"code": "import time\nfor n in range(10):\n    print('step', n)\n    time.sleep(0.2)",
	})
	last, text := -1.0, ""
	for _, p := range heard {
		if p.Progress <= last {
			t.Errorf("%v comes after %v", p.Progress, last)
		}
		last = p.Progress
		text += p.Message + "\n"
	}
	if len(heard) < 2 || len(heard) > 8 || !strings.Contains(text, "step 0") {
		t.Errorf("%d notifications:\n%s", len(heard), text)
	}
}

// TestOutputModesOfAServer: the form is that of the setting, whatever the
// result is.
func TestOutputModesOfAServer(t *testing.T) {
	h := firstHost(t)
	for mode, want := range map[string]string{
		"toon":    "```toon\nstatus: success\nsummary: Success\nexitCode: 0\nstdout[2]: a,\"b, c\"\nresult: \"[1, 2]\"\n",
		"json":    "\"stdout\": [\n    \"a\",\n    \"b, c\"\n  ],\n",
		"compact": "a\nb, c\n[1, 2]",
	} {
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_OUTPUT": mode})
		if r := c.python(t, "print('a')\nprint('b, c')\n[1, 2]"); r.isError || !strings.Contains(r.text, want) {
			t.Errorf("%s: %s\nwant %s", mode, r.text, want)
		}
	}
}
