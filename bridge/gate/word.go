package gate

import (
	"time"

	"github.com/toolcell/toolcell/mcpproxy"
)

// A word is by whose word a request counts as one that only reads, or may change something,
// as record.CallStart.By has it.
type word string

const (
	wordMethod  word = "method"  // it only reads, whoever the server is
	wordPin     word = "pin"     // its server says that it only reads, and the user has accepted that
	wordDefault word = "default" // it may change something, as nothing else was accepted
)

func (e Effect) word() word {
	switch {
	case e.Facts.Method != mcpproxy.CallTool:
		return wordMethod
	case e.Facts.Tool.ReadsOnly:
		return wordPin
	}
	return wordDefault
}

// words says to the user what a request may change, and by whose word. There are no words of
// a server in it, and of its hints only what a careful user may go by: that a tool destroys
// nothing, or can be repeated, would reassure without a reason.
func (e Effect) words() string {
	t := e.Facts.Tool
	destroys := t.Definition().Hints.Destructive
	switch e.word() {
	case wordMethod:
		return "only reads"
	case wordPin:
		switch {
		case t.Accepted:
			return "only reads, says the server (you accepted that in a question)"
		case t.Since.IsZero():
			return "only reads, says the server"
		}
		return "only reads, says the server (since " + t.Since.Local().Format(time.DateOnly) + ")"
	}
	switch {
	case t.Acceptable:
		return "may change something (the server now says that it only reads, but did not when its tools were pinned)"
	case t.Unaccepted != "" && destroys:
		return "may change something (the server says that it only reads, and that it destroys something)"
	case t.Unaccepted != "":
		return "may change something (the server says that it only reads, but that cannot be compared with its pin)"
	case destroys:
		return "may change something (the server says that it destroys something)"
	}
	return "may change something (the server does not say otherwise)"
}
