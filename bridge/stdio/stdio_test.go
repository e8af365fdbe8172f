package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A client conn of a test, and the client's ends of its streams.
func newTestConn() (c *Conn, send *io.PipeWriter, answers *bufio.Reader) {
	in, send := io.Pipe()
	receive, out := io.Pipe()
	return New(in, out, slog.New(slog.DiscardHandler)), send, bufio.NewReader(receive)
}

func TestClientSendsWhatIsNoMessage(t *testing.T) {
	long := strings.Repeat("x", maxClientLine)
	for name, tt := range map[string]struct{ line, want string }{
		"garbage":             {"\xff\xfe", `"id":null,"error":{"code":-32700`},
		"half":                {`{"jsonrpc":"2.0","id":4,"method":"x"`, `"id":4,"error":{"code":-32700`},
		"null":                {`null`, `"id":null,"error":{"code":-32600`},
		"a number":            {`5`, `"id":null,"error":{"code":-32600`},
		"no version":          {`{"id":5,"method":"ping"}`, `"id":5,"error":{"code":-32600`},
		"method no string":    {`{"jsonrpc":"2.0","id":"a","method":5}`, `"id":"a","error":{"code":-32600`},
		"too deep":            {strings.Repeat("[", 100_000), `"id":null,"error":{"code":-32700`},
		"in an array":         {`[5]`, `"id":null,"error":{"code":-32600`},
		"an empty array":      {`[]`, `"id":null,"error":{"code":-32600`},
		"half an array":       {`[{"jsonrpc":"2.0","id":8,"method":"ping"},{"jsonrpc"`, `"id":8,"error":{"code":-32700`},
		"NaN":                 {`{"method":"x","params":{"a":NaN},"id":"n","jsonrpc":"2.0"}`, `"id":"n","error":{"code":-32700,"message":"this is no message: it is not JSON from byte 28 on: \"…thod`},
		"a raw tab":           {"{\"id\":1764115200123456789,\"method\":\"a\tb\"}", `"id":1764115200123456789,"error":{"code":-32700`},
		"an odd escape":       {`{"params":"\x41 \"id\":3","id":9,"method":"x"}`, `"id":9,"error":{"code":-32700`},
		"UTF-16":              {"{\x00\"\x00i\x00d\x00\"\x00", `UTF-16`},
		"UTF-16 with a mark":  {"\xff\xfe{\x00", `UTF-16`},
		"an id of null":       {`{"jsonrpc":"2.0","id":null,"method":"tools/list"}`, `"id":null,"error":{"code":-32600,"message":"the id must be text or a number, not null"`},
		"an id that is true":  {`{"jsonrpc":"2.0","id":true,"method":"tools/list"}`, `"id":null,"error":{"code":-32600`},
		"an id in a list":     {`{"jsonrpc":"2.0","id":[1],"method":"tools/list"}`, `"id":null,"error":{"code":-32600`},
		"no method":           {`{"jsonrpc":"2.0","id":12}`, `"id":12,"error":{"code":-32600,"message":"there is no method"`},
		"nothing":             {`{}`, `"id":null,"error":{"code":-32600`},
		"params in a list":    {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["a"]}`, `"id":1,"error":{"code":-32602,"message":"tools/call: params must be an object, not a list"`},
		"params as text":      {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"{}"}`, `"id":1,"error":{"code":-32602,"message":"tools/call: params must be an object, not text"`},
		"arguments as text":   {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_python","arguments":"{}"}}`, `-32602,"message":"tools/call: \"arguments\" must be an object, not text"`},
		"arguments in a list": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_python","arguments":[1]}}`, `-32602,"message":"tools/call: \"arguments\" must be an object, not a list"`},
		"a name of 5":         {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`, `-32602,"message":"tools/call: \"name\" must be text, not a number"`},
		"a cursor of 2":       {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":2}}`, `-32602,"message":"tools/list: \"cursor\" must be text, not a number"`},
		"_meta as text":       {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":"x"}}`, `-32602,"message":"ping: \"_meta\" must be an object, not text"`},
		"capabilities of 1":   {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":1}}`, `-32602,"message":"initialize: \"capabilities\" must be an object, not a number"`},
		"roots that is true":  {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"roots":true}}}`, `-32602,"message":"initialize: \"capabilities.roots\" must be an object, not true"`},
		"too long, id first":  {`{"jsonrpc":"2.0","id":6,"method":"` + long + `"}`, `"id":6,"error":{"code":-32600`},
		"too long, id last":   {`{"method":"` + long + `","jsonrpc":"2.0","id":7}`, `"id":7,"error":{"code":-32600`},
		"much too long":       {long + long + "\t" + long, `"id":null,"error":{"code":-32600`},
		"an id in its text":   {`{"method":"` + long + `,\"id\":8}`, `"id":null,"error":{"code":-32600`},
	} {
		t.Run(name, func(t *testing.T) {
			c, send, answers := newTestConn()
			defer c.Close()
			go func() {
				_, _ = io.WriteString(send, "\n  \n"+tt.line+"\n"+`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\r\n")
			}()
			got, err := answers.ReadString('\n')
			if err != nil || !strings.Contains(got, tt.want) {
				t.Errorf("%v: answer %.300s, want %s", err, got, tt.want)
			}
			msg, err := c.Read(t.Context())
			if req, ok := msg.(*jsonrpc.Request); err != nil || !ok || req.Method != "ping" {
				t.Errorf("the next message: %v, %v", msg, err)
			}
		})
	}
}

// TestIDsGoBackAsTheyWereWritten holds for answers, progress and cancels.
func TestIDsGoBackAsTheyWereWritten(t *testing.T) {
	for _, id := range []string{
		`1`, `0`, `-7`, `1764115200123456789`, `9007199254740993`, `123456789012345678901234567890`, `1.5`, `1e3`, `1E+3`, `0.0`, `-0`,
		`""`, `"1"`, `"a\u0041\n\/\""`, `"\ud83d\ude00"`, `"ünï"`, `"<&>"`,
	} {
		for _, token := range []string{id, `"t\u0041"`, `1764115200123456789`, `[1.0]`} {
			c, send, answers := newTestConn()
			go func() {
				_, _ = fmt.Fprintf(send, `{"jsonrpc":"2.0","id":%s,"method":"m","params":{"a":1.0,"_meta":{"x":1e2,"progressToken":%s}}}`+"\n", id, token)
				_, _ = fmt.Fprintf(send, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"r"}}`+"\n", id)
			}()
			msg, err := c.Read(t.Context())
			req, ok := msg.(*jsonrpc.Request)
			if err != nil || !ok || !req.IsCall() {
				t.Fatalf("id %s: %v, %v", id, msg, err)
			}
			msg, _ = c.Read(t.Context())
			cancelled, ok := msg.(*jsonrpc.Request)
			if want := fmt.Sprintf(`{"requestId":%v,"reason":"r"}`, req.ID.Raw()); !ok || string(cancelled.Params) != want {
				t.Errorf("id %s: the cancel is %v, want %s", id, msg, want)
			}
			var p struct {
				Meta struct{ ProgressToken int64 } `json:"_meta"`
			}
			if err := json.Unmarshal(req.Params, &p); err != nil {
				t.Fatal(err)
			}
			go func() {
				params := fmt.Appendf(nil, `{"progress":1,"progressToken":%d}`, p.Meta.ProgressToken)
				_ = c.Write(t.Context(), &jsonrpc.Request{Method: methodProgress, Params: params})
				_ = c.Write(t.Context(), &jsonrpc.Response{ID: req.ID, Result: []byte(`{"id":5}`)})
				_ = c.Write(t.Context(), &jsonrpc.Request{Method: methodProgress, Params: params}) // too late
				_ = c.writeLine(t.Context(), []byte("end"))
			}()
			for _, want := range []string{
				`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":` + token + `}}`,
				`{"jsonrpc":"2.0","id":` + id + `,"result":{"id":5}}`, "end",
			} {
				if got, err := answers.ReadString('\n'); err != nil || got != want+"\n" {
					t.Errorf("%v: %s, want %s", err, got, want)
				}
			}
			c.Close()
		}
	}
}

// TestCancelBeforeItsRequest holds that a cancel hits no request that comes later.
func TestCancelBeforeItsRequest(t *testing.T) {
	c, send, answers := newTestConn()
	defer c.Close()
	go func() {
		for range 2 {
			_, _ = io.WriteString(send, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`+"\n")
			_, _ = io.WriteString(send, `{"jsonrpc":"2.0","id":7,"method":"m"}`+"\n")
		}
	}()
	var ids []jsonrpc.ID
	for _, want := range []string{"m", methodCancelled, "m"} {
		msg, err := c.Read(t.Context())
		req, ok := msg.(*jsonrpc.Request)
		if err != nil || !ok || req.Method != want {
			t.Fatalf("%v, %v, want %s", msg, err, want)
		}
		if want == methodCancelled && string(req.Params) != fmt.Sprintf(`{"requestId":%v}`, ids[0].Raw()) {
			t.Errorf("the cancel is %s", req.Params)
		}
		ids = append(ids, req.ID)
	}
	if ids[0] == ids[2] {
		t.Error("both requests have one ID")
	}
	go func() {
		_ = c.Write(t.Context(), &jsonrpc.Response{ID: ids[2], Result: []byte("{}")})
		_ = c.Write(t.Context(), &jsonrpc.Response{ID: ids[0], Error: errors.New("cancelled")})
	}()
	for _, want := range []string{`"id":7,"result"`, `"id":7,"error":{"code":-32603`} {
		if got, err := answers.ReadString('\n'); err != nil || !strings.Contains(got, want) {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

// TestOddWaysToWriteAreRead: messages that the SDK would refuse, or not see.
func TestOddWaysToWriteAreRead(t *testing.T) {
	for name, tt := range map[string]struct{ input, params string }{
		"a byte order mark":        {"\ufeff" + `{"jsonrpc":"2.0","id":1,"method":"m"}` + "\n", ""},
		"marks on later lines":     {"\n\ufeff\n\ufeff" + `{"jsonrpc":"2.0","id":1,"method":"m"}` + "\n", ""},
		"CR alone":                 {`{"jsonrpc":"2.0","id":1,"method":"m"}` + "\r", ""},
		"CR and LF":                {"\r\n" + `{"jsonrpc":"2.0","id":1,"method":"m"}` + "\r\n", ""},
		"no line end":              {`{"jsonrpc":"2.0","id":1,"method":"m"}`, ""},
		"no params":                {`{"jsonrpc":"2.0","id":1,"method":"m","params":null}` + "\n", ""},
		"an empty list for params": {`{"jsonrpc":"2.0","id":1,"method":"m","params":[ ]}` + "\n", "{}"},
		"empty lists for objects": {
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"_meta":[],"capabilities":{"roots":[],"elicitation":{"form":[]}}}}` + "\n",
			`{"_meta":{},"capabilities":{"roots":{},"elicitation":{"form":{}}}}`,
		},
		"capabilities in a list":     {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":[]}}` + "\n", `{"capabilities":{}}`},
		"an empty list of arguments": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":[]}}` + "\n", `{"name":"a","arguments":{}}`},
		"a token of null":            {`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":null}}}` + "\n", `{"_meta":{"progressToken":null}}`},
		"a cursor of null":           {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":null}}` + "\n", `{"cursor":null}`},
		"more members":               {`{"jsonrpc":"2.0","id":1,"method":"m","more":1}` + "\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, send, _ := newTestConn()
			defer c.Close()
			go func() {
				_, _ = io.WriteString(send, tt.input)
				send.Close()
			}()
			msg, err := c.Read(t.Context())
			if req, ok := msg.(*jsonrpc.Request); err != nil || !ok || !req.IsCall() || string(req.Params) != tt.params {
				t.Errorf("%v, %v, want params %s", msg, err, tt.params)
			}
		})
	}
}

// TestAnswersOfTheClient to what we ask: they reach the request that they are for, or
// none.
func TestAnswersOfTheClient(t *testing.T) {
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"result":{"a":1}}`:                             `{"a":1}`,
		`{"jsonrpc":"2.0","id":1.0,"result":[]}`:                                `{}`,
		`{"jsonrpc":"2.0","id":"1","result":{}}`:                                `{}`,
		`{"jsonrpc":"2.0","id":1,"result":5}`:                                   `the client's answer cannot be read: its result must be an object, not a number`,
		`{"jsonrpc":"2.0","id":1,"error":"no"}`:                                 `no`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":"E1","message":"bad"}}`:        `bad`,
		`{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}`:                           `the client's answer cannot be read: this is no message: it is not JSON from byte 38 on`,
		`{"jsonrpc":"2.0","id":1.5,"result":{}}`:                                "",
		`{"jsonrpc":"2.0","id":18446744073709551617,"result":{}}`:               "",
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`:          "",
		`{"jsonrpc":"2.0","id":1}`:                                              `the client's answer cannot be read: its result must be an object, not nothing`,
		`{"jsonrpc":"2.0","id":1,"error":null}`:                                 `the client's answer cannot be read: its result must be an object, not nothing`,
		`{"jsonrpc":"2.0","id":1,"params":{}}`:                                  "", // a request that lacks its method
		`{"jsonrpc":"2.0","id":1,"result":{"a":2},"params":{}}`:                 `{"a":2}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"},"params":{}}`: `m`,
		`{"jsonrpc":"2.0","id":2}`:                                              "", // we ask nothing of this ID
	} {
		c, send, _ := newTestConn()
		asked, _ := jsonrpc.MakeID(1.0)
		c.note(&jsonrpc.Request{ID: asked, Method: "elicitation/create"})
		go func() {
			_, _ = io.WriteString(send, line+"\n"+`{"jsonrpc":"2.0","method":"end"}`+"\n")
		}()
		msg, err := c.Read(t.Context())
		got := ""
		if r, ok := msg.(*jsonrpc.Response); ok {
			got = string(r.Result)
			if r.Error != nil {
				got = r.Error.Error()
			}
			if i, _ := r.ID.Raw().(int64); i != 1 {
				t.Errorf("%s is for %v", line, r.ID)
			}
		}
		if err != nil || got != want && (want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %q, %v; want %q", line, got, err, want)
		}
		c.Close()
	}
}

// TestWhatWasReadIsAnswered although the client has closed its end: the SDK hears of it
// when all is answered, and what takes too long gets an error.
func TestWhatWasReadIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		c, send, answers := newTestConn()
		go func() {
			_, _ = io.WriteString(send, `{"jsonrpc":"2.0","id":1,"method":"quick"}`+"\n"+`{"jsonrpc":"2.0","id":"s","method":"slow"}`+"\n"+
				`{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen"}`)
			send.Close()
		}()
		go func() {
			for {
				msg, err := c.Read(context.WithoutCancel(t.Context()))
				if err != nil {
					c.Close()
					return
				}
				if req := msg.(*jsonrpc.Request); req.Method == "quick" {
					go func() {
						time.Sleep(time.Second)
						_ = c.Write(context.Background(), &jsonrpc.Response{ID: req.ID, Result: []byte("{}")})
					}()
				}
			}
		}()
		for _, want := range []string{`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":"s","error":{"code":-32603,`} {
			if got, err := answers.ReadString('\n'); err != nil || !strings.HasPrefix(got, want) {
				t.Errorf("%v: %s, want %s", err, got, want)
			}
		}
		<-c.closed
		if took := time.Since(begun); took > finalTimeout {
			t.Errorf("it took %v", took)
		}
	})
}

// TestClientThatIsGoneEndsABacklog: nothing reads our answers, and the end of the input
// is behind requests that there is no room for.
func TestClientThatIsGoneEndsABacklog(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real time")
	}
	for name, line := range map[string]string{
		"requests":    `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		"no messages": `not a message`,
	} {
		t.Run(name, func(t *testing.T) {
			in, send, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			_, out := io.Pipe() // never read
			c := New(in, out, slog.New(slog.DiscardHandler))
			go func() {
				defer send.Close()
				for range maxClientCalls + 100 {
					_, _ = io.WriteString(send, line+"\n")
				}
			}()
			for {
				msg, err := c.Read(t.Context())
				if err != nil {
					break
				}
				if req, ok := msg.(*jsonrpc.Request); ok {
					go func() { _ = c.Write(context.Background(), &jsonrpc.Response{ID: req.ID, Result: []byte("{}")}) }()
				}
			}
			<-c.closed // else the test does not end
			out.Close()
		})
	}
}

func TestClientSendsAnArray(t *testing.T) {
	c, send, _ := newTestConn()
	defer c.Close()
	go func() {
		_, _ = io.WriteString(send, `[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b"}]`+"\n")
	}()
	for _, want := range []string{"a", "b"} {
		msg, err := c.Read(t.Context())
		if req, ok := msg.(*jsonrpc.Request); err != nil || !ok || req.Method != want {
			t.Errorf("%v, %v, want method %s", msg, err, want)
		}
	}
}

// TestStalledClientIsNotReadOn holds that a client that takes no answers
// cannot send calls without end.
func TestStalledClientIsNotReadOn(t *testing.T) {
	for name, tt := range map[string]struct {
		size int // of one call
		most int // calls that are taken in
	}{
		"small": {10, maxClientCalls},
		"large": {8<<20 - 32, maxClientBytes / (8 << 20)}, // with their IDs
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, send, _ := newTestConn()
				stopped := make(chan struct{})
				go func() {
					defer close(stopped)
					for i := 1; ; i++ {
						line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m","params":{"x":"%s"}}`, i, strings.Repeat("x", tt.size-8))
						if _, err := io.WriteString(send, line+"\n"); err != nil {
							return
						}
					}
				}()
				taken := make(chan jsonrpc.Message)
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					defer close(taken)
					for {
						msg, err := c.Read(ctx)
						if err != nil {
							return
						}
						taken <- msg
					}
				}()
				var last *jsonrpc.Request
				n := 0
				for blocked := false; !blocked; {
					synctest.Wait()
					select {
					case msg := <-taken:
						n, last = n+1, msg.(*jsonrpc.Request)
					default:
						blocked = true
					}
				}
				if n != tt.most {
					t.Errorf("%d calls were taken in, want %d", n, tt.most)
				}
				c.answered(last.ID)
				if msg := (<-taken).(*jsonrpc.Request); msg.ID == last.ID {
					t.Error("no further call after an answer")
				}
				cancel()
				for range taken {
				}
				c.Close()
				send.Close()
				<-stopped
			})
		})
	}
}

// TestManyRequestsInAnArray: more than may wait at the same time. None is lost, and those
// behind them come.
func TestManyRequestsInAnArray(t *testing.T) {
	const requests = 3 * maxClientCalls
	batch := "[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, requests), ",") + "]\n"
	var answers bytes.Buffer
	c := New(strings.NewReader(batch), &answers, slog.New(slog.DiscardHandler))
	for {
		msg, err := c.Read(t.Context())
		if err != nil {
			break
		}
		if err := c.Write(t.Context(), &jsonrpc.Response{ID: msg.(*jsonrpc.Request).ID, Result: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	if got := bytes.Count(answers.Bytes(), []byte(`"result"`)); got != requests {
		t.Errorf("%d answers to %d requests", got, requests)
	}
}
