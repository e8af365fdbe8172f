package signals

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// nameConstants are the strings in names.go: the names of attributes, those of spans and metrics, and the
// values of attributes that others use.
func nameConstants(t *testing.T) (attributes, others, values []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "names.go", nil, 0)
	if err != nil {
		t.Skip("needs the source")
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		text, ok := spec.Values[0].(*ast.BasicLit)
		if !ok || text.Kind != token.STRING {
			return true
		}
		value, err := strconv.Unquote(text.Value)
		switch {
		case err != nil:
			t.Fatal(err)
		case strings.HasPrefix(spec.Names[0].Name, "attr"):
			attributes = append(attributes, value)
		case strings.HasPrefix(spec.Names[0].Name, "span"), strings.HasPrefix(spec.Names[0].Name, "metric"):
			others = append(others, value)
		case spec.Names[0].IsExported():
			values = append(values, value)
		}
		return true
	})
	return attributes, others, values
}

// TestDocumentHasAllNames that are exported, and no others.
func TestDocumentHasAllNames(t *testing.T) {
	doc, err := os.ReadFile("../../docs/observability.md")
	if err != nil {
		t.Skip("needs the source")
	}
	attributes, others, values := nameConstants(t)
	known := map[string]bool{}
	for _, name := range append(attributes, others...) {
		if known[name] = true; !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("docs/observability.md does not have `%s`", name)
		}
	}
	for _, value := range values {
		if !strings.Contains(string(doc), "`"+value+"`") {
			t.Errorf("docs/observability.md does not have the value `%s`", value)
		}
	}
	for _, name := range regexp.MustCompile("`((?:toolcell|mcp|gen_ai)\\.[a-z_.]+)`").FindAllStringSubmatch(string(doc), -1) {
		if !known[name[1]] {
			t.Errorf("docs/observability.md has `%s`, which is not exported", name[1])
		}
	}
}

// prometheusNames are the names that Prometheus gives a metric.
func prometheusNames(m Metric) []string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	switch m.Kind {
	case UpDown:
		return []string{name}
	case Counter:
		return []string{name + "_total"}
	}
	name += map[string]string{"s": "_seconds", "By": "_bytes"}[m.Unit]
	return []string{name + "_bucket", name + "_count", name + "_sum"}
}

// TestDashboardAsksForWhatThereIs: metrics and labels as Prometheus has them, and each metric at
// least once.
func TestDashboardAsksForWhatThereIs(t *testing.T) {
	text, err := os.ReadFile("../../docs/observability/dashboard.json")
	if err != nil {
		t.Skip("needs the source")
	}
	var board struct {
		Title  string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil || board.Title == "" || len(board.Panels) == 0 {
		t.Fatalf("%d panels of %q, %v", len(board.Panels), board.Title, err)
	}
	series, labels := map[string]string{}, map[string]bool{"job": true, "le": true}
	for _, m := range Metrics {
		for _, name := range prometheusNames(m) {
			series[name] = m.Name
		}
	}
	attributes, _, _ := nameConstants(t)
	for _, a := range attributes {
		labels[strings.ReplaceAll(a, ".", "_")] = true
	}
	asked := map[string]bool{}
	for _, p := range board.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%s asks for nothing", p.Title)
		}
		for _, target := range p.Targets {
			for _, name := range regexp.MustCompile(`\b[a-z]+_[a-z_]+\b`).FindAllString(target.Expr, -1) {
				if series[name] != "" {
					asked[series[name]] = true
				} else if !labels[name] && name != "histogram_quantile" && name != "group_left" && name != "sort_desc" && name != "__rate_interval" {
					t.Errorf("%s asks for %s, which there is not", p.Title, name)
				}
			}
		}
	}
	for _, m := range Metrics {
		if !asked[m.Name] {
			t.Errorf("no panel asks for %s", m.Name)
		}
	}
}
