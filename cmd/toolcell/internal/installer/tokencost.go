package installer

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2" // which does not write < as \u003c: that would cost more
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/edit"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// A tokenCost is the cost of servers in each request of a client that lists
// them directly: the model gets the definitions of all their tools.
type tokenCost struct {
	rows  []serverCost
	total int
	own   int // what toolcell costs instead
}

type serverCost struct {
	server        string
	tools, tokens int
	err           error
}

// countTokens asks the servers to be moved for their tools, or uses the cached lists. A server
// that cannot be asked has a row with the reason.
func (c *change) countTokens(ctx context.Context) *tokenCost {
	servers := slices.DeleteFunc(slices.Clone(c.move.Servers), func(m edit.Moving) bool { return m.Disabled })
	proxies := map[string]*mcpproxy.Proxy{} // by the directory that their servers are for
	for _, s := range servers {
		if proxies[s.Dir] == nil {
			cfg := c.Config
			if s.Dir != "" {
				o := c.Discovery
				o.Dir = s.Dir
				cfg = clientconfig.Discover(o)
			}
			var end func() error
			proxies[s.Dir], end = c.Servers(cfg)
			defer func() { _ = end() }() // nothing of it is kept
		}
	}
	own := config.Server{
		Name: "toolcell", Alias: "toolcell", Transport: config.Stdio, Command: strings.TrimSuffix(c.command, " serve"), Args: []string{"serve"},
	}
	self := mcpproxy.New(config.Config{Servers: []config.Server{own}}, mcpproxy.Options{Log: c.Log, ClientVersion: c.Version})
	defer self.Close()
	b := &tokenCost{rows: make([]serverCost, len(servers))}
	ask := func(p *mcpproxy.Proxy, name string) (r serverCost) {
		tools, err := p.Tools(ctx, name)
		r = serverCost{server: name, tools: len(tools), err: err}
		for _, t := range tools {
			text, err := ToolText(t)
			r.tokens, r.err = r.tokens+EstimateTokens(text), errors.Join(r.err, err)
		}
		return r
	}
	var all sync.WaitGroup
	for n, s := range servers {
		all.Go(func() {
			defer contain.Error("estimating what a server costs", &b.rows[n].err)
			b.rows[n] = ask(proxies[s.Dir], s.Name)
			b.rows[n].server = rowName(s.Name, s.Dir)
		})
	}
	b.own = ask(self, own.Name).tokens
	all.Wait()
	for _, r := range b.rows {
		b.total += r.tokens
	}
	return b
}

func (b *tokenCost) print(w *os.File) error {
	unasked := 0
	var cells [][]string
	for _, r := range b.rows {
		if r.err != nil {
			unasked++
			cells = append(cells, []string{r.server, "?", "could not be asked: " + console.OneLine(r.err.Error(), 200)})
			continue
		}
		cells = append(cells, []string{r.server, strconv.Itoa(r.tools), strconv.Itoa(r.tokens)})
	}
	cells = append(cells, []string{"all together", "", strconv.Itoa(b.total)}, []string{"toolcell instead", "1", strconv.Itoa(b.own)})
	if err := console.PrintTable(w, []console.Column{{Name: "SERVER"}, {Name: "TOOLS", Right: true}, {Name: "TOKENS, ABOUT, IN EACH REQUEST"}}, cells); err != nil {
		return err
	}
	more := ""
	if unasked > 0 {
		more = fmt.Sprintf(", and those of %s that could not be asked", text.Plural(unasked, "server"))
	}
	_, err := fmt.Fprintf(w, "saves about %d tokens in each request%s\n", max(0, b.total-b.own), more)
	return err
}

// ToolText returns what a client tells a model about a tool.
func ToolText(t catalog.Tool) (string, error) {
	text, err := json.Marshal(struct {
		Name        string         `json:"name"`
		Description string         `json:"description,omitempty"`
		InputSchema jsontext.Value `json:"inputSchema"`
	}{t.Name, t.Description, t.InputSchema})
	return string(text), err
}

// EstimateTokens estimates the tokens of a tool's text: a word is about one, and so
// are two marks of punctuation. The vocabulary of a tokenizer would make this
// program a quarter larger; over the tools of a server the estimate is within
// some 15 % of one.
func EstimateTokens(text string) int {
	words, marks, inWord := 0, 0, false
	for _, c := range text {
		letter := unicode.IsLetter(c) || unicode.IsDigit(c)
		if letter && !inWord {
			words++
		} else if !letter && c != ' ' {
			marks++
		}
		inWord = letter
	}
	return words + marks/2
}
