// Package hints suggests, in one sentence, how to fix what models often get wrong:
// a module that the image lacks, the network, a variable of an earlier call.
//
// A hint is right whenever it is given: where the texts of a run do not say clearly
// what went wrong, there is none. The table in docs/results.md has all of them, and a
// test compares the two.
package hints

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// A Case is what is known of a run that has ended. All texts may be forged by its code.
type Case struct {
	Failed    bool     // by an error of its code
	Error     string   // the exception, with what Python or the runner suggests
	ToolValue bool     // it arose where the code takes a tool's value for the protocol's result
	HoldsJSON bool     // it arose where the code takes a text for the JSON in it
	JSONText  string   // what the code calls that text; may be ""
	Unawaited string   // the call that the code takes for its value
	InDef     bool     // where the code cannot await it
	Planned   bool     // it was a dry run in which calls were not made
	Stdout    []string // lines
	Stderr    []string // lines
	Code      string
	Image     string // its name, "host" for the host's Python
	// Packages reports whether the code would get a package that its header names. It
	// is nil if no code gets any.
	Packages func(name string) bool
	// Listed reports whether the user has named a package in the policy. It may be nil.
	Listed  func(name string) bool
	Network bool // the run could reach some host

	Lookup     func(nameOrAlias string) (config.Server, error) // finds a server
	Granted    map[string]bool                                 // names of the servers that the run could call
	Mounted    []string                                        // where the user's files are in the sandbox
	Project    string                                          // where the client's folder is in it, "" if it is not shown
	Folder     string                                          // that folder on the host; "" if it is not known
	NoProject  bool                                            // the user has not set that it be shown
	NotShown   bool                                            // the user has, and this run is not shown it: a note says why
	Written    *Names                                          // files that earlier runs have left in /workspace/out
	Earlier    *Names
	Session    string                 // that the run was in
	Live       func(name string) bool // reports whether a session goes on
	NoSessions bool                   // they are switched off
}

// Bounds on what is looked at, in bytes: what is longer has its reason at the end of its
// output, and at the beginning of its error.
const (
	maxError  = 16 << 10
	maxOutput = 64 << 10 // of stdout, and of stderr
	maxCode   = 128 << 10
)

// lastLines returns the last lines that have maxOutput bytes together.
func lastLines(lines []string) []string {
	size := 0
	for i, line := range slices.Backward(lines) {
		if size += len(line) + 1; size > maxOutput {
			return lines[i+1:]
		}
	}
	return lines
}

// For returns the hint for a run, or "".
func For(r Case) string {
	r.Error, r.Code = r.Error[:min(len(r.Error), maxError)], r.Code[:min(len(r.Code), maxCode)]
	r.Stdout, r.Stderr = lastLines(r.Stdout), lastLines(r.Stderr)
	if r.Failed {
		for _, rule := range []func(Case) string{
			plannedResult, missingModule, missingMember, missingName, noTool, jsonText, toolValue, unawaited, callShape, ipythonLine, awaitInFunction, noInput,
		} {
			if hint := rule(r); hint != "" {
				return hint
			}
		}
	}
	for _, rule := range []func(Case) string{installer, network, missingFile, plotlyShow} {
		if hint := rule(r); hint != "" {
			return hint
		}
	}
	return ""
}

// Silent is the hint for a run whose time was up while it waited for a server.
func Silent(server string, since time.Duration) string {
	return fmt.Sprintf("server %q has not answered since it was started %d s ago; to see why, the user can run: toolcell servers check %s",
		server, int(since.Seconds()), text.ShellWord(server))
}

// Compiling is the hint for a run whose time was up while the modules of its image
// were being compiled, if its stack shows an import; or "".
func Compiling(stack []string) string {
	if !slices.ContainsFunc(stack, importing().MatchString) {
		return ""
	}
	return "the modules of this new image were still being compiled in the background, so imports were slow: the next try is faster"
}

// importing finds a line of the code's own that imports.
var importing = text.Pattern(`^(?:\S+ )?line \d+, in [^:]+: .*\b(?:import|import_module|__import__)\b`)

