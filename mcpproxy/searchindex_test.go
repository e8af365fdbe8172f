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
	p := proxyFor(t, Options{CatalogDir: dir}, s)
	search := func() *search.Index {
		if _, _, err := p.Search(t.Context(), "echo", 1, false, AnyServer); err != nil {
			t.Fatal(err)
		}
		return p.tools.have.index
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
	if testing.Short() {
		t.Skip("it indexes thousands of tools")
	}
	dir := t.TempDir()
	servers := manyOf(t, dir, "", 25, 100, 1)
	p := proxyFor(t, Options{CatalogDir: dir}, servers...)
	finds := func(tool string) bool {
		docs, _, err := p.Search(t.Context(), "xylophone", 1, false, AnyServer)
		if err != nil {
			t.Fatal(err)
		}
		return len(docs) == 1 && docs[0].Tool == tool
	}
	if finds("play_xylophone") {
		t.Fatal("it is there before it is")
	}
	p.tools.making <- struct{}{} // the next index is not ready before we say so
	p.current().upstreams[3].record.Put(toolDefinitions(t, `{"name":"play_xylophone"}`), 0)
	for range 3 {
		if finds("play_xylophone") {
			t.Error("found in an index that is not made yet")
		}
	}
	<-p.tools.making
	eventually(t, "the new tool", func() bool { return finds("play_xylophone") })
}

// BenchmarkCatalogSearch is a search over 100 servers with 100 tools each.
func BenchmarkCatalogSearch(b *testing.B) {
	dir := b.TempDir()
	p := New(config.Config{Servers: manyOf(b, dir, "", scaleServers, scaleTools, 4)}, Options{CatalogDir: dir})
	defer p.Close()
	if _, _, err := p.Search(b.Context(), "change an issue", 5, false, AnyServer); err != nil { // makes the index
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		if docs, _, err := p.Search(b.Context(), "change the "+wordsOfTools[i%len(wordsOfTools)]+" of an issue", 5, false, AnyServer); err != nil || len(docs) != 5 {
			b.Fatal(len(docs), err)
		}
	}
}

// BenchmarkCatalogServers is what each run asks for.
func BenchmarkCatalogServers(b *testing.B) {
	dir := b.TempDir()
	p := New(config.Config{Servers: manyOf(b, dir, "", scaleServers, 2, 4)}, Options{CatalogDir: dir})
	defer p.Close()
	for b.Loop() {
		if got := p.Servers(); len(got) != scaleServers || got[0].Tools != 2 {
			b.Fatal(got)
		}
	}
}

// BenchmarkCatalogDocs is the full documentation of one tool, never the same twice.
func BenchmarkCatalogDocs(b *testing.B) {
	dir := b.TempDir()
	p := New(config.Config{Servers: manyOf(b, dir, "", scaleServers, scaleTools, 4)}, Options{CatalogDir: dir})
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

// BenchmarkCatalogFirstSearch reads the records of 100 servers with 100 tools each
// and makes the index.
func BenchmarkCatalogFirstSearch(b *testing.B) {
	dir := b.TempDir()
	servers := manyOf(b, dir, "", scaleServers, scaleTools, 4)
	for b.Loop() {
		p := New(config.Config{Servers: servers}, Options{CatalogDir: dir})
		if docs, _, err := p.Search(b.Context(), "change an issue", 5, false, AnyServer); err != nil || len(docs) != 5 {
			b.Fatal(len(docs), err)
		}
		_ = p.Close()
	}
}
