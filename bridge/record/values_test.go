package record_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
)

// shown returns the entries of one run.
func shown(t *testing.T, dir, id string) []history.Entry {
	t.Helper()
	entries, err := history.Open(dir).Show(id)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// recorded returns an entry as it comes back from the record.
func recorded(t *testing.T, o record.Options, e record.Entry) history.Entry {
	t.Helper()
	o.Dir = t.TempDir()
	j := record.Open(o)
	if err := errors.Join(j.Begin("aaaaaaaaaa", "").Append(e), j.Close()); err != nil {
		t.Fatal(err)
	}
	whole(t, o.Dir)
	got := shown(t, o.Dir, "aaaaaaaaaa")[0]
	for field, v := range got.Values {
		if v.Wrong {
			t.Errorf("%s is not what was recorded", field)
		}
	}
	return got
}

func TestWhatIsKept(t *testing.T) {
	for _, row := range []struct {
		journal, entry record.Keep
		want           string
	}{
		{"", "", "arguments stdout"},
		{record.KeepNone, "", ""},
		{record.KeepArguments, "", "arguments stdout"},
		{record.KeepAll, "", "arguments stdout answer"},
		{record.KeepAll, record.KeepNone, ""}, // of a private server
		{"", record.KeepAll, "arguments stdout answer"},
	} {
		o := record.Options{Keep: row.journal}
		var kept []string
		for _, e := range []record.Entry{
			record.CallStart{Arguments: record.TextOf("{}"), Keep: row.entry},
			record.RunEnd{Stdout: record.TextOf("x"), Keep: row.entry},
			record.CallEnd{Answer: record.TextOf([]byte("[]")), Keep: row.entry},
		} {
			got := recorded(t, o, e)
			for field, text := range record.Texts(got.Body) {
				if text.Size > 0 && len(text.SHA256) != 64 {
					t.Errorf("%s: %+v", field, text)
				}
				if (text.Kept > 0) != (got.Values[field] != nil) {
					t.Errorf("%s: %+v, value %v", field, text, got.Values[field])
				}
				if text.Kept > 0 {
					kept = append(kept, field)
				}
			}
		}
		if got := strings.Join(kept, " "); got != row.want {
			t.Errorf("%q %q: kept %q, want %q", row.journal, row.entry, got, row.want)
		}
	}
}

// TestBytesStayAsTheyAre: JSON is kept as a string, since a number like this one would be rounded.
func TestBytesStayAsTheyAre(t *testing.T) {
	for _, text := range []string{`{"n": 9007199254740993, "a":1.0e+05}`, "\x00\x1b[0m\u2028\"\\", "naïve ☃ 𝄞", strings.Repeat("é", 2048)} {
		got := recorded(t, record.Options{}, record.CallStart{Arguments: record.TextOf(text)})
		start := got.Body.(*record.CallStart)
		if got.Values["arguments"].Value.Value != text || start.Arguments.Kept != len(text) || start.Arguments.KeptSHA256 != "" || start.Arguments.Size != int64(len(text)) {
			t.Errorf("%.40q: %+v", text, start.Arguments)
		}
	}
}

func TestLongTextsAreCut(t *testing.T) {
	long := strings.Repeat("é", 5000)
	got := recorded(t, record.Options{MaxValue: 1001}, record.CallStart{Arguments: record.TextOf(long)})
	text := got.Body.(*record.CallStart).Arguments
	if text.Size != 10000 || text.Kept != 1000 || text.Cut != 9000 || text.KeptSHA256 == "" || text.Hidden != nil || got.Values["arguments"].Value.Value != long[:1000] {
		t.Errorf("%+v", text)
	}
}

func TestStreamsKeepHeadAndTail(t *testing.T) {
	for _, size := range []int{0, 1, 99, 100, 101, 5000, 8292, 8293, 8392, 8393, 50_000, 300_000} {
		for _, step := range []int{1, 7, 4096, 100_000} {
			if step == 1 && size > 10_000 {
				continue
			}
			all := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
			dir := t.TempDir()
			j := record.Open(record.Options{Dir: dir, MaxValue: 100})
			run := j.Begin("aaaaaaaaaa", "")
			out := run.NewStream()
			for part := range slices.Chunk(all, step) {
				out.Write(part)
			}
			same := record.TextOf(all)
			if err := errors.Join(run.Append(record.RunEnd{Stdout: out.Text(), Stderr: same}), j.Close()); err != nil {
				t.Fatal(err)
			}
			whole(t, dir)
			e := shown(t, dir, "aaaaaaaaaa")[0]
			end := e.Body.(*record.RunEnd)
			if end.Stdout.Size != int64(size) || end.Stdout.SHA256 != end.Stderr.SHA256 {
				t.Fatalf("%d bytes by %d: %+v", size, step, end.Stdout)
			}
			if size == 0 {
				continue
			}
			v, want := e.Values["stdout"].Value, string(all)
			if size > 100 {
				want = string(all[:50]) + string(all[size-50:])
			}
			if v.Value+v.Tail != want || end.Stdout.Cut != int64(max(0, size-100)) {
				t.Errorf("%d bytes by %d: %q %q, %+v", size, step, v.Value, v.Tail, end.Stdout)
			}
		}
	}
}

func TestSecretsAreNotWritten(t *testing.T) {
	token := "ghp_" + strings.Repeat("aB3", 12)
	o := record.Options{
		MaxValue: 400,
		Secrets:  func(s string) string { return strings.ReplaceAll(s, "hunter2", "[hidden:DB_PASSWORD]") },
		Redact:   []*regexp.Regexp{regexp.MustCompile("EMP-[0-9]+")},
		Keep:     record.KeepAll,
	}
	o.Dir = t.TempDir()
	j := record.Open(o)
	run := j.Begin("aaaaaaaaaa", "")
	out := run.NewStream()
	// Each end of what is kept goes through a token.
	out.Write([]byte(strings.Repeat("x", 190) + " " + token + strings.Repeat(" y", 20_000) + " " + token + " " + strings.Repeat("z", 190)))
	err := errors.Join(
		run.Append(record.RunStart{Code: record.TextOf("f('" + token + "', 'hunter2', 'EMP-77')"), Client: record.Client{Name: token}, User: "hunter2"}),
		run.Append(record.CallStart{Server: "hunter2", Arguments: record.TextOf(strings.Repeat("a", 380) + " " + token)}),
		run.Append(record.CallEnd{Answer: record.TextOf(`{"password":"x"}` + "\xff")}),
		run.Append(record.Verdict{Reasons: []string{"hunter2 with " + token}}),
		run.Append(record.RunEnd{Stdout: out.Text()}),
		j.Close())
	if err != nil {
		t.Fatal(err)
	}
	whole(t, o.Dir)
	err = filepath.Walk(o.Dir, func(path string, _ os.FileInfo, _ error) error {
		data, err := os.ReadFile(path)
		for _, secret := range []string{token[:10], token[len(token)-6:], "EMP-77", "hunter2'"} {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s has %q", path, secret)
			}
		}
		if errors.Is(err, os.ErrInvalid) || err != nil && !strings.Contains(err.Error(), "is a directory") {
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	e := shown(t, o.Dir, "aaaaaaaaaa")
	start := e[0].Body.(*record.RunStart)
	if got := start.Code.Hidden; !slices.Equal(got, []string{"known", "github", "redact[0]"}) || start.Code.KeptSHA256 == "" {
		t.Errorf("hidden %q", got)
	}
	if start.User != "hunter2" || e[1].Body.(*record.CallStart).Server != "hunter2" { // names that the user gave
		t.Errorf("%+v", start)
	}
	if got := e[2].Body.(*record.CallEnd).Answer; !slices.Equal(got.Hidden, []string{"not UTF-8", "key"}) {
		t.Errorf("%+v", got)
	}
	if !bytes.Contains(e[0].Raw, []byte(`"hidden":["client.name: github"]`)) || !bytes.Contains(e[3].Raw, []byte(`"hidden":["reasons: known","reasons: github"]`)) {
		t.Errorf("%s\n%s", e[0].Raw, e[3].Raw)
	}
}

// TestSecretsAreNotInNames that code, a server or the client chose. A server may be called what is a
// secret elsewhere; a name that code made up is no server's.
func TestSecretsAreNotInNames(t *testing.T) {
	const secret = "S3cret-of-the-entry"
	o := record.Options{
		Secrets: func(s string) string { return strings.ReplaceAll(s, secret, "[hidden:KEY]") },
		Redact:  []*regexp.Regexp{regexp.MustCompile("EMP-[0-9]+")},
	}
	name := secret + "-EMP-77"
	file := record.File{Name: name + ".txt", Use: "left", Type: name}
	for _, e := range []record.Entry{
		record.RunStart{Client: record.Client{Name: name, Version: name}, Session: name, Grants: record.Grants{Hosts: []string{name}, Folders: []string{name}}},
		record.RunReady{Packages: []record.Package{{Name: name, Version: name}}},
		record.CallStart{Tool: name},
		record.CallEnd{Server: name, NoServer: true, Tool: name},
		record.Verdict{Tool: name},
		record.Ask{Tool: name, Client: name},
		record.Egress{Host: name, Rule: name},
		record.Limit{Tool: name},
		record.Pin{Tool: name},
		file,
		record.RunEnd{Files: []record.File{file}, Effects: []record.Done{{Tool: name}}},
	} {
		if raw := string(recorded(t, o, e).Raw); strings.Contains(raw, secret) || strings.Contains(raw, "EMP-77") || !strings.Contains(raw, "[hidden:KEY]-[hidden:redact[0]]") {
			t.Error(raw)
		}
	}
	if got := recorded(t, o, record.CallEnd{Server: secret}); got.Body.(*record.CallEnd).Server != secret {
		t.Errorf("%s", got.Raw)
	}
}

func TestNamesAndListsAreBounded(t *testing.T) {
	long := strings.Repeat("é", 200)
	servers := make([]string, 150)
	for i := range servers {
		servers[i] = "s"
	}
	e := recorded(t, record.Options{}, record.RunStart{User: long, Grants: record.Grants{Servers: servers}, Session: "a\xffb"})
	start := e.Body.(*record.RunStart)
	if start.User != long[:256] || len(start.Grants.Servers) != 100 || start.Session != "a\uFFFDb" || len(servers) != 150 {
		t.Errorf("%+v", start)
	}
	var more struct{ Cut []record.Cut }
	if err := json.Unmarshal(e.Raw, &more); err != nil || len(more.Cut) != 2 {
		t.Fatalf("%+v %v", more, err)
	}
	if user, list := more.Cut[0], more.Cut[1]; user.Field != "user" || user.Size != 400 || len(user.SHA256) != 64 || list.Field != "grants.servers" || list.Count != 150 {
		t.Errorf("%+v", more.Cut)
	}
}

// TestEntriesStayWithinALine whatever is in them.
func TestEntriesStayWithinALine(t *testing.T) {
	huge := strings.Repeat("\x01", 1<<20)
	files, done := make([]record.File, 1000), make([]record.Done, 1000)
	for i := range files {
		files[i] = record.File{Name: huge, Use: huge, Type: huge, SHA256: huge}
		done[i] = record.Done{Server: huge, Tool: huge, Outcome: record.Outcome(huge)}
	}
	text := record.TextOf(huge)
	recorded(t, record.Options{Keep: record.KeepAll}, record.RunEnd{Status: huge, Error: text, Traceback: text, Stdout: text, Stderr: text, Result: text, Files: files, Effects: done})
}

func TestForget(t *testing.T) {
	dir := t.TempDir()
	j := record.Open(record.Options{Dir: dir})
	one, two := j.Begin("one", ""), j.Begin("two", "")
	start := func(r *record.Run, code string) {
		t.Helper()
		if err := r.Append(record.RunStart{Code: record.TextOf(code)}); err != nil {
			t.Error(err)
		}
	}
	start(one, "secret of one")
	start(two, "of two")
	start(one, "more of one")

	// The journal writes while a run is forgotten.
	var writing sync.WaitGroup
	writing.Go(func() {
		for range 200 {
			start(two, "of two")
		}
	})
	removed, err := record.Forget(dir, "one")
	writing.Wait()
	if removed != 2 || err != nil {
		t.Errorf("%d %v", removed, err)
	}
	start(one, "after it")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if notes := whole(t, dir); !slices.Equal(notes, []string{"2 values were not written, forgotten or removed"}) {
		t.Errorf("notes %q", notes)
	}
	data, _ := os.ReadFile(record.ValuesName(entryFiles(t, dir)[0]))
	if bytes.Contains(data, []byte("secret of one")) || bytes.Contains(data, []byte("more of one")) || bytes.Count(data, []byte("of two")) != 201 {
		t.Errorf("%.300s", data)
	}
	if e := shown(t, dir, "one"); len(e) != 3 || e[0].Values != nil || e[2].Values == nil {
		t.Errorf("%+v", e)
	}
	list, _ := os.ReadFile(filepath.Join(filepath.Dir(entryFiles(t, dir)[0]), record.IndexName))
	if !bytes.Contains(list, []byte(`"kind":"forgotten","forgot":"one","values":2}`)) {
		t.Errorf("%s", list)
	}
	if removed, err := record.Forget(dir, "none"); removed != 0 || err != nil {
		t.Errorf("%d %v", removed, err)
	}
}

// TestWhyACallWasRefusedIsKept: no server has written it. Of a private server nothing is kept.
func TestWhyACallWasRefusedIsKept(t *testing.T) {
	dir := t.TempDir()
	j := record.Open(record.Options{Dir: dir, Host: "vm"})
	run := j.Begin("aaaaaaaaaa", "")
	for _, e := range []record.CallEnd{
		{Call: 1, Outcome: record.Refused, Error: record.TextOf("the policy forbids it")},
		{Call: 2, Outcome: record.ToolError, Error: record.TextOf("the server says no"), Said: true},
		{Call: 3, Outcome: record.Refused, Error: record.TextOf("of a private one"), Keep: record.KeepNone},
	} {
		if err := run.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*", "*.values.jsonl"))
	if err != nil || len(names) != 1 {
		t.Fatalf("%v, %v", names, err)
	}
	data, err := os.ReadFile(names[0])
	if err != nil || strings.Count(string(data), "\n") != 1 || !strings.Contains(string(data), "the policy forbids it") {
		t.Errorf("kept is %s, %v", data, err)
	}
}
