package unpack_test

import (
	"archive/tar"
	"os"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/rootfs/unpack"
)

func TestLayersThatAreThereCount(t *testing.T) {
	for name, c := range map[string]struct {
		used  unpack.Usage
		want  string
		spare int
	}{
		"all of it":        {unpack.Usage{Bytes: 100, Entries: 10}, "", 0},
		"some":             {unpack.Usage{Bytes: 1, Entries: 3}, "", 7},
		"too many entries": {unpack.Usage{Bytes: 1, Entries: 11}, "TOOLCELL_IMAGE_MAX_FILES", 0},
		"too many bytes":   {unpack.Usage{Bytes: 101, Entries: 1}, "TOOLCELL_IMAGE_MAX_SIZE", 9},
	} {
		t.Run(name, func(t *testing.T) {
			b := unpack.NewBudget(100, 10)
			if err := b.Spend(c.used); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if got := b.SpareEntries(); got != c.spare {
				t.Errorf("%d entries to spare, want %d", got, c.spare)
			}
		})
	}
}

// TestNamesThatAreKeptAreBounded: through a symlink, a short name in the tar is a long one in
// memory, which the limit of bytes does not count.
func TestNamesThatAreKeptAreBounded(t *testing.T) {
	const names = 1000
	long := strings.TrimSuffix(strings.Repeat(strings.Repeat("d", 250)+"/", 16), "/")
	b := unpack.NewBudget(1<<20, 3*names)
	layer := func(one entry) string {
		entries := []entry{symlink("l", long)}
		for range names {
			entries = append(entries, one)
		}
		return extract(t, b, entries...)
	}
	directories, devices := layer(dir("l/x")), layer(special("l/y", tar.TypeChar))
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	m := unpack.NewMerger(root, b)
	for range (64 << 20) / (names * len(long+"/x")) {
		if err := m.Merge(t.Context(), directories); err != nil {
			t.Fatal(err)
		}
	}
	for name, one := range map[string]string{"directories": directories, "devices": devices} {
		if err := m.Merge(t.Context(), one); err == nil || !strings.Contains(err.Error(), "more bytes than the limit of 67108864") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
