package stdio

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
)

// TestReasonOfAServersEnd in what runtimes and installers write.
func TestReasonOfAServersEnd(t *testing.T) {
	for _, tt := range []struct{ name, output, want string }{
		{"one line", "API_KEY is missing", "API_KEY is missing"},
		{"nothing that sounds like one", "starting\nbye", "bye"},
		{"Python", `Traceback (most recent call last):
  File "/s.py", line 4, in <module>
    raise ConnectionError("cannot reach db")
ConnectionError: cannot reach db`, "ConnectionError: cannot reach db"},
		{"Python, an unusual class", `Traceback (most recent call last):
  File "/s.py", line 4, in <module>
    connect()
asyncpg.Refused: db.internal:5432`, "asyncpg.Refused: db.internal:5432"},
		{"Python, a cause", `Traceback (most recent call last):
  File "/s.py", line 2, in <module>
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/s.py", line 4, in <module>
SystemError: the last one`, "SystemError: the last one"},
		{"Python, pydantic", `Traceback (most recent call last):
  File "/s.py", line 4, in <module>
pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings
api_key
  Field required [type=missing, input_value={}, input_type=dict]
    For further information visit https://errors.pydantic.dev`, "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings api_key   Field required [type=missing, input_value={}, input_type=dict]     For further information visit https://errors.pydantic.dev"},
		{"Python, a group", `  + Exception Group Traceback (most recent call last):
  |   File "/s.py", line 9, in <module>
  |     asyncio.run(main())
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/s.py", line 4, in main
    |     raise ValueError("no token")
    | ValueError: no token
    +------------------------------------`, "ValueError: no token"},
		{"Node.js", `node:internal/modules/cjs/loader:1143
  throw err;
  ^

Error: Cannot find module '/x/y.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1140:15)
    at error (node:internal/main)
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v24.1.0`, "Error: Cannot find module '/x/y.js'"},
		{"Node.js, thrown", `/s.js:3
throw new TypeError("TOKEN is required");
^

TypeError: TOKEN is required
    at Object.<anonymous> (/s.js:3:7)

Node.js v24.1.0`, "TypeError: TOKEN is required"},
		{"npm", `npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/nope - Not found
npm error 404
npm error 404  'nope@*' is not in this registry.
npm error A complete log of this run can be found in: /root/.npm/_logs/x.log`, "npm error 404 Not Found - GET https://registry.npmjs.org/nope - Not found"},
		{"npm, older", `npm ERR! code EACCES
npm ERR! syscall mkdir
npm ERR! Your cache folder contains root-owned files
npm ERR! A complete log`, "npm ERR! Your cache folder contains root-owned files"},
		{"uvx", `  × No solution found when resolving tool dependencies:
  ╰─▶ Because nope was not found in the package registry and you require nope,
      we can conclude that your requirements are unsatisfiable.`, "No solution found when resolving tool dependencies: Because nope was not found in the package registry and you require nope, we can conclude that your requirements are unsatisfiable."},
		{"a traceback whose head is cut off", `    raise ValueError("x")
ValueError: x`, "ValueError: x"},
		{"a traceback whose end is missing", `Traceback (most recent call last):
  File "/s.py", line 4, in <module>`, `File "/s.py", line 4, in <module>`},
		{"a log line", "2026-01-01 INFO starting\n2026-01-01 ERROR port 80 is taken\n2026-01-01 INFO bye", "2026-01-01 ERROR port 80 is taken"},
		{"empty", "", ""},
	} {
		if got := reasonIn(tt.output); got != tt.want {
			t.Errorf("%s: %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

// TestColorsOfAServerAreLeftOut, and with them no secret comes to light.
func TestColorsOfAServerAreLeftOut(t *testing.T) {
	d := newOutputTail("s", redact.New(config.Server{Env: map[string]string{"KEY": "private"}}), slog.New(slog.DiscardHandler))
	for _, line := range []string{"\x1b[31mError:\x1b[0m no \x1b]0;title\x07config\n", "  at f\n", "my pri\x1b[1mvate key\n", "\x1b[0m\n"} {
		d.add("stderr", []byte(line))
	}
	if got, want := d.last(), "Error: no config\n  at f\nmy [KEY] key"; got != want {
		t.Errorf("the output is %q, want %q", got, want)
	}
	if strings.Contains(d.last(), "\x1b") {
		t.Error("it has escapes")
	}
}
