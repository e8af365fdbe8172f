package history

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"slices"

	"github.com/toolcell/toolcell/bridge/record"
)

// A partial is a run of which some entries were read, the last ones first.
type partial struct {
	run   Run
	calls map[int64]record.Outcome // that were seen; "" of those without an end
	file  string                   // of the first entry that was seen
	when  []byte                   // the time of that
	shows bool                     // it has calls or an end
	torn  bool                     // entries are lost that came after its last one
	asked map[string]bool          // questions that have an end
	waits bool                     // for the answer to another

	// What its end says of calls: entries of some may be missing.
	sent    int
	effects []byte // a JSON array, and what follows it
}

func (p *partial) take(name string, s *scanned) {
	p.file, p.when = name, append(p.when[:0], s.when...)
	switch s.kind {
	case record.KindCallStart:
		p.takeStart(s)
	case record.KindCallEnd:
		p.takeEnd(s)
	case record.KindVerdict:
		p.try(s)
	case record.KindAsk:
		p.takeAsk(s)
	case record.KindRunEnd:
		p.shows = true
		p.run.Status = string(s.text(`"status":"`))
		p.run.Duration = s.number(`"durationUs":`)
		p.run.Lost = int(s.number(`"lost":`))
		p.sent = int(s.number(`"calls":`))
		p.effects = bytes.Clone(effectsIn(s))
	}
}

func (p *partial) takeAsk(s *scanned) {
	question := s.text(`"question":"`)
	if string(s.text(`"state":"`)) == "asked" {
		p.run.Asked++
		p.waits = p.waits || !p.asked[string(question)]
		return
	}
	if p.asked == nil {
		p.asked = map[string]bool{}
	}
	p.asked[string(question)] = true
}

// try notes what a call was for that may not go out.
func (p *partial) try(s *scanned) {
	server, tool := s.text(`"server":"`), s.text(`"tool":"`)
	if len(server) == 0 {
		return // a grant
	}
	p.run.triedServers = addTo(p.run.triedServers, "", server)
	if len(tool) > 0 {
		p.run.triedTools = addTo(p.run.triedTools, string(server)+".", tool)
	}
}

// takeStart takes in the start of a call. One that has an end was counted by that.
func (p *partial) takeStart(s *scanned) {
	call := s.number(`"call":`)
	if _, ended := p.calls[call]; !ended {
		p.count(call, s.text(`"server":"`), s.text(`"tool":"`), s.writes(), "")
	}
}

func (p *partial) takeEnd(s *scanned) {
	call, outcome := s.number(`"call":`), outcomeOf(s.text(`"outcome":"`))
	if outcome != record.Refused {
		p.count(call, s.text(`"server":"`), s.text(`"tool":"`), s.writes(), outcome)
		return
	}
	p.run.Refused++
	p.try(s)
	p.see(call, outcome)
}

// count adds a call that went out.
func (p *partial) count(call int64, server, tool []byte, writes bool, outcome record.Outcome) {
	p.see(call, outcome)
	p.run.Servers = addTo(p.run.Servers, "", server)
	if len(tool) > 0 {
		p.run.Tools = addTo(p.run.Tools, string(server)+".", tool)
	}
	p.run.Calls++
	if writes {
		p.run.Writes++
	}
	switch outcome {
	case record.OK:
	case record.Unknown:
		p.run.Unknown++
	case "": // and under way, unless the run has ended
		p.run.Unknown++
		p.run.UnderWay++
	default:
		p.run.Failed++
	}
}

func (p *partial) see(call int64, outcome record.Outcome) {
	p.shows = true
	if p.calls == nil {
		p.calls = map[int64]record.Outcome{}
	}
	p.calls[call] = outcome
}

// settle adds the calls that are only known from how the run ended, once all entries were taken in.
func (p *partial) settle() {
	before := p.run.Calls
	if bytes.Count(p.effects, []byte(`{"call":`)) > p.run.Writes {
		for _, e := range decodeEffects(p.effects) {
			if _, seen := p.calls[int64(e.Call)]; !seen {
				p.count(int64(e.Call), []byte(e.Server), []byte(e.Tool), true, e.Outcome)
			}
		}
	}
	p.run.Calls = max(p.run.Calls, p.sent)
	p.run.Lost = max(p.run.Lost, p.run.Calls-before)
	slices.Sort(p.run.Servers)
	slices.Sort(p.run.Tools)
}

// effectsIn returns the effects in the end of a run, and what follows them; nil if there are none.
func effectsIn(s *scanned) []byte {
	const name = `"effects":`
	if at := bytes.Index(s.rest, []byte(name)); at >= 0 {
		return s.rest[at+len(name):]
	}
	return nil
}

func decodeEffects(b []byte) (all []record.Done) {
	_ = json.UnmarshalDecode(jsontext.NewDecoder(bytes.NewReader(b)), &all) // of what is none there is nothing
	return all
}

// outcomeOf makes no new string of the most frequent outcome.
func outcomeOf(b []byte) record.Outcome {
	if string(b) == string(record.OK) {
		return record.OK
	}
	return record.Outcome(b)
}

// addTo adds a name to those that are there, unless it is among them.
func addTo(all []string, before string, name []byte) []string {
	for _, known := range all {
		if len(known) == len(before)+len(name) && known[:len(before)] == before && known[len(before):] == string(name) {
			return all
		}
	}
	return append(all, before+string(name))
}
