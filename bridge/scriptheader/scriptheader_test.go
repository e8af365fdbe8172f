package scriptheader

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func header(lines ...string) string {
	return "# /// script\n# " + strings.Join(lines, "\n# ") + "\n# ///\nprint(1)\n"
}

func TestHeaderNamesPackages(t *testing.T) {
	for code, want := range map[string]string{
		"print(1)":                      "nothing",
		"# /// other\n# x = 1\n# ///\n": "nothing",
		header(`requires-python = ">=3.11"`, `dependencies = ["pandas>=2", "Plotly"]`):                ">=3.11 [pandas>=2 plotly]",
		header(`dependencies = [`, `  "six",`, `]`):                                                   " [six]",
		strings.ReplaceAll(header(`dependencies = ["six"]`), "\n", "\r\n"):                            " [six]",
		"#!/usr/bin/env -S uv run\n" + header(`dependencies = ["six"]`, `[tool.ruff]`, `index = "x"`): " [six]",
		header(`dependencies = []`, `[tool.uv]`, `cache-keys = []`):                                   " []",
		"# /// script\n#\n# dependencies = []\n#\n# ///\n":                                            " []",
		// A line that only looks like the end is part of the block (PEP 723).
		"# /// script\n# dependencies = ['six']\n# ///\n# # ///\n# ///\n": "error",
		// What is in the block of another kind is no header, and what follows it is one.
		"# /// other\n# /// script\n# dependencies = ['six']\n# ///\n":       "nothing",
		"# /// other\n# x = 1\n# ///\n\n" + header(`dependencies = ["six"]`): " [six]",
		"# /// other\nx = 1\n" + header(`dependencies = ["six"]`):            " [six]",
		"x = '# /// script'": "nothing",
	} {
		h, err := Parse(code)
		got := "nothing"
		switch {
		case err != nil:
			got = "error"
		case h != nil:
			got = fmt.Sprintf("%s %v", h.Python, h.Dependencies)
		}
		if got != want {
			t.Errorf("%q: got %q, %v; want %q", code, got, err, want)
		}
	}
}

