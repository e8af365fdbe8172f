package idmap

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestMapAsRoot(t *testing.T) {
	all := []Range{{0, 4294967295}}
	for name, tt := range map[string]struct {
		available []Range
		want      Map
	}{
		"a host":                  {all, Map{1879048192, 1879048192 + 65534}},
		"a container":             {[]Range{{0, 65536}}, Map{65534, 65535}},
		"a container of pieces":   {[]Range{{0, 1}, {1000, 1}, {5000, 1}}, Map{1000, 5000}},
		"root alone":              {[]Range{{0, 1}}, Map{0, -1}},
		"root and one more":       {[]Range{{0, 2}}, Map{0, -1}},
		"nothing":                 {nil, Map{0, -1}},
		"range ends before ours":  {[]Range{{0, 1879048192}}, Map{1879048190, 1879048191}},
		"range ends in ours":      {[]Range{{0, 1879048192 + 65534}}, Map{1879048192 + 65532, 1879048192 + 65533}},
		"range ends at our ids":   {[]Range{{0, 1879048192 + 65535}}, Map{1879048192, 1879048192 + 65534}},
		"never host root itself":  {[]Range{{0, 3}}, Map{1, 2}},
		"ids from two ranges":     {[]Range{{0, 2}, {10, 1}}, Map{1, 10}},
		"empty range in between":  {[]Range{{0, 3}, {10, 0}}, Map{1, 2}},
		"large container mapping": {[]Range{{0, 1 << 31}}, Map{1879048192, 1879048192 + 65534}},
	} {
		if got := AsRoot(tt.available, 65534); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestMapAsUser(t *testing.T) {
	for name, tt := range map[string]struct {
		subordinate []Range
		want        Map
	}{
		"as useradd gives":      {[]Range{{100000, 65536}}, Map{1000, 165535}},
		"none":                  {nil, Map{1000, -1}},
		"a very small range":    {[]Range{{100000, 1}}, Map{1000, 100000}},
		"an empty range":        {[]Range{{100000, 0}}, Map{1000, -1}},
		"a range with oneself":  {[]Range{{0, 65536}}, Map{1000, -1}},
		"the second one serves": {[]Range{{0, 65536}, {200000, 10}}, Map{1000, 200009}},
	} {
		if got := AsUser(1000, tt.subordinate); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestOwnIDsAreNotThoseOfTheMap(t *testing.T) {
	for name, tt := range map[string]struct {
		available []Range
		m         Map
		want      Range
	}{
		"a host":               {[]Range{{0, 4294967295}}, Map{Base, Base + 65534}, Range{Base + 64510, 1024}},
		"a low id inside":      {[]Range{{0, 4294967295}}, Map{Base, Base + 5}, Range{Base + 6, 1024}},
		"the lowest id inside": {[]Range{{0, 4294967295}}, Map{Base, Base + 1}, Range{Base + 2, 1024}},
		"a container":          {[]Range{{0, 65536}}, Map{65534, 65535}, Range{64510, 1024}},
		"a container of three": {[]Range{{0, 3}}, Map{1, 2}, Range{1, 0}},
		"single ids":           {[]Range{{0, 1}, {1000, 1}, {5000, 1}}, Map{1000, 5000}, Range{5000, 0}},
		"as useradd gives":     {[]Range{{100000, 65536}}, Map{1000, 165535}, Range{164511, 1024}},
		"few subordinate ids":  {[]Range{{0, 10}, {100000, 3}}, Map{1000, 100002}, Range{100000, 2}},
		"one subordinate id":   {[]Range{{100000, 1}}, Map{1000, 100000}, Range{100000, 0}},
		"a single id":          {[]Range{{0, 1}}, Map{0, -1}, Range{}},
	} {
		got := Own(tt.available, tt.m)
		if got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
		if got.Size > 0 && (got.contains(tt.m.Root) || got.contains(tt.m.User)) {
			t.Errorf("%s: %+v has an id of %+v", name, got, tt.m)
		}
	}
}

func TestParseSubIDFile(t *testing.T) {
	const file = "root:1:2\ndev:100000:65536\n# dev:1:1\n1000:300000:10\ndev:x:1\ndev:5\n dev:400000:1 \ndev:0:5\ndev:7:-1\n"
	got := ParseSubIDs(strings.NewReader(file), "dev", 1000)
	want := []Range{{100000, 65536}, {300000, 10}, {400000, 1}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSubIDsEndWhereTheContainerDoes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "subuid")
	if err := os.WriteFile(file, []byte("dev:10000:65536\ndev:100000:65536\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ available, want []Range }{
		"a host":      {[]Range{{0, 4294967295}}, []Range{{10000, 65536}, {100000, 65536}}},
		"a container": {[]Range{{0, 1}, {1, 65535}}, []Range{{10000, 55536}, {100000, 65536}}}, // newuidmap refuses the second
		"unknown":     {nil, []Range{{10000, 65536}, {100000, 65536}}},
	} {
		if got := ReadSubIDs(file, "dev", 1000, tt.available); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

func TestParseIDMapFile(t *testing.T) {
	got, err := parseIDMapFile(strings.NewReader("         0       1000          1\n         1     100000      65536\n"))
	want := []Range{{0, 1}, {1, 65536}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if _, err := parseIDMapFile(strings.NewReader("a b c\n")); err == nil {
		t.Error("no error for a line that is no map")
	}
}
