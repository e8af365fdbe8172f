package host

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestMapAsRoot(t *testing.T) {
	all := []IDRange{{0, 4294967295}}
	for name, tt := range map[string]struct {
		available []IDRange
		want      IDMap
	}{
		"a host":                  {all, IDMap{1879048192, 1879048192 + 65534}},
		"a container":             {[]IDRange{{0, 65536}}, IDMap{65534, 65535}},
		"a container of pieces":   {[]IDRange{{0, 1}, {1000, 1}, {5000, 1}}, IDMap{1000, 5000}},
		"root alone":              {[]IDRange{{0, 1}}, IDMap{0, -1}},
		"root and one more":       {[]IDRange{{0, 2}}, IDMap{0, -1}},
		"nothing":                 {nil, IDMap{0, -1}},
		"range ends before ours":  {[]IDRange{{0, 1879048192}}, IDMap{1879048190, 1879048191}},
		"range ends in ours":      {[]IDRange{{0, 1879048192 + 65534}}, IDMap{1879048192 + 65532, 1879048192 + 65533}},
		"range ends at our ids":   {[]IDRange{{0, 1879048192 + 65535}}, IDMap{1879048192, 1879048192 + 65534}},
		"never host root itself":  {[]IDRange{{0, 3}}, IDMap{1, 2}},
		"ids from two ranges":     {[]IDRange{{0, 2}, {10, 1}}, IDMap{1, 10}},
		"empty range in between":  {[]IDRange{{0, 3}, {10, 0}}, IDMap{1, 2}},
		"large container mapping": {[]IDRange{{0, 1 << 31}}, IDMap{1879048192, 1879048192 + 65534}},
	} {
		if got := mapAsRoot(tt.available, 65534); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestMapAsUser(t *testing.T) {
	for name, tt := range map[string]struct {
		subordinate []IDRange
		want        IDMap
	}{
		"as useradd gives":      {[]IDRange{{100000, 65536}}, IDMap{1000, 165535}},
		"none":                  {nil, IDMap{1000, -1}},
		"a very small range":    {[]IDRange{{100000, 1}}, IDMap{1000, 100000}},
		"an empty range":        {[]IDRange{{100000, 0}}, IDMap{1000, -1}},
		"a range with oneself":  {[]IDRange{{0, 65536}}, IDMap{1000, -1}},
		"the second one serves": {[]IDRange{{0, 65536}, {200000, 10}}, IDMap{1000, 200009}},
	} {
		if got := MapAsUser(1000, tt.subordinate); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

// TestOwnIDsAreNotThoseOfTheMap, and code never has one that is reserved for a server.
func TestOwnIDsAreNotThoseOfTheMap(t *testing.T) {
	all, last := []IDRange{{0, 4294967295}}, IDRange{1<<31 - 256, 256}
	for name, tt := range map[string]struct {
		available     []IDRange
		m             IDMap
		code, servers IDRange
	}{
		"a host":                    {all, IDMap{BaseID, BaseID + 65534}, IDRange{BaseID + 64510, 1024}, last},
		"a low id inside":           {all, IDMap{BaseID, BaseID + 5}, IDRange{BaseID + 6, 1024}, last},
		"the lowest id inside":      {all, IDMap{BaseID, BaseID + 1}, IDRange{BaseID + 2, 1024}, last},
		"the highest id inside":     {all, IDMap{BaseID, 1<<31 - 300}, IDRange{1<<31 - 1324, 1024}, last},
		"an id of servers inside":   {all, IDMap{BaseID, 1<<31 - 200}, IDRange{1<<31 - 1224, 1024}, IDRange{}},
		"an id above them inside":   {all, IDMap{BaseID, 1<<31 + 5}, IDRange{1<<31 - 1019, 1024}, IDRange{}},
		"a large container":         {[]IDRange{{0, BaseID + 2000}}, IDMap{BaseID, BaseID + 5}, IDRange{BaseID + 6, 1024}, IDRange{BaseID + 1744, 256}},
		"one that is a little less": {[]IDRange{{0, BaseID + 1200}}, IDMap{BaseID, BaseID + 5}, IDRange{BaseID + 6, 1024}, IDRange{}},
		"a container":               {[]IDRange{{0, 65536}}, IDMap{65534, 65535}, IDRange{64510, 1024}, IDRange{64254, 256}},
		"a container of three":      {[]IDRange{{0, 3}}, IDMap{1, 2}, IDRange{1, 0}, IDRange{1, 0}},
		"single ids":                {[]IDRange{{0, 1}, {1000, 1}, {5000, 1}}, IDMap{1000, 5000}, IDRange{5000, 0}, IDRange{5000, 0}},
		"as useradd gives":          {[]IDRange{{100000, 65536}}, IDMap{1000, 165535}, IDRange{164511, 1024}, IDRange{164255, 256}},
		"a thousand":                {[]IDRange{{100000, 1001}}, IDMap{1000, 101000}, IDRange{100250, 750}, IDRange{100000, 250}},
		"enough for both":           {[]IDRange{{100000, 86}}, IDMap{1000, 100085}, IDRange{100021, 64}, IDRange{100000, 21}},
		"too few for both":          {[]IDRange{{100000, 84}}, IDMap{1000, 100083}, IDRange{100000, 83}, IDRange{100000, 0}},
		"few subordinate ids":       {[]IDRange{{0, 10}, {100000, 3}}, IDMap{1000, 100002}, IDRange{100000, 2}, IDRange{100000, 0}},
		"one subordinate id":        {[]IDRange{{100000, 1}}, IDMap{1000, 100000}, IDRange{100000, 0}, IDRange{100000, 0}},
		"a single id":               {[]IDRange{{0, 1}}, IDMap{0, -1}, IDRange{}, IDRange{}},
	} {
		code, servers := ownIDs(tt.available, tt.m)
		if code != tt.code || servers != tt.servers {
			t.Errorf("%s: got %+v for code and %+v for servers, want %+v and %+v", name, code, servers, tt.code, tt.servers)
		}
		for id := servers.Start; id < servers.Start+servers.Size; id++ {
			if code.Contains(id) || id == tt.m.Root || id == tt.m.User {
				t.Errorf("%s: %d of a server is also the code's", name, id)
			}
		}
		if code.Contains(tt.m.Root) || code.Contains(tt.m.User) {
			t.Errorf("%s: %+v has an id of %+v", name, code, tt.m)
		}
	}
}

func TestParseSubIDFile(t *testing.T) {
	const file = "root:1:2\ndev:100000:65536\n# dev:1:1\n1000:300000:10\ndev:x:1\ndev:5\n dev:400000:1 \ndev:0:5\ndev:7:-1\ndev:7:9999999999999999999\ndev:9999999999999999999:7\n"
	got := ParseSubIDs(strings.NewReader(file), "dev", 1000)
	want := []IDRange{{100000, 65536}, {300000, 10}, {400000, 1}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSubIDsEndWhereTheContainerDoes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "subuid")
	if err := os.WriteFile(file, []byte("dev:10000:65536\ndev:100000:65536\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ available, want []IDRange }{
		"a host":      {[]IDRange{{0, 4294967295}}, []IDRange{{10000, 65536}, {100000, 65536}}},
		"a container": {[]IDRange{{0, 1}, {1, 65535}}, []IDRange{{10000, 55536}, {100000, 65536}}}, // newuidmap refuses the second
		"unknown":     {nil, []IDRange{{10000, 65536}, {100000, 65536}}},
	} {
		if got := readSubIDs(file, "dev", 1000, tt.available); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

func TestParseIDMapFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "uid_map")
	if err := os.WriteFile(file, []byte("         0       1000          1\n         1     100000      65536\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readIDRanges(file)
	want := []IDRange{{0, 1}, {1, 65536}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if _, err := readIDRanges(file + "-not-there"); err == nil {
		t.Error("no error for a file that is not there")
	}
}