func TestHeaderThatNamesSomethingElseIsRefused(t *testing.T) {
	for code, want := range map[string]string{
		header(`dependencies = ["x @ https://evil/x.whl"]`):                                               `line 1 of its TOML: dependencies: "x @ https://evil/x.whl": `,
		header(`dependencies = ["-r other.txt"]`):                                                         "options",
		header(`dependencies = ["./x"]`):                                                                  "paths",
		header(`dependencies = ["a\n-r b"]`):                                                              "one line",
		header(`dependencies = "pandas"`):                                                                 "list of strings",
		header(`dependencies = [1]`):                                                                      "dependencies: it must be a string, not a number",
		header(`requires-python = 3`):                                                                     "must be a string",
		header(`requires-python = "3.11"`):                                                                `requires-python: "3.11"`,
		header(`dependancies = []`):                                                                       "dependancies: there is no such key; the keys are requires-python, dependencies, tool",
		header(`dependencies = [`):                                                                        "line ",
		header(`[tool.uv]`, `index-url = "https://evil"`):                                                 "[tool.uv] index-url",
		header(`[[tool.uv.index]]`, `url = "https://evil"`):                                               "[tool.uv] index",
		header(`[tool.uv.sources]`, `x = { git = "https://evil" }`):                                       "[tool.uv] sources",
		header(`[tool.uv]`, `override-dependencies = ["x==1"]`):                                           "[tool.uv] override-dependencies",
		header(`[tool.uv]`, `find-links = ["https://evil"]`):                                              "[tool.uv] find-links",
		header(`dependencies = []`) + "\n" + header(`dependencies = []`):                                  "more than one",
		"# /// script\n# dependencies = []\nprint(1)":                                                     "is not complete",
		"# /// script\n#dependencies = ['six']\n# ///\n":                                                  "each further one begins with",
		"#/// script\n# dependencies = ['six']\n# ///\n":                                                  `its first line is "# /// script"`,
		"#///script\n# dependencies = ['six']\n# ///\n":                                                   `its first line is "# /// script"`,
		"# ///\tscript\n# dependencies = ['six']\n# ///\n":                                                `its first line is "# /// script"`,
		"# /// other\n# /// script\n# dependencies = ['six']\nprint(1)":                                   "is not complete",
		"# /// script\n# ///\n":                                                                           "is not complete",
		"# /// script\n# dependencies = ['six']\n# ///\n# /// script\n# dependencies = ['idna']\n# ///\n": "more than one",
		header(`[tool]`, `uv = 3`):                                                                        "line 2 of its TOML: [tool] uv: it must be a table, not a number",
		header(`[tool.uv]`, `prerelease = "allow"`):                                                       "line 2 of its TOML: [tool.uv] prerelease: it is not supported",
		header(`[tool.uv]`, `resolution = "lowest"`):                                                      "line 2 of its TOML: [tool.uv] resolution: it is not supported",
		header(`[tool.uv]`, `torch-backend = "cpu"`):                                                      "line 2 of its TOML: [tool.uv] torch-backend: it is not supported",
		header(`[tool.uv]`, `no-binary = true`):                                                           "line 2 of its TOML: [tool.uv] no-binary: it is not supported",
		header(`[tool.uv]`, `http-proxy = "http://evil"`):                                                 "line 2 of its TOML: [tool.uv] http-proxy: it is not supported",
		header(`[tool.uv]`, `of-a-later-version = 1`):                                                     "line 2 of its TOML: [tool.uv] of-a-later-version: it is not supported",
		header(`[tool.uv]`, `exclude-newer-package = {x = "2024-01-01"}`):                                 "line 2 of its TOML: [tool.uv] exclude-newer-package: it is not supported",
		header(`[tool.uv]`, `exclude-newer = "1 week"`):                                                   "exclude-newer: it must be a string with a date or a time",
		header(`[tool.uv]`, `exclude-newer = "9999-12-31"`):                                               "exclude-newer: it must be a string with a date or a time",
		header(`[tool.uv]`, `exclude-newer = "9999-12-31T23:59:59-01:00"`):                                "exclude-newer: it must be a string with a date or a time",
		header(`[tool.uv]`, `exclude-newer = "0000-01-01T00:00:00+01:00"`):                                "exclude-newer: it must be a string with a date or a time",
		header(`[tool.uv]`, `exclude-newer = 2024-01-01`):                                                 "exclude-newer: it must be a string",
		header(strings.Repeat("x", 70_000)):                                                               "it has more than 64 KiB",
		header("dependencies = [" + strings.Repeat(`"a",`, 201) + "]"):                                    "the most is 200",
	} {
		if h, err := Parse(code); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: got %v, %v; want %q", code, h, err, want)
		}
	}
}

func TestUploadsUpToATimeCount(t *testing.T) {
	for value, want := range map[string]string{
		"2024-01-01":                "2024-01-02T00:00:00Z",
		"2024-01-01T10:00:00Z":      "2024-01-01T10:00:00Z",
		"2024-01-01T10:00:00+02:00": "2024-01-01T08:00:00Z",
	} {
		h, err := Parse(header(`dependencies = ["six"]`, `[tool.uv]`, `exclude-newer = "`+value+`"`, `compile-bytecode = true`))
		if err != nil || h.Before.Format(time.RFC3339) != want {
			t.Errorf("%s: got %+v, %v; want %s", value, h, err, want)
		}
	}
	if h, err := Parse(header(`dependencies = ["six"]`)); err != nil || !h.Before.IsZero() {
		t.Errorf("without it: got %+v, %v", h, err)
	}
}

// TestHeaderOfNestedTablesIsRefusedAtOnce has headers that another decoder of TOML took 10 s and 560 MiB for.
func TestHeaderOfNestedTablesIsRefusedAtOnce(t *testing.T) {
	for _, toml := range []string{
		"x = " + strings.Repeat("{a=", 5000),
		"x = " + strings.Repeat("{a=", 5000) + "1" + strings.Repeat("}", 5000),
		"a" + strings.Repeat(".a", 20_000) + " = 1",
		"[a" + strings.Repeat(".a", 20_000) + "]",
	} {
		if h, err := Parse(header(toml)); err == nil || !strings.Contains(err.Error(), "the # /// script header: line 1 of its TOML: ") {
			t.Errorf("%.40q: got %v, %.200v", toml, h, err)
		}
	}
}
