package mcpproxy

import (
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/search"
)

func TestAnUnchangedListMakesNoNewIndex(t *testing.T) {
	dir := t.TempDir()
	s, set := givenServer(t)
	set(`{"name":"echo"}`)
	p := proxyFor(t, Options{CatalogueDir: dir}, s)
	search := func() *search.Index {
		if _, _, err := p.Search(t.Context(), "echo", 1, false); err != nil {
			t.Fatal(err)
		}
		return p.catalogue.have.index
	}
	first := search()
	if _, err := p.Refresh(t.Context(), "fake"); err != nil {
		t.Fatal(err)
	}
	if search() != first {
		t.Error("the same tools made another index")
	}
	set(`{"name":"echo"},{"name":"other"}`)
	if _, err := p.Refresh(t.Context(), "fake"); err != nil {
		t.Fatal(err)
	}
	if search() == first {
		t.Error("other tools made no index")
	}
}

func TestALargeIndexServesWhileTheNextOneIsMade(t *testing.T) {
	dir := t.TempDir()
	servers := manyOf(t, dir, "", 25, 100, 1)
	p := proxyFor(t, Options{CatalogueDir: dir}, servers...)
	finds := func(tool string) bool {
		docs, _, err := p.Search(t.Context(), "xylophone", 1, false)
		if err != nil {
			t.Fatal(err)
		}
		return len(docs) == 1 && docs[0].Tool == tool
	}
	if finds("play_xylophone") {
		t.Fatal("it is there before it is")
	}
	p.catalogue.making.Lock() // the next index is not ready before we say so
	p.current().upstreams[3].record.Put(toolDefinitions(t, `{"name":"play_xylophone"}`), 0)
	for range 3 {
		if finds("play_xylophone") {
			t.Error("found in an index that is not made yet")
		}
	}
	p.catalogue.making.Unlock()
	eventually(t, "the new tool", func() bool { return finds("play_xylophone") })
}

// BenchmarkCatalogueSearch is a search over 100 servers with 100 tools each.
func BenchmarkCatalogueSearch(b *testing.B) {
	dir := b.TempDir()
	p := New(config.Config{Servers: manyOf(b, dir, "", scaleServers, scaleTools, 4)}, Options{CatalogueDir: dir})
	defer p.Close()
	if _, _, err := p.Search(b.Context(), "change an issue", 5, false); err != nil { // makes the index
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		if docs, _, err := p.Search(b.Context(), "change the "+wordsOfTools[i%len(wordsOfTools)]+" of an issue", 5, false); err != nil || len(docs) != 5 {
			b.Fatal(len(docs), err)
		}
	}
}

// BenchmarkCatalogueServers is what each run asks for.
func BenchmarkCatalogueServers(b *testing.B) {
	dir := b.TempDir()
	p := New(config.Config{Servers: manyOf(b, dir, "", scaleServers, 2, 4)}, Options{CatalogueDir: dir})
	defer p.Close()
	for b.Loop() {
		if got := p.Servers(); len(got) != scaleServers || got[0].Tools != 2 {
			b.Fatal(got)
		}
	}
}

// BenchmarkCatalogueDocs is the full documentation of one tool, never the same twice.
func BenchmarkCatalogueDocs(b *testing.B) {
	dir := b.TempDir()
	p := New(config.Config{Servers: manyOf(b, dir, "", scaleServers, scaleTools, 4)}, Options{CatalogueDir: dir})
	defer p.Close()
	tools, err := p.Tools(b.Context(), "server-1")
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		if docs, err := p.Docs(b.Context(), "server-1", tools[i%len(tools)].Name, true); err != nil || len(docs) != 1 {
			b.Fatal(docs, err)
		}
	}
}

// BenchmarkCatalogueFirstSearch reads the records of 100 servers with 100 tools each
// and makes the index.
func BenchmarkCatalogueFirstSearch(b *testing.B) {
	dir := b.TempDir()
	servers := manyOf(b, dir, "", scaleServers, scaleTools, 4)
	for b.Loop() {
		p := New(config.Config{Servers: servers}, Options{CatalogueDir: dir})
		if docs, _, err := p.Search(b.Context(), "change an issue", 5, false); err != nil || len(docs) != 5 {
			b.Fatal(len(docs), err)
		}
		_ = p.Close()
	}
}
