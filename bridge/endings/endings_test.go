package endings

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

func open(dir string) *Store { return Open(dir, slog.New(slog.DiscardHandler)) }

func TestNextServerKnowsWhatWentOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions")
	s := open(dir)
	s.Begin("session")
	s.Keep("run", "the run ended with it")
	s.Add("over", "the code ended it")
	if s.Why("session") != "" || s.Why("run") != "" || s.Why("over") != "the code ended it" {
		t.Errorf("it says %q, %q, %q", s.Why("session"), s.Why("run"), s.Why("over"))
	}
	if why := open(dir).Why("over"); why != "" {
		t.Errorf("while the first server lives, another one says %q", why)
	}
	s.Close()
	next := open(dir)
	if next.Why("session") != serverEnded || next.Why("run") != "the run ended with it" || next.Why("over") != "the code ended it" {
		t.Errorf("the next server says %q, %q, %q", next.Why("session"), next.Why("run"), next.Why("over"))
	}
}

func TestBoundsOnWhatIsRemembered(t *testing.T) {
	s := open("")
	s.Begin("live")
	for i := range 2 * maxEnded {
		s.Add(fmt.Sprint(i), "why")
	}
	if len(s.whys) > maxEnded || !s.live["live"] || s.whys["live"] == "" {
		t.Errorf("%d are remembered, the live one: %q", len(s.whys), s.whys["live"])
	}
}

func TestNamesInAForeignFileAreChecked(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.json"), []byte(`{"a\nb": "why", "c": "because"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := open(dir); s.Why("a\nb") != "" || s.Why("c") != "because" {
		t.Errorf("it says %q and %q", s.Why("a\nb"), s.Why("c"))
	}
}
