package elicitation

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
)

var all = Capabilities{Form: true, URL: true}

func secrets() *redact.Redactor {
	return redact.New(config.Server{Env: map[string]string{"API_KEY": "s3cr3t-value", "CLIENT_ID": "client-1234", "LOGIN_KEY_URL": "https://auth.example/start"}})
}

// object makes the parameters of a form with these properties.
func formOf(properties string) string {
	return `{"message":"m","requestedSchema":{"type":"object","properties":{` + properties + `}}}`
}

func TestServersAreToldWhatTheClientCanShow(t *testing.T) {
	for want, can := range map[string]Capabilities{
		`{}`:                                   {ByRequest: true},
		`{"elicitation":{"form":{}}}`:          {Form: true},
		`{"elicitation":{"url":{}}}`:           {URL: true},
		`{"elicitation":{"form":{},"url":{}}}`: all,
	} {
		request, err := json.Marshal(can.ForRequest())
		if err != nil || string(request) != want {
			t.Errorf("%+v: a request has %s, %v, want %s", can, request, err, want)
		}
		session, err := json.Marshal(struct {
			Elicitation *mcp.ElicitationCapabilities `json:"elicitation,omitzero"`
		}{can.ForSession().Elicitation})
		if err != nil || string(session) != want {
			t.Errorf("%+v: a session has %s, %v, want %s", can, session, err, want)
		}
	}
}

// TestWhatIsShownIsCleanAndBounded, and has no secrets.
func TestWhatIsShownIsCleanAndBounded(t *testing.T) {
	r, err := Read(json.RawMessage(`{"message":"a\u001b[2Jb\u202ec \udb40\udc41 s3cr\u200b3t-value `+strings.Repeat("x", 20<<10)+`","requestedSchema":
		{"type":"object", "title":"t\u200b", "properties":{"b":{"type":"string","description":"d s3cr3t-value\u202e"},"a":{"type":"boolean"},
			"c":{"type":"string","enum":["y","n"],"enumNames":["Y\u200bes","No"]}}}}`), all, secrets())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(r.Message, "abc  [API_KEY] xxx") || len(r.Message) > maxMessage+50 || !strings.Contains(r.Message, "left out") {
		t.Errorf("message %.100q of %d bytes", r.Message, len(r.Message))
	}
	if want := `{"type":"object","title":"t","properties":{"b":{"type":"string","description":"d [API_KEY]"},"a":{"type":"boolean"},"c":{"type":"string","enum":["y","n"],"enumNames":["Yes","No"]}}}`; string(r.Schema) != want {
		t.Errorf("schema %s, want %s", r.Schema, want)
	}
}

