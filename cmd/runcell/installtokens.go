package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/runcell/runcell/mcpproxy"
	"github.com/tiktoken-go/tokenizer/codec"
)

// A bill is what servers cost in each request of a client that has them
// directly: the model is told all their tools.
type bill struct {
	rows  []billRow
	total int
	own   int // what runcell costs instead
}

type billRow struct {
	server        string
	tools, tokens int
	err           error
}

// toolTokens counts what a model is told of tools, with the tokenizer of recent
// OpenAI models; those of others count within some percent of it.
func toolTokens(count *codec.Codec, tools []mcpproxy.Tool) (int, error) {
	type told struct { // as clients hand it on
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	n := 0
	for _, t := range tools {
		var text strings.Builder
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false) // \u003c for < would cost more than it does
		if err := e.Encode(told{t.Name, t.Description, t.InputSchema}); err != nil {
			return 0, err
		}
		tokens, err := count.Count(strings.TrimSpace(text.String()))
		if err != nil {
			return 0, err
		}
		n += tokens
	}
	return n, nil
}

// countTokens asks servers for their tools, or takes what is known of them. One
// that cannot be asked is in the bill with the reason.
func countTokens(ctx context.Context, i *installer, names []string, own mcpproxy.Server) *bill {
	config := i.found.config
	p := mcpproxy.New(config, mcpproxy.Options{
		Log: i.found.log, ClientVersion: version, TokenDir: tokenDir(i.settings), CatalogueDir: catalogueDir(i.settings),
	})
	defer p.Close()
	self := mcpproxy.New(mcpproxy.Config{Servers: []mcpproxy.Server{own}}, mcpproxy.Options{Log: i.found.log, ClientVersion: version})
	defer self.Close()
	count := codec.NewO200kBase()
	b := &bill{rows: make([]billRow, len(names))}
	ask := func(p *mcpproxy.Proxy, name string) (r billRow) {
		tools, err := p.Tools(ctx, name)
		r = billRow{server: name, tools: len(tools), err: err}
		if err == nil {
			r.tokens, r.err = toolTokens(count, tools)
		}
		return r
	}
	var all sync.WaitGroup
	for n, name := range names {
		all.Go(func() { b.rows[n] = ask(p, name) })
	}
	b.own = ask(self, own.Name).tokens
	all.Wait()
	for _, r := range b.rows {
		b.total += r.tokens
	}
	return b
}

func (b *bill) print(w *os.File) {
	unasked := 0
	var cells [][]string
	for _, r := range b.rows {
		if r.err != nil {
			unasked++
			cells = append(cells, []string{r.server, "?", "could not be asked: " + oneLine(r.err.Error(), 200)})
			continue
		}
		cells = append(cells, []string{r.server, strconv.Itoa(r.tools), strconv.Itoa(r.tokens)})
	}
	cells = append(cells, []string{"all together", "", strconv.Itoa(b.total)}, []string{"runcell instead", "1", strconv.Itoa(b.own)})
	_ = printTable(w, []column{{name: "SERVER"}, {name: "TOOLS", right: true}, {name: "TOKENS IN EACH REQUEST"}}, cells) // a terminal that is gone
	more := ""
	if unasked > 0 {
		more = fmt.Sprintf(", and those of %d server%s that could not be asked", unasked, plural(unasked))
	}
	fmt.Fprintf(w, "saves %d tokens in each request (o200k_base)%s\n", max(0, b.total-b.own), more)
}
