package search

import (
	"slices"
	"strings"
	"testing"
)

// daily are tools of which each has a few words.
var daily = []string{
	"mail/send_email: Send an email with a subject and a body and as many attachments as there are (from, to, subject, body)",
	"weather/get_forecast: Weather forecast for a place (latitude)",
	"music/play_track: Play a track (id)",
	"shop/refund_payment: Refund a payment (id)",
	"files/read_file: Read the contents of a file (path)",
}

func TestSayingItAgainFindsNoMore(t *testing.T) {
	ix, _ := catalogOf(daily...)
	for _, query := range []string{"umbrella", "mail mum", "money back", "what does the report say", "read my palm"} {
		once, again := ix.Search(query, 3), ix.Search(strings.Repeat(query+" ", 3), 3)
		near := func(a, b Hit) bool { return a.Doc == b.Doc && max(a.Score-b.Score, b.Score-a.Score) < 0.001 }
		if !slices.EqualFunc(once[:min(len(once), 1)], again[:min(len(again), 1)], near) {
			t.Errorf("%q finds %v, and said again %v", query, once, again)
		}
	}
}

func TestOneSharedWordIsNoAnswer(t *testing.T) {
	for _, query := range []string{
		"pizza place", "translate this place", "look after my body", "the path to happiness", "read my palm",
		"read the report zorbak quonder",
	} {
		if got := toolsFound(query, daily...); len(got) > 0 {
			t.Errorf("%q finds %q", query, got)
		}
	}
}

func TestAStopWordInALongTextIsNoAnswer(t *testing.T) {
	tools := []string{"a/ping: Hello", "b/lock: Shut a door", "c/fan: Air", "d/lamp: Light", "e/bell: Rings"}
	letter := strings.Repeat("Sends a letter, at once or later, if there are stamps. ", 8)
	long := "mail/send_email: " + letter + "(from, to, subject, body)"
	for _, query := range []string{"from", "to", "from to"} {
		if got := toolsFound(query, append(tools, long)...); len(got) > 0 {
			t.Errorf("%q finds %q", query, got)
		}
	}
	if got := toolsFound("from", append(tools, "mail/from: Hello")...); !slices.Equal(got, []string{"from"}) {
		t.Errorf("a tool of that name is not found: %q", got)
	}
}
