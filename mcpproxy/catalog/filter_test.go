package catalog

import (
	"slices"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestFilterShowsWhatItAllows(t *testing.T) {
	for name, tt := range map[string]struct {
		allow, deny, want []string
	}{
		"no filter":       {nil, nil, []string{"get_a", "get_b", "put_a"}},
		"allowed":         {[]string{"get_*"}, nil, []string{"get_a", "get_b"}},
		"allowed one":     {[]string{"nope", "put_?"}, nil, []string{"put_a"}},
		"none allowed":    {[]string{}, nil, nil},
		"denied":          {nil, []string{"get_*"}, []string{"put_a"}},
		"denied of these": {[]string{"get_*"}, []string{"*_b"}, []string{"get_a"}},
	} {
		f := filterOf(config.Server{AllowTools: tt.allow, DenyTools: tt.deny, Source: "x.json"})
		var shown []string
		for _, tool := range listOf(t, f, "get_a", "get_b", "put_a").All() {
			shown = append(shown, tool.Name)
		}
		if !slices.Equal(shown, tt.want) {
			t.Errorf("%s: shown are %q, want %q", name, shown, tt.want)
		}
	}
}

func TestMissingSaysWhyAToolIsNotThere(t *testing.T) {
	allow := func(names ...string) toolFilter { return toolFilter{allow: names, source: "x.json"} }
	deny := func(name string) toolFilter { return toolFilter{deny: []string{name}, source: "x.json"} }
	for name, tt := range map[string]struct {
		filter toolFilter
		tools  []string
		want   string // of a call of "put"
	}{
		"hidden":           {allow("get"), []string{"get", "put"}, `tool "put" of server "s" is hidden: x.json allows only "get"`},
		"all are hidden":   {allow([]string{}...), []string{"get", "put"}, `hidden: x.json allows no tool of this server`},
		"all others are":   {allow("put"), []string{"get"}, `server "s" has no tool "put", and all of its tools are hidden: x.json allows only "put"`},
		"others are":       {deny("drop"), []string{"get", "drop"}, `server "s" has no tool "put"; the nearest are "get"`},
		"there are no":     {toolFilter{}, nil, `server "s" has no tool "put": it has no tools`},
		"its name in code": {deny("PUT"), []string{"get", "PUT"}, `tool "PUT" of server "s" is hidden`},
	} {
		t.Run(name, func(t *testing.T) {
			mcptest.WantError(t, listOf(t, tt.filter, tt.tools...).Missing("s", "put"), tt.want)
		})
	}
}
