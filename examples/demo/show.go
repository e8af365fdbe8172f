package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func say(step string) { fmt.Printf("\n%s\n", step) }

// show prints text set in by the width of a step's number.
func show(text string) {
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		fmt.Println(strings.TrimRight("   "+line, " "))
	}
}

func showProgress(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
	p := req.Params
	line := cmp.Or(p.Message, "working")
	if p.Total > 0 {
		line += fmt.Sprintf(" (%.0f %%)", 100*p.Progress/p.Total)
	}
	show("… " + line)
}

// table is a list of stages and how long each took.
type table []string

func (t *table) add(stage string, d time.Duration) {
	t.addText(stage, fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000))
}

func (t *table) addText(stage, ms string) {
	*t = append(*t, fmt.Sprintf("%-40s %12s", stage, ms))
}

// takeStages moves the lines "stage: name = 1.2 ms" of a script's answer into
// the table and returns the rest.
func (t *table) takeStages(answer string) string {
	var rest []string
	for line := range strings.SplitSeq(answer, "\n") {
		stage, isStage := strings.CutPrefix(line, "stage: ")
		name, ms, ok := strings.Cut(stage, " = ")
		if isStage && ok {
			t.addText("  in the script: "+name, ms)
		} else {
			rest = append(rest, line)
		}
	}
	return strings.Join(rest, "\n")
}

func (t *table) String() string { return strings.Join(*t, "\n") }
