package record_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/toolcell/toolcell/bridge/record"
)

// filled returns an entry in which nothing is empty.
func filled[E record.Entry](t *testing.T) record.Entry {
	t.Helper()
	var e E
	fill(reflect.ValueOf(&e).Elem())
	return e
}

func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[record.Text]() {
			v.Set(reflect.ValueOf(record.TextOf(strings.Repeat("x", 5000) + " ghp_" + strings.Repeat("aB3", 12))))
			return
		}
		for i := range v.NumField() {
			switch v.Type().Field(i).Name {
			case "Keep":
				v.Field(i).SetString(string(record.KeepAll))
			case "Outcome":
				v.Field(i).SetString(string(record.OK))
			default:
				fill(v.Field(i))
			}
		}
	}
}

func compiledSchema(t *testing.T) (*jsonschema.Schema, map[string]any) {
	t.Helper()
	data, err := os.ReadFile("../../docs/record.schema.json")
	if err != nil {
		t.Skip("needs the source")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("record.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("record.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s, doc.(map[string]any)
}

// TestSchemaIsThatOfWhatIsWritten of all kinds, once with all members and once with none, and has no
// member that is never written.
func TestSchemaIsThatOfWhatIsWritten(t *testing.T) {
	schema, doc := compiledSchema(t)
	o := record.Options{Dir: t.TempDir(), Host: "vm", KeepDays: 1}
	closed(t, recordDay(t, o, -1, 10)) // which is removed
	o.Now = func() time.Time { return noon }
	j := record.Open(o)
	run := j.Begin("aaaaaaaaaa", "call_7")
	long := strings.Repeat("x", 2000)
	for _, e := range []record.Entry{
		filled[record.RunStart](t), filled[record.RunReady](t), filled[record.CallStart](t), filled[record.CallEnd](t), filled[record.Verdict](t), filled[record.Ask](t), filled[record.Egress](t),
		filled[record.File](t), filled[record.Limit](t), filled[record.Pin](t), filled[record.RunEnd](t), filled[record.RunCost](t), filled[record.Torn](t),
		record.RunStart{},
		record.RunReady{},
		record.CallStart{},
		record.CallEnd{Outcome: record.OK},
		record.Verdict{},
		record.Ask{},
		record.Egress{},
		record.File{},
		record.Limit{},
		record.Pin{},
		record.RunEnd{},
		record.RunCost{},
		record.Torn{},
		record.RunStart{User: long, Session: "ghp_" + strings.Repeat("aB3", 12), Grants: record.Grants{Servers: slices.Repeat([]string{"s"}, 101)}},
		record.CallStart{Arguments: record.TextOf("x")},
	} {
		if err := run.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(j.Append(record.Pin{}), j.Close()); err != nil {
		t.Fatal(err)
	}
	if n, err := record.Forget(o.Dir, "aaaaaaaaaa"); n == 0 || err != nil {
		t.Fatal(n, err)
	}
	written := map[string]map[string]bool{} // members by kind
	all, err := filepath.Glob(filepath.Join(o.Dir, "*", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if strings.HasSuffix(path, ".values.jsonl") {
			continue
		}
		data, _ := os.ReadFile(path)
		for line := range bytes.Lines(data) {
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			e := value.(map[string]any)
			kind := e["kind"].(string)
			if written[kind] == nil {
				written[kind] = map[string]bool{}
			}
			for name := range e {
				written[kind][name] = true
			}
		}
	}
	if len(all) < 3 {
		t.Errorf("files %q", all)
	}
	compareMembers(t, doc, written)
	for _, wrong := range []string{`{}`, `{"v":1,"seq":1,"prev":"x","time":"2026-11-28T09:30:00.000000000Z","kind":"run.cost"}`, `{"v":1,"seq":1,"prev":"` + strings.Repeat("0", 64) + `","time":"2026-11-28T09:30:00.000000000Z","kind":"other"}`} {
		var value any
		if err := json.Unmarshal([]byte(wrong), &value); err != nil || schema.Validate(value) == nil {
			t.Errorf("%s is valid", wrong)
		}
	}
}

// compareMembers looks whether all kinds and members of the schema were written.
func compareMembers(t *testing.T, doc map[string]any, written map[string]map[string]bool) {
	t.Helper()
	defs := doc["$defs"].(map[string]any)
	for _, kind := range slices.Sorted(maps.Keys(defs)) {
		members := defs[kind].(map[string]any)["properties"]
		if kind == "text" || kind == "sha256" {
			continue
		}
		for name := range members.(map[string]any) {
			common := slices.Contains([]string{"run", "parent", "cut", "hidden"}, name)
			rare := slices.Contains([]string{"file.end killed", "day.begin after", "day.begin head", "torn bytes"}, kind+" "+name)
			if !written[kind][name] && !common && !rare {
				t.Errorf("the schema has %s of %s, which was not written", name, kind)
			}
		}
	}
}
