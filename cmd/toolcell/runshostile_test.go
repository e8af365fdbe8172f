package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
)

// everyKind are entries of all kinds. The second question ends the first.
func everyKind() []record.Entry {
	return []record.Entry{
		new(record.RunStart), new(record.RunReady), new(record.Verdict), new(record.Ask), new(record.Ask), new(record.CallStart), new(record.CallEnd),
		new(record.Egress), new(record.File), new(record.Limit), new(record.Pin), new(record.Torn), new(record.RunEnd), new(record.RunCost),
		new(record.FileBegin), new(record.FileEnd), new(record.DayBegin), new(record.DayRemoved), new(record.Forgotten),
	}
}

// writeEvil writes entries of all kinds past the journal, which would bound and clean them: each string
// of them is evil, and numbers are 1. Some have an evil kind or run as well.
func (r *recorded) writeEvil(t *testing.T, evil string) {
	t.Helper()
	dir := filepath.Join(r.state, "state", "records", time.Now().UTC().Format(record.Day))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "vm-exec.jsonl")
	entries, values := []byte{}, []byte{}
	for i, e := range everyKind() {
		fillWith(reflect.ValueOf(e).Elem(), evil)
		if ask, ok := e.(*record.Ask); ok && i == 3 {
			ask.State = "asked"
		}
		for _, h := range []record.Header{{Kind: e.Kind(), Run: "eeeeeeeeeeee"}, {Kind: e.Kind(), Run: evil}, {Kind: record.Kind(evil), Run: "eeeeeeeeeeee"}} {
			h.Version, h.Seq, h.Prev, h.Parent, h.Time = 1, uint64(1+bytes.Count(entries, []byte("\n"))), (evil + strings.Repeat("0", 64))[:64], evil, time.Now().UTC()
			entries = append(entries, bytes.TrimSuffix(encoded(t, h), []byte("}"))...)
			entries = append(append(append(entries, ','), encoded(t, e)[1:]...), '\n')
			for field := range record.Texts(e) {
				values = append(append(values, encoded(t, record.Value{Run: h.Run, Seq: h.Seq, Field: field, Salt: evil, Value: evil, Tail: evil})...), '\n')
			}
		}
	}
	for name, lines := range map[string][]byte{name: entries, strings.TrimSuffix(name, ".jsonl") + ".values.jsonl": values} {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.Write(lines)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	line, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func fillWith(v reflect.Value, evil string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(evil)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint64:
		v.SetUint(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillWith(v.Elem(), evil)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fillWith(v.Index(i), evil)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Type != reflect.TypeFor[time.Time]() {
				fillWith(v.Field(i), evil)
			}
		}
	}
}

// evils are what terminals obey, or what breaks a line in one or in another program.
var evils = map[string]string{
	"ESC": "\x1b[2J\x1b]0;owned\x07\x1b[8mx", "C1": "\u009b2J\u0090q\u009c\u0085x", "NUL": "\x00\b\x7f\r\vx", "bidi": "\u202etxet\u2066\u200f\u200b\ufeffx",
	"lines": "\nWHAT IT DID\n", "other lines": "\u2028WHAT IT DID\u2029", "CRLF": "\r\nWHAT IT DID\r\n",
}

// hostileIn returns where in a text there is something that must not be there, "" if nothing is.
// Programs read JSON, in which only control characters are escaped.
func hostileIn(text string, isJSON bool) string {
	at := strings.IndexFunc(text, func(c rune) bool {
		return unicode.IsControl(c) && c != '\n' || !isJSON && unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp)
	})
	if at >= 0 {
		return fmt.Sprintf("%q", text[max(0, at-60):min(len(text), at+60)])
	}
	if strings.Count("\n"+text, "\nWHAT IT DID\n") > 1 {
		return "a line that looks like ours"
	}
	return ""
}

// TestNoFieldOfTheRecordIsObeyed by a terminal, whatever another program has written there.
func TestNoFieldOfTheRecordIsObeyed(t *testing.T) {
	for name, evil := range evils {
		t.Run(name, func(t *testing.T) {
			r := newRecorded(t, record.Options{})
			r.writeEvil(t, evil)
			for _, line := range []string{
				"runs", "runs list --calls", "runs list --calls --json", "runs list --json", "runs show", "runs show eeee", "runs show eeee --values", "runs show eeee --json", "runs stats",
				"runs stats --json", "runs verify", "runs verify --json", "runs head", "runs export", "runs export --format csv", "runs forget --dry-run eeee",
				"runs list --status waiting", "approvals list", "approvals list --all", "approvals list --all --json",
			} {
				args := strings.Fields(line)
				isJSON := strings.Contains(line, "json") || line == "runs export"
				out, errs, _ := r.types(t, args...)
				if found := hostileIn(out, isJSON) + hostileIn(errs, false); found != "" {
					t.Errorf("%s: %s", line, found)
				}
				if out, _ := r.atTerminal(t, "", args...); hostileIn(ourColors.ReplaceAllString(out, ""), isJSON) != "" {
					t.Errorf("%s at a terminal: %s", line, hostileIn(ourColors.ReplaceAllString(out, ""), isJSON))
				}
				// The newest run is one whose ID no program can be given.
				if len(out) == 0 && line != "runs show" && line != "approvals list" && !strings.Contains(line, "waiting") {
					t.Errorf("%s prints nothing: %s", line, errs)
				}
			}
			if found := hostileIn(r.followed(t, evil), false); found != "" {
				t.Errorf("runs follow: %s", found)
			}
		})
	}
}

// followed returns what runs follow prints of evil entries.
func (r *recorded) followed(t *testing.T, evil string) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	ctx, cancel := context.WithCancel(t.Context())
	o := runsOptions{Streams: &console.Streams{Out: out, Err: out}, Settings: settings.Settings{Dirs: settings.Dirs{State: filepath.Join(r.state, "state")}}}
	done := make(chan error)
	go func() { done <- runsFollow(ctx, o) }()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for range 200 { // it follows from when it has begun to look, which nothing tells
		r.writeEvil(t, evil)
		all, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		if text := string(all); strings.Contains(text, "  ends ") {
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			return text
		}
		select {
		case err := <-done:
			t.Fatal(err)
		case <-tick.C:
		}
	}
	t.Fatal("it never prints the end of a run")
	return ""
}
