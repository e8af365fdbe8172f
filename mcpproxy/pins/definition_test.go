package pins

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/seeds"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

func define(tb testing.TB, raw string) Definition {
	tb.Helper()
	d, err := Define(json.RawMessage(raw))
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func TestOrderAndSpaceAreNoChange(t *testing.T) {
	const tool = `{"name":"a","description":"Gets A","inputSchema":{"type":"object","properties":{"x":{"type":"number","maximum":1.0},"y":{}},"required":["x","y"]}}`
	same := define(t, tool).Digest
	for name, tt := range map[string]struct {
		raw  string
		same bool
	}{
		"the same":              {tool, true},
		"another order, spaced": {`{ "inputSchema" : {"required":["x", "y"],"properties":{"y":{ },"x":{"maximum":1.0,"type":"number"}},"type":"object"}, "description":"Gets A","name":"a" }`, true},
		"escapes":               {strings.Replace(tool, "Gets A", `G\u0065ts A`, 1), true},
		"nothing more":          {strings.Replace(tool, `"name"`, `"title":null,"annotations":null,"name"`, 1), true},
		"what is not pinned":    {strings.Replace(tool, `"name"`, `"_meta":{"a":1},"icons":[],"name"`, 1), true},
		"description":           {strings.Replace(tool, "Gets A", "Gets a", 1), false},
		"space in a text":       {strings.Replace(tool, "Gets A", "Gets  A", 1), false},
		"order of a list":       {strings.Replace(tool, `["x","y"]`, `["y","x"]`, 1), false},
		"a number":              {strings.Replace(tool, "1.0", "1", 1), false},
		"name of a property":    {strings.Replace(tool, `"y":{}`, `"z":{}`, 1), false},
		"a type":                {strings.Replace(tool, `"number"`, `"string"`, 1), false},
		"title":                 {strings.Replace(tool, `"name"`, `"title":"A","name"`, 1), false},
		"annotations":           {strings.Replace(tool, `"name"`, `"annotations":{"readOnlyHint":true},"name"`, 1), false},
		"output schema":         {strings.Replace(tool, `"name"`, `"outputSchema":{},"name"`, 1), false},
		"a member twice":        {strings.Replace(tool, `"description"`, `"description":"Other","description"`, 1), false},
		"in capitals":           {strings.Replace(tool, `"description":"Gets A"`, `"description":"Gets A","DESCRIPTION":"Other"`, 1), false},
		"twice in the schema":   {strings.Replace(tool, `"type":"number"`, `"type":"string","type":"number"`, 1), false},
		"emptied by a repeat":   {strings.Replace(tool, `"name"`, `"title":"A","title":"","name"`, 1), false},
		"half a character":      {strings.Replace(tool, "Gets A", `Gets \ud800`, 1), false},
	} {
		if got := define(t, tt.raw).Digest == same; got != tt.same {
			t.Errorf("%s: the same: %t, want %t", name, got, tt.same)
		}
	}
	// Of what is not Unicode, each is another.
	if define(t, `{"name":"a","title":"\ud800"}`).Digest == define(t, `{"name":"a","title":"\ud801"}`).Digest {
		t.Error("halves of characters are alike")
	}
	if define(t, `{"name":"a","inputSchema":{"ab":"c"}}`).Digest == define(t, `{"name":"a","inputSchema":{"a":"bc"}}`).Digest {
		t.Error("names run into values")
	}
}

// TestWhatDiffersHasAnotherDigest, even if it is written so that its parts look alike.
func TestWhatDiffersHasAnotherDigest(t *testing.T) {
	for name, tt := range map[string][2]string{
		"member":                   {`{"name":"a","title":"x"}`, `{"name":"a","description":"x"}`},
		"number and string":        {`{"name":"a","inputSchema":{"const":1}}`, `{"name":"a","inputSchema":{"const":"\u0000\u0000\u0000\u0007literal1"}}`},
		"half a character, quoted": {`{"name":"a","title":"\ud800"}`, `{"name":"a","title":"\"\\ud800\""}`},
		"object and list":          {`{"name":"a","inputSchema":{}}`, `{"name":"a","inputSchema":[]}`},
	} {
		if define(t, tt[0]).Digest == define(t, tt[1]).Digest {
			t.Errorf("%s: they are alike", name)
		}
	}
}

// TestDigestsStayTheSame: those on disk are of earlier versions of toolcell, for which each
// tool would have changed.
func TestDigestsStayTheSame(t *testing.T) {
	const want = "860d47618e1af5b12164e29bbe14bc6ab1d51278436519fd6efc286a17604e8f"
	if got := define(t, `{"name":"a","description":"A\ud800","inputSchema":{"enum":[1,true,"x"]}}`).Digest; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDefinitionsThatNestTooDeepAreRefused(t *testing.T) {
	for depth, want := range map[int]bool{rawjson.MaxDepth: true, rawjson.MaxDepth + 1: false} {
		_, err := Define(json.RawMessage(`{"name":"a","inputSchema":` + strings.Repeat("[", depth) + "1" + strings.Repeat("]", depth) + "}"))
		if (err == nil) != want {
			t.Errorf("%d deep: taken: %t, want %t: %v", depth, err == nil, want, err)
		}
	}
}

func TestHiddenCharactersAreFoundAtAnyDepth(t *testing.T) {
	d := define(t, `{"name":"a","description":"Adds.\u200b \ud83d\udc69\u200d\ud83d\udc67","inputSchema":{"properties":{"x\u202e":{"anyOf":[{"enum":["\udb40\udc41"]}]}}},"annotations":{"title":"ok"}}`)
	if got := strings.Join(d.Hidden, "; "); got != "description: U+200B; inputSchema: U+202E U+E0041" {
		t.Errorf("got %q", got)
	}
	var many strings.Builder
	for c := rune(0xe0000); c < 0xe0fff; c++ {
		many.WriteRune(c)
	}
	d = define(t, `{"name":"a","description":"`+many.String()+`"}`)
	if len(d.Hidden) != 1 || len(d.Hidden[0]) > 200 || !strings.HasSuffix(d.Hidden[0], " more") {
		t.Errorf("got %q", d.Hidden)
	}
}

func TestLinesWithHiddenCharactersAreBounded(t *testing.T) {
	lines := func(hidden int) string {
		return `{"name":"a\u200b","title":"plain","description":"plain\n` + strings.Repeat(`  an\u200badd\n`, hidden) + `"}`
	}
	for hidden, want := range map[int]int{0: 0, 1: 1, maxHiddenLines: maxHiddenLines, maxHiddenLines + 1: maxHiddenLines} {
		d := define(t, lines(hidden))
		v := &Version{Shown: d.Shown, Hidden: d.Hidden}
		if got := strings.Join(v.HiddenLines(), ""); got != strings.Repeat(`an\u200badd`, want) {
			t.Errorf("%d lines: %s, want %d", hidden, got, want)
		}
	}
	written := define(t, `{"name":"a","description":"writes \\\\u200b"}`)
	if got := newVersion(written, time.Now()).HiddenLines(); got != nil {
		t.Errorf("got %q, though nothing is hidden", got)
	}
}

// TestHostileDefinitionsAreReadInTime: a definition may have ten megabytes, or nest as
// deep as JSON may, with members that are to be put in order at every depth.
//
//test:alone
func TestHostileDefinitionsAreReadInTime(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads tens of megabytes")
	}
	const depth = 9000
	text := strings.Repeat("long ", 2<<20)
	deep := strings.Repeat(`{"b":1,"a":`, depth) + `"` + text + `"` + strings.Repeat("}", depth)
	for name, raw := range map[string]string{
		"long": `{"name":"a","description":"` + text + `"}`,
		"deep": `{"name":"a","inputSchema":` + deep + `}`,
	} {
		start := time.Now()
		d := define(t, raw)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s: %s", name, took)
		}
		if size := d.Shown.size(); size > 2*maxShown {
			t.Errorf("%s: %d bytes are shown", name, size)
		}
		if other := define(t, strings.Replace(raw, "long long", "long Long", 1)); other.Digest == d.Digest {
			t.Errorf("%s: a change is not seen", name)
		}
	}
	if _, err := Define(json.RawMessage(`["a"]`)); err == nil {
		t.Error("a list is taken for a tool")
	}
}

