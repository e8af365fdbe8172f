package oci

import (
	"reflect"
	"strings"
	"testing"
)

func TestMapAsRoot(t *testing.T) {
	all := []idRange{{0, 4294967295}}
	for name, tt := range map[string]struct {
		available []idRange
		want      idMap
	}{
		"a host":                  {all, idMap{1879048192, 1879048192 + 65534}},
		"a container":             {[]idRange{{0, 65536}}, idMap{65534, 65535}},
		"a container of pieces":   {[]idRange{{0, 1}, {1000, 1}, {5000, 1}}, idMap{1000, 5000}},
		"root alone":              {[]idRange{{0, 1}}, idMap{0, -1}},
		"root and one more":       {[]idRange{{0, 2}}, idMap{0, -1}},
		"nothing":                 {nil, idMap{0, -1}},
		"range ends before ours":  {[]idRange{{0, 1879048192}}, idMap{1879048190, 1879048191}},
		"range ends in ours":      {[]idRange{{0, 1879048192 + 65534}}, idMap{1879048192 + 65532, 1879048192 + 65533}},
		"range ends at our ids":   {[]idRange{{0, 1879048192 + 65535}}, idMap{1879048192, 1879048192 + 65534}},
		"never host root itself":  {[]idRange{{0, 3}}, idMap{1, 2}},
		"ids from two ranges":     {[]idRange{{0, 2}, {10, 1}}, idMap{1, 10}},
		"empty range in between":  {[]idRange{{0, 3}, {10, 0}}, idMap{1, 2}},
		"large container mapping": {[]idRange{{0, 1 << 31}}, idMap{1879048192, 1879048192 + 65534}},
	} {
		if got := mapAsRoot(tt.available, 65534); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestMapAsUser(t *testing.T) {
	for name, tt := range map[string]struct {
		subordinate []idRange
		want        idMap
	}{
		"as useradd gives":      {[]idRange{{100000, 65536}}, idMap{1000, 100000}},
		"none":                  {nil, idMap{1000, -1}},
		"a very small range":    {[]idRange{{100000, 1}}, idMap{1000, 100000}},
		"an empty range":        {[]idRange{{100000, 0}}, idMap{1000, -1}},
		"a range with oneself":  {[]idRange{{0, 65536}}, idMap{1000, -1}},
		"the second one serves": {[]idRange{{0, 65536}, {200000, 10}}, idMap{1000, 200000}},
	} {
		if got := mapAsUser(1000, tt.subordinate); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestParseSubIDFile(t *testing.T) {
	const file = "root:1:2\ndev:100000:65536\n# dev:1:1\n1000:300000:10\ndev:x:1\ndev:5\n dev:400000:1 \ndev:0:5\ndev:7:-1\n"
	got := parseSubIDFile(strings.NewReader(file), "dev", 1000)
	want := []idRange{{100000, 65536}, {300000, 10}, {400000, 1}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestParseIDMapFile(t *testing.T) {
	got, err := parseIDMapFile(strings.NewReader("         0       1000          1\n         1     100000      65536\n"))
	want := []idRange{{0, 1}, {1, 65536}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if _, err := parseIDMapFile(strings.NewReader("a b c\n")); err == nil {
		t.Error("no error for a line that is no map")
	}
}