// callShape is for call_tool with other arguments than it takes.
func callShape(r Case) string {
	if !strings.HasPrefix(r.Error, "TypeError: ") || !strings.Contains(r.Error, "call_tool()") {
		return ""
	}
	server, tool := `"server"`, `"tool"`
	if found := dottedTool().FindStringSubmatch(r.Code); found != nil {
		server, tool = `"`+found[1]+`"`, `"`+found[2]+`"`
	}
	return "call_tool takes server, tool and arguments separately: await runtime.call_tool(" + server + ", " + tool + `, {"name": value})`
}

var dottedTool = text.Pattern(`call_tool\(\s*["']([\w-]{1,60})\.([\w.-]{1,100})["']`)

// toolValue is for code that looks for the protocol's result.
func toolValue(r Case) string {
	if !r.ToolValue {
		return ""
	}
	return "a tool returns its value, not the protocol's result: use it as it is, without .content or [\"content\"]; " +
		"the server's whole answer is at .raw"
}

// jsonText is for code that takes a text for the JSON that it holds: servers say that a
// tool returns a text, and give JSON in it.
func jsonText(r Case) string {
	if !r.HoldsJSON {
		return ""
	}
	hint := "the tool returns a text, as its server says, and it holds JSON: json.loads reads it"
	if callName().MatchString(r.JSONText) {
		hint = fmt.Sprintf("%s is a text that holds JSON: json.loads(%[1]s) reads it", r.JSONText)
	}
	if !importsJSON().MatchString(r.Code) {
		hint += ", after import json"
	}
	return hint
}

// plannedResult is for code of a dry run that needs the result of a call that was not made.
func plannedResult(r Case) string {
	if !r.Planned || !ofPlanned().MatchString(r.Error) {
		return ""
	}
	return "in a dry run the result of a call that may change something can be passed on and written into texts, no more: the plan ends where the code needs to know it"
}

// ofPlanned finds errors of code that has the placeholder of a result: most name its type, and
// some only the type that they want.
var ofPlanned = text.Pattern(`\bPlannedResult\b|stands for the result of a call|\bargument must be (?:a |an )?(?:str|string|int|float|bytes|list)\b|can only join an iterable$`)

// unawaited is for a call without await, where its value is needed.
func unawaited(r Case) string {
	if !callName().MatchString(r.Unawaited) {
		return ""
	}
	if r.InDef {
		return fmt.Sprintf("%s() is a coroutine, and await works in an async def only: here, write asyncio.run(%[1]s(…))", r.Unawaited)
	}
	return fmt.Sprintf("%s() is a coroutine: write await %[1]s(…)", r.Unawaited)
}

// plotlyShow is for figures of plotly that are shown by their own method: it looks for a
// browser, and says nothing if there is none.
func plotlyShow(r Case) string {
	if !ofPlotly().MatchString(r.Code) || keepsFigure().MatchString(r.Code) {
		return ""
	}
	for _, found := range showCall().FindAllStringSubmatch(r.Code, -1) {
		if !slices.Contains([]string{"plt", "pyplot", "im", "img", "image"}, found[1]) { // matplotlib's, and Pillow's
			return `.show() of plotly opens a browser, which the sandbox does not have: keep the figure with fig.write_html("/workspace/out/figure.html")`
		}
	}
	return ""
}

var (
	ofPlotly    = text.Pattern(`\bplotly\b`)
	keepsFigure = text.Pattern(`\.(?:write_html|to_html|write_image|to_image)\(`)
	showCall    = text.Pattern(`(\w*)[)\]]*\.show\(`)
)

// noInput is for input() when there is nothing to read.
func noInput(r Case) string {
	if !strings.HasPrefix(r.Error, "EOFError: EOF when reading a line") {
		return ""
	}
	return "input() has nothing to read, and the user cannot type an answer: put the value into the code, or ask the user first"
}

var importsJSON = text.Pattern(`(?m)^[ \t]*import[ \t]+(?:[\w., \t]+,[ \t]*)?json\b`)

var callName = text.Pattern(`^[[:print:]]{1,200}$`)