func FuzzDefine(f *testing.F) {
	f.Add([]byte(`{"name":"a","inputSchema":{"b":[1,{"c":"\u200b"}]}}`))
	for _, tool := range seeds.Tools(f) {
		f.Add(tool)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		d, err := Define(raw)
		if err != nil {
			return
		}
		var value map[string]json.RawMessage
		if json.Unmarshal(raw, &value) != nil {
			return
		}
		var spaced bytes.Buffer // MarshalIndent would also write < another way, which counts beside what is not UTF-8
		if json.Indent(&spaced, raw, "", "  ") != nil {
			return
		}
		if again, err := Define(spaced.Bytes()); err != nil || again.Digest != d.Digest {
			t.Errorf("%s is another when it is spaced: %v", raw, err)
		}
	})
}

func TestKeyIsOfWhatIsStarted(t *testing.T) {
	base := config.Server{Name: "a", Command: "npx", Args: []string{"-y", "server", "--token=supersecret"}, Env: map[string]string{"API_KEY": "secretsecret"}, DefaultDir: "/home/u"}
	remote := config.Server{Name: "a", URL: "https://example.com/mcp?key=supersecret"}
	for name, tt := range map[string]struct {
		from   config.Server
		change func(*config.Server)
		same   bool
	}{
		"another secret":    {base, func(s *config.Server) { s.Env = map[string]string{"API_KEY": "anothersecret"} }, true},
		"secret argument":   {base, func(s *config.Server) { s.Args = []string{"-y", "server", "--token=othersecret"} }, true},
		"another file":      {base, func(s *config.Server) { s.Source, s.Client = "x", "y" }, true},
		"name":              {base, func(s *config.Server) { s.Name = "b" }, false},
		"command":           {base, func(s *config.Server) { s.Command = "uvx" }, false},
		"arguments":         {base, func(s *config.Server) { s.Args = []string{"-y", "other", "--token=supersecret"} }, false},
		"arguments, joined": {base, func(s *config.Server) { s.Args = []string{"-y server", "--token=supersecret"} }, false},
		"another project":   {base, func(s *config.Server) { s.DefaultDir = "/home/u/project" }, false},
		"key of a service":  {remote, func(s *config.Server) { s.URL = "https://example.com/mcp?key=othersecret" }, true},
		"address":           {remote, func(s *config.Server) { s.URL = "https://example.org/mcp?key=supersecret" }, false},
	} {
		changed := tt.from
		tt.change(&changed)
		if got := Key(changed) == Key(tt.from); got != tt.same {
			t.Errorf("%s: the same: %t, want %t", name, got, tt.same)
		}
	}
}

func BenchmarkDefine(b *testing.B) {
	raw := json.RawMessage(`{"name":"create_issue","description":"Creates an issue in a repository","inputSchema":{"type":"object","properties":{"owner":{"type":"string","description":"Owner"},"repo":{"type":"string","description":"Repository"},"title":{"type":"string","description":"Title"},"body":{"type":"string","description":"Body"},"labels":{"type":"array","items":{"type":"string"}}},"required":["owner","repo","title"]}}`)
	for b.Loop() {
		if _, err := Define(raw); err != nil {
			b.Fatal(err)
		}
	}
}
