package mcpproxy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// askingServer is a server in raw lines that asks the user, in the manner of 2025 or of
// 2026 (FAKE_ERA). What it receives is in the file FAKE_NOTES, line by line. Calls say
// in their arguments what it does:
//
//	asks     parameters of elicitation/create, each sent when the call before it is answered
//	late     the same, sent after the result
//	visit    the data of an error -32042, after which complete is done; the second such call succeeds, or the one after FAKE_VISITS
//	rounds   the results of the first calls, HALF PAIR in them as \ud800; the next one gets a result
type askingServer struct {
	fakeServer
	in     *bufio.Reader
	caps   json.RawMessage
	visits int
	round  int
	answer map[string]chan json.RawMessage
	mu2    sync.Mutex
}

type askingCall struct {
	Asks, Rounds []json.RawMessage
	Late, Visit  json.RawMessage
	ID, Complete string
}

func (s *askingServer) run() {
	s.in, s.answer = bufio.NewReader(os.Stdin), map[string]chan json.RawMessage{}
	for {
		line, err := s.in.ReadBytes('\n')
		if err != nil {
			return
		}
		s.record(strings.TrimSpace(string(line)))
		var head struct{ Result, Error json.RawMessage }
		var r fakeRequest
		if json.Unmarshal(line, &r) != nil || json.Unmarshal(line, &head) != nil {
			panic(string(line))
		}
		switch {
		case r.Method == "" && head.Result != nil:
			s.answerOf(string(r.ID)) <- head.Result
		case r.Method == "":
			s.answerOf(string(r.ID)) <- head.Error
		case r.Method == "server/discover" && strings.HasPrefix(os.Getenv("FAKE_ERA"), "2026"):
			s.reply(r, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{}}}`)
		case r.Method == "initialize" && os.Getenv("FAKE_ERA") != "2026 alone":
			var init struct {
				Params struct{ Capabilities json.RawMessage }
			}
			_ = json.Unmarshal(line, &init)
			s.caps = init.Params.Capabilities
			s.reply(r, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"asking","version":"1"}}`)
		case r.Method == "tools/list":
			s.reply(r, `{"resultType":"complete","tools":[{"name":"run","inputSchema":{"type":"object"}}]}`)
		case r.Method == "tools/call":
			var c askingCall
			_ = json.Unmarshal(r.Params.Arguments, &c)
			go s.call(r, c)
		case r.Method == "prompts/get", r.Method == "resources/read":
			s.mu2.Lock()
			s.round++
			first := s.round == 1
			s.mu2.Unlock()
			if first {
				s.reply(r, `{"resultType":"input_required","requestState":"s","inputRequests":{"k":{"method":"elicitation/create","params":`+plainForm+`}}}`)
			} else {
				s.reply(r, `{"resultType":"complete","messages":[],"contents":[]}`)
			}
		case strings.HasPrefix(r.Method, "notifications/"):
		default:
			s.fail(r, -32601, "method not found")
		}
	}
}

func (s *askingServer) answerOf(id string) chan json.RawMessage {
	s.mu2.Lock()
	defer s.mu2.Unlock()
	if s.answer[id] == nil {
		s.answer[id] = make(chan json.RawMessage, 1)
	}
	return s.answer[id]
}

func (s *askingServer) call(r fakeRequest, c askingCall) {
	var answers []string
	for i, params := range c.Asks {
		id := fmt.Sprintf(`"ask-%s-%d"`, c.ID, i)
		s.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":%s}`, id, params))
		answers = append(answers, string(<-s.answerOf(id)))
	}
	limit, err := strconv.Atoi(os.Getenv("FAKE_VISITS"))
	if err != nil {
		limit = 1
	}
	if c.Visit != nil && s.first(&s.visits, limit) {
		s.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32042,"message":"log in first","data":%s}}`, r.ID, c.Visit))
		if c.Complete == "" {
			return
		}
		s.line(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":%q}}`, c.Complete))
		return
	}
	s.mu2.Lock()
	round := s.round
	s.round++
	s.mu2.Unlock()
	if round < len(c.Rounds) && string(c.Rounds[round]) != "null" {
		s.reply(r, strings.ReplaceAll(string(c.Rounds[round]), "HALF PAIR", `\ud800`))
		return
	}
	caps := s.caps
	if caps == nil {
		caps = json.RawMessage(`null`)
	}
	s.reply(r, fmt.Sprintf(`{"content":[],"structuredContent":{"answers":[%s],"capabilities":%s,"pid":%d}}`, strings.Join(answers, ","), caps, os.Getpid()))
	if c.Late != nil {
		s.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":"late","method":"elicitation/create","params":%s}`, c.Late))
	}
}

// first counts, and reports whether the count was below n.
func (s *askingServer) first(count *int, n int) bool {
	s.mu2.Lock()
	defer s.mu2.Unlock()
	*count++
	return *count <= n
}

const plainForm = `{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}`

// asker describes an askingServer of an era, and the file of what it received.
func asker(t *testing.T, era string) (s config.Server, notes string) {
	t.Helper()
	notes = t.TempDir() + "/notes"
	return fake(t, "FAKE_SERVER", "asking", "FAKE_ERA", era, "FAKE_NOTES", notes), notes
}

// received returns the lines of a method that a server received.
func received(notes, method string) (all []string) {
	data, _ := os.ReadFile(notes)
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, `"method":"`+method+`"`) {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}
