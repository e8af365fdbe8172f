package record

import (
	"cmp"
	"os"
)

// What toolcell or the user chose is a name: a server, a user. What the client, code or a server chose is
// foreign: any secret may be part of it.

func (e RunStart) ready(d *draft) any {
	d.keep(e.Keep)
	e.Host, e.PID = cmp.Or(e.Host, d.o.Host), cmp.Or(e.PID, os.Getpid())
	e.Command, e.Version, e.User = cmp.Or(e.Command, d.o.Command), cmp.Or(e.Version, d.o.Version), cmp.Or(e.User, d.o.User)
	d.name("command", &e.Command)
	d.name("version", &e.Version)
	d.foreign("client.name", &e.Client.Name)
	d.foreign("client.version", &e.Client.Version)
	d.foreign("client.era", &e.Client.Era)
	d.name("user", &e.User)
	d.name("host", &e.Host)
	d.foreign("session", &e.Session)
	d.text("code", &e.Code, input)
	d.names("grants.servers", &e.Grants.Servers)
	d.foreigns("grants.hosts", &e.Grants.Hosts)
	d.foreigns("grants.folders", &e.Grants.Folders)
	d.name("policySHA256", &e.Policy)
	return &e
}

func (e RunReady) ready(d *draft) any {
	d.words("image.name", &e.Image.Name)
	d.name("image.digest", &e.Image.Digest)
	bound(d, "packages", &e.Packages, func(p *Package) {
		d.foreign("packages.name", &p.Name)
		d.foreign("packages.version", &p.Version)
		d.name("packages.sha256", &p.SHA256)
	})
	d.name("toolsSHA256", &e.Tools)
	d.words("folder", &e.Folder)
	return &e
}

func (e CallStart) ready(d *draft) any {
	d.keep(e.Keep)
	d.name("effect", &e.Effect)
	d.name("server", &e.Server)
	d.name("where", &e.Where)
	d.foreign("tool", &e.Tool)
	d.name("entrySHA256", &e.Entry)
	d.name("definitionSHA256", &e.Definition)
	d.text("arguments", &e.Arguments, input)
	d.name("by", &e.By)
	d.name("question", &e.Question)
	return &e
}

func (e CallEnd) ready(d *draft) any {
	d.keep(e.Keep)
	if e.NoServer {
		d.foreign("server", &e.Server)
	} else {
		d.name("server", &e.Server)
	}
	d.foreign("tool", &e.Tool)
	d.name("outcome", (*string)(&e.Outcome))
	by := output // toolcell itself says why
	if e.Said {
		by = answer
	}
	d.text("error", &e.Error, by)
	d.text("answer", &e.Answer, answer)
	return &e
}

func (e Verdict) ready(d *draft) any {
	d.keep(e.Keep)
	d.name("effect", &e.Effect)
	d.name("server", &e.Server)
	d.foreign("tool", &e.Tool)
	d.name("decision", &e.Decision)
	bound(d, "reasons", &e.Reasons, func(s *string) { d.words("reasons", s) })
	d.text("arguments", &e.Arguments, input)
	return &e
}

func (e Ask) ready(d *draft) any {
	d.keep(e.Keep)
	d.name("question", &e.Question)
	d.name("state", &e.State)
	d.name("about", &e.About)
	bound(d, "calls", &e.Calls, func(*int) {})
	d.name("server", &e.Server)
	d.foreign("tool", &e.Tool)
	d.name("scope", &e.Scope)
	bound(d, "allowed", &e.Allowed, func(*int) {})
	d.text("because", &e.Because, input)
	d.name("by", &e.By)
	d.foreign("client", &e.Client)
	d.name("terminal", &e.Terminal)
	d.words("remark", &e.Remark)
	d.text("shown", &e.Shown, input)
	return &e
}

func (e Egress) ready(d *draft) any {
	d.foreign("host", &e.Host)
	d.words("rule", &e.Rule)
	return &e
}

func (e File) ready(d *draft) any {
	e.bound(d, "")
	return &e
}

func (e *File) bound(d *draft, of string) {
	d.foreign(of+"name", &e.Name)
	d.name(of+"use", &e.Use)
	d.foreign(of+"type", &e.Type)
	d.name(of+"sha256", &e.SHA256)
	d.foreign(of+"uri", &e.URI)
}

func (e Limit) ready(d *draft) any {
	d.name("name", &e.Name)
	d.name("unit", &e.Unit)
	d.name("server", &e.Server)
	d.foreign("tool", &e.Tool)
	d.name("effect", &e.Effect)
	return &e
}

func (e Pin) ready(d *draft) any {
	d.name("server", &e.Server)
	d.foreign("tool", &e.Tool)
	d.name("change", &e.Change)
	d.name("beforeSHA256", &e.Before)
	d.name("nowSHA256", &e.Now)
	d.name("by", &e.By)
	return &e
}

func (e RunEnd) ready(d *draft) any {
	if e.Own {
		d.text("error", &e.Error, output)
	}
	d.keep(e.Keep)
	if !e.Own {
		d.text("error", &e.Error, output)
	}
	d.name("status", &e.Status)
	d.text("traceback", &e.Traceback, output)
	d.text("stdout", &e.Stdout, output)
	d.text("stderr", &e.Stderr, output)
	d.text("result", &e.Result, output)
	e.Lost = max(e.Lost, d.run.Lost())
	bound(d, "files", &e.Files, func(f *File) { f.bound(d, "files.") })
	bound(d, "effects", &e.Effects, func(c *Done) {
		d.name("effects.server", &c.Server)
		d.foreign("effects.tool", &c.Tool)
		d.name("effects.outcome", (*string)(&c.Outcome))
	})
	return &e
}

func (e RunCost) ready(*draft) any { return &e }

func (e Torn) ready(d *draft) any {
	d.words("error", &e.Error)
	return &e
}

// blank returns a new entry of a kind to decode into, nil if the kind is not known.
func blank(k Kind) Entry {
	switch k {
	case KindRunStart:
		return new(RunStart)
	case KindRunReady:
		return new(RunReady)
	case KindCallStart:
		return new(CallStart)
	case KindCallEnd:
		return new(CallEnd)
	case KindVerdict:
		return new(Verdict)
	case KindAsk:
		return new(Ask)
	case KindEgress:
		return new(Egress)
	case KindFile:
		return new(File)
	case KindLimit:
		return new(Limit)
	case KindPin:
		return new(Pin)
	case KindRunEnd:
		return new(RunEnd)
	case KindRunCost:
		return new(RunCost)
	case KindTorn:
		return new(Torn)
	case KindFileBegin:
		return new(FileBegin)
	case KindFileEnd:
		return new(FileEnd)
	case KindDayBegin:
		return new(DayBegin)
	case KindDayRemoved:
		return new(DayRemoved)
	case KindForgotten:
		return new(Forgotten)
	}
	return nil
}

// Texts returns the Texts of an entry by the names of their fields.
func Texts(e Entry) map[string]*Text {
	switch e := e.(type) {
	case *RunStart:
		return map[string]*Text{"code": &e.Code}
	case *CallStart:
		return map[string]*Text{"arguments": &e.Arguments}
	case *CallEnd:
		return map[string]*Text{"error": &e.Error, "answer": &e.Answer}
	case *Verdict:
		return map[string]*Text{"arguments": &e.Arguments}
	case *Ask:
		return map[string]*Text{"because": &e.Because, "shown": &e.Shown}
	case *RunEnd:
		return map[string]*Text{"error": &e.Error, "traceback": &e.Traceback, "stdout": &e.Stdout, "stderr": &e.Stderr, "result": &e.Result}
	}
	return nil
}