// TestFormsThatAreNotFlatAreRefused, and those that hide or forge something.
func TestFormsThatAreNotFlatAreRefused(t *testing.T) {
	deep := strings.Repeat(`{"x":`, 40) + "1" + strings.Repeat("}", 40)
	var many []string
	for i := range maxFields + 1 {
		many = append(many, `"f`+strings.Repeat("x", i)+`":{"type":"string"}`)
	}
	for said, params := range map[string]string{
		"is not a JSON object":         `[]`,
		"has no form":                  `{"message":"m"}`,
		`"message" is not text`:        `{"message":7,"requestedSchema":{"type":"object"}}`,
		`its type is not "object"`:     `{"message":"m","requestedSchema":{"type":"array"}}`,
		"not string, number":           formOf(`"a":{"type":"object"}`),
		`has "properties"`:             formOf(`"a":{"type":"string","properties":{}}`),
		`has "$ref"`:                   formOf(`"a":{"type":"string","$ref":"https://evil.example/x"}`),
		"neither enum nor anyOf":       formOf(`"a":{"type":"array","items":{"type":"object"}}`),
		"without a text as const":      formOf(`"a":{"type":"string","oneOf":[{"title":"A"}]}`),
		"can only be null":             formOf(`"a":{"type":"null"}`),
		"has no type":                  formOf(`"a":{}`),
		`"a" is in it twice`:           formOf(`"a":{"type":"string"},"a":{"type":"number"}`),
		`"type" is in it twice`:        formOf(`"a":{"type":"string","type":"object"}`),
		`"enum" cannot be read`:        formOf(`"a":{"type":"string","enum":[{"a":1}]}`),
		`"minimum" cannot be read`:     formOf(`"a":{"type":"number","minimum":1e999999}`),
		"cannot be seen":               formOf(`"a":{"type":"string","enum":["y\u200bes","yes"]}`),
		`"na" has characters`:          formOf(`"n\u202ea":{"type":"string"}`),
		"longer than 64 KiB":           formOf(`"a":{"type":"string","description":"` + strings.Repeat("d", maxSchema) + `"}`),
		"nested too deeply":            formOf(`"a":{"type":"string","x":` + deep + `}`),
		"more than 100 fields":         formOf(strings.Join(many, ",")),
		`"nb" has characters`:          formOf(`"title":{"type":"string"},"n\u202eb":{"type":"string"}`),
		`"yes" has characters`:         formOf(`"a":{"type":"string","x":{"title":"T"},"enum":["y\u200bes"]}`),
		"form: it is not a JSON obj":   `{"message":"m","requestedSchema":[]}`,
		`"properties" cannot be read`:  `{"message":"m","requestedSchema":{"type":"object","properties":[]}}`,
		`"required" cannot be read`:    `{"message":"m","requestedSchema":{"type":"object","required":"a"}}`,
		`"a": it is not a JSON object`: formOf(`"a":7`),
		`"type" cannot be read`:        formOf(`"a":{"type":["string"],"anyOf":[{"type":"string"}]}`),
		`"anyOf" cannot be read`:       formOf(`"a":{"anyOf":{}}`),
		`its type "object" is not`:     formOf(`"b":{"anyOf":[{"type":"string"},{"type":"object"}]}`),
		`"items" cannot be read`:       formOf(`"a":{"type":"array","items":[]}`),
		`"oneOf" cannot be read`:       formOf(`"a":{"type":"string","oneOf":{}}`),
		`mode "other" is unknown`:      `{"mode":"other","message":"m"}`,
		"it has a form and an addre":   `{"mode":"form","message":"m","url":"https://a.example","requestedSchema":{"type":"object"}}`,
		"it has an address and a fo":   `{"mode":"url","message":"m","url":"https://a.example","requestedSchema":{"type":"object"}}`,
	} {
		if r, err := Read(json.RawMessage(params), all, secrets()); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%.100s\n%+v, %v, want an error with %q", params, r, err, said)
		}
	}
	for mode, can := range map[string]Capabilities{"form": {URL: true}, "url": {Form: true}} {
		if _, err := Read(json.RawMessage(`{"mode":"`+mode+`","url":"https://a.example","message":"m"}`), can, secrets()); err == nil || !strings.Contains(err.Error(), "not among those") {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

// TestAddressesShowWhereTheyLead.
func TestAddressesShowWhereTheyLead(t *testing.T) {
	read := func(address, id string) (Request, error) {
		raw, _ := json.Marshal(map[string]string{"mode": "url", "message": "m", "url": address, "elicitationId": id})
		return Read(raw, all, secrets())
	}
	for _, good := range []string{
		"https://login.example/a?client_id=client-1234&x=%20", "http://localhost:3000/", "https://auth.example/start?x=1",
		"https://a.example/" + strings.Repeat("x", maxURL-20),
	} {
		if r, err := read(good, "id-1"); err != nil || r.URL != good || r.ID != "id-1" || r.Mode != URL || r.Schema != nil {
			t.Errorf("%.100s: %+v, %v", good, r, err)
		}
	}
	for _, bad := range []string{
		"", "javascript:alert(1)", "file:///etc/passwd", "https:///x", "https://", "//a.example", "https://bank.example@evil.example/",
		"https://a.example/\u202egpj", "https://exämple.example", "https://a.example/ x", "https://a.example/\n", "https://a.example/?k=s3cr3t-value",
		"https://a.example/" + strings.Repeat("x", maxURL), "ftp://a.example",
	} {
		if r, err := read(bad, ""); err == nil {
			t.Errorf("%.100q: %+v", bad, r)
		}
	}
	for _, id := range []string{strings.Repeat("i", 300), "id\u202e", "id\n"} {
		if r, err := read("https://a.example", id); err == nil || !strings.Contains(err.Error(), "its elicitationId is longer than 256 bytes or not printable") {
			t.Errorf("the ID %.100q: %+v, %v", id, r, err)
		}
	}
}

// TestAnswersHaveToFitTheForm.
func TestAnswersHaveToFitTheForm(t *testing.T) {
	r, err := Read(json.RawMessage(`{"message":"m","requestedSchema":{"type":"object","required":["s"],"properties":{
		"s":{"type":"string","minLength":2,"maxLength":3},"n":{"type":"number","minimum":0.5,"maximum":2},"i":{"type":"integer"},"b":{"type":"boolean"},
		"e":{"type":"string","enum":["x","y"]},"t":{"type":"string","oneOf":[{"const":"p","title":"P"},{"const":"q","title":"Q"}]},
		"l":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["u","v","w"]}},
		"m":{"type":"array","items":{"anyOf":[{"const":"u","title":"U"}]}},
		"o":{"anyOf":[{"type":"string"},{"type":"null"}]}}}}`), all, secrets())
	if err != nil {
		t.Fatal(err)
	}
	for _, good := range []string{
		`{"s":"äöü"}`, `{"s":"ab","n":1.50,"i":9007199254740993,"b":true,"e":"x","t":"q","l":["u","w"],"m":[],"o":null}`, `{"s":"ab","i":1e2,"n":2,"o":"x"}`,
	} {
		got, err := r.ForServer(Reply{"accept", json.RawMessage(good)})
		if err != nil {
			t.Errorf("%s: %v", good, err)
			continue
		}
		sent, _ := json.Marshal(got)
		for piece := range strings.SplitSeq(strings.Trim(good, "{}"), `,"`) {
			if !strings.Contains(string(sent), strings.TrimPrefix(piece, `"`)) {
				t.Errorf("%s became %s", good, sent)
			}
		}
	}
	for bad, said := range map[string]string{
		``:                             `"s" is missing`,
		`{}`:                           `"s" is missing`,
		`[]`:                           "is not a JSON object",
		`{"s":7}`:                      "is not text",
		`{"s":null}`:                   "is not text",
		`{"s":"a"}`:                    "fewer than 2 characters",
		`{"s":"abcd"}`:                 "more than 3 characters",
		`{"s":"ab","n":"1"}`:           "is not a number",
		`{"s":"ab","n":0.4}`:           "out of range",
		`{"s":"ab","n":3}`:             "out of range",
		`{"s":"ab","i":1.5}`:           "is not an integer",
		`{"s":"ab","i":1e999999999}`:   "too large",
		`{"s":"ab","i":1e-999999999}`:  "", // whichever
		`{"s":"ab","b":"true"}`:        "neither true nor false",
		`{"s":"ab","e":"z"}`:           "not one of the choices",
		`{"s":"ab","t":"P"}`:           "not one of the choices",
		`{"s":"ab","l":["z"]}`:         "not one of the choices",
		`{"s":"ab","l":[]}`:            "fewer than 1 item",
		`{"s":"ab","l":["u","v","w"]}`: "more than 2 items",
		`{"s":"ab","l":"u"}`:           "is not a list",
		`{"s":"ab","l":[null]}`:        "is not a list",
		`{"s":"ab","o":7}`:             "none of the kinds",
		`{"s":"ab","s":"cd"}`:          "twice",
		`{"s":"ab"} {}`:                "",
	} {
		got, err := r.ForServer(Reply{"accept", json.RawMessage(bad)})
		if err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%s: %+v, %v, want an error with %q", bad, got, err, said)
		}
		if err != nil && strings.Contains(err.Error(), "abcd") {
			t.Errorf("the error quotes what was entered: %v", err)
		}
	}
	got, err := r.ForServer(Reply{"accept", json.RawMessage(`{"s":"ab","x":1}`)})
	if sent, _ := json.Marshal(got); err != nil || string(sent) != `{"action":"accept","content":{"s":"ab"}}` {
		t.Errorf("with what is no field of the form: %s, %v", sent, err)
	}
	for _, action := range []string{"decline", "cancel"} {
		if got, err := r.ForServer(Reply{action, json.RawMessage(`{"s":"ab"}`)}); err != nil || got.Action != action || got.Content != nil {
			t.Errorf("%s: %+v, %v", action, got, err)
		}
	}
	if _, err := r.ForServer(Reply{"yes", nil}); err == nil {
		t.Error("any action is an answer")
	}
	wrong := Request{Mode: Form, Schema: json.RawMessage(`{"type":"object","properties":{"a":7}}`)}
	if got, err := wrong.ForServer(Reply{"accept", nil}); err == nil {
		t.Errorf("a form that cannot be read: %+v", got)
	}
	if got, err := (Request{Mode: URL}).ForServer(Reply{"accept", json.RawMessage(`{"password":"x"}`)}); err != nil || got.Content != nil {
		t.Errorf("an address: %+v, %v", got, err)
	}
}
