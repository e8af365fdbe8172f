package record

// A Kind is what an entry is about.
type Kind string

// The kinds of entries of runs.
const (
	KindRunStart  Kind = "run.start"
	KindRunReady  Kind = "run.ready"
	KindCallStart Kind = "call.start"
	KindCallEnd   Kind = "call.end"
	KindVerdict   Kind = "verdict"
	KindAsk       Kind = "ask"
	KindEgress    Kind = "egress"
	KindFile      Kind = "file"
	KindLimit     Kind = "limit"
	KindPin       Kind = "pin"
	KindRunEnd    Kind = "run.end"
	KindRunCost   Kind = "run.cost"
	KindTorn      Kind = "torn"
)

// An Entry is what one line says: one of the structs below. Their strings are bounded where they are
// written: names to 256 bytes, sentences to 1 KiB, lists to 100 members, and they have no control
// characters. The entry's "cut" names what was cut. What code, a user or a server wrote is a [Text].
//
// Digests are SHA-256 in hexadecimal. They are not salted, so none is of a secret; those of
// Texts are salted.
type Entry interface {
	Kind() Kind
	// ready bounds all strings and readies the Texts, and returns what is encoded.
	ready(d *draft) any
}

// RunStart begins a run: who wants what.
type RunStart struct {
	Command string `json:"command,omitzero"` // serve, exec or "servers call"
	Version string `json:"version,omitzero"` // of toolcell
	Client  Client `json:"client,omitzero"`
	User    string `json:"user,omitzero"` // of the operating system
	Host    string `json:"host,omitzero"` // filled in if empty, as is PID
	PID     int    `json:"pid,omitzero"`
	Session string `json:"session,omitzero"`
	Plan    bool   `json:"plan,omitzero"` // a dry run
	Code    Text   `json:"code,omitzero"`
	Grants  Grants `json:"grants,omitzero"`
	Policy  string `json:"policySHA256,omitzero"`
	Timeout int    `json:"timeoutSeconds,omitzero"`
	Private bool   `json:"private,omitzero"` // it may use a private server
	Keep    Keep   `json:"-"`                // of the values of this entry; the journal's if empty
}

// RunReady says what the code is about to run in. A run without it never ran code.
type RunReady struct {
	Image     Image     `json:"image,omitzero"`
	Packages  []Package `json:"packages,omitzero"`
	Tools     string    `json:"toolsSHA256,omitzero"` // of the definitions that are known of the granted servers
	Folder    string    `json:"folder,omitzero"`      // of the client, which the code can read
	Continued bool      `json:"continued,omitzero"`   // the session has run code before
}

// A Client is the MCP client that a run comes from.
type Client struct {
	Name    string `json:"name"`
	Version string `json:"version,omitzero"`
	Era     string `json:"era,omitzero"` // the protocol version, such as 2026-07-28
}

// Grants are what a run may use.
type Grants struct {
	Servers []string `json:"servers,omitzero"`
	Hosts   []string `json:"hosts,omitzero"`
	Folders []string `json:"folders,omitzero"` // of the host, with :rw if the code may write there
}

// An Image is what the sandbox is made of.
type Image struct {
	Name   string `json:"name"` // as the user wrote it
	Digest string `json:"digest,omitzero"`
}

// A Package is one that the code can import beside those of the image.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version,omitzero"`
	SHA256  string `json:"sha256,omitzero"`
}

// CallStart is written before a request leaves for a server. A CallStart without a CallEnd may
// have taken effect.
type CallStart struct {
	Call       int    `json:"call"`                      // its number in the run, from 1 (Run.NextCall)
	Line       int    `json:"line,omitzero"`             // of the code, from 1, if it is known
	Effect     string `json:"effect"`                    // the method, such as tools/call
	Server     string `json:"server"`                    //
	Where      string `json:"where,omitzero"`            // the server runs, if not where it does by default: host or sandboxed
	Tool       string `json:"tool,omitzero"`             // or what else is asked for by name
	Entry      string `json:"entrySHA256,omitzero"`      // of the server's entry in the user's files
	Definition string `json:"definitionSHA256,omitzero"` // of the tool
	Arguments  Text   `json:"arguments,omitzero"`        // JSON, as it is sent
	Writes     bool   `json:"writes,omitzero"`           // it may change something
	By         string `json:"by,omitzero"`               // why: pin (its server said then that it only reads), default (nobody said so), or method (it only reads)
	Question   string `json:"question,omitzero"`         // ID of an earlier one, by which the user allowed it for the rest of the run or for the connection
	Private    bool   `json:"private,omitzero"`          // the policy says that what the server has is private
	Keep       Keep   `json:"-"`
}

// An Outcome is how a call ended.
type Outcome string

// The outcomes of calls.
const (
	OK            Outcome = "ok"
	ToolError     Outcome = "tool_error"     // the server answered with isError
	ProtocolError Outcome = "protocol_error" // the server answered with an error of JSON-RPC
	Timeout       Outcome = "timeout"
	Cancelled     Outcome = "cancelled"
	Refused       Outcome = "refused" // by toolcell: nothing was sent
	Unknown       Outcome = "unknown" // no answer came: it may have taken effect
)

// CallEnd is what became of a call.
type CallEnd struct {
	Call     int     `json:"call"`
	Line     int     `json:"line,omitzero"` // of the code, from 1, if it is known
	Server   string  `json:"server"`
	Tool     string  `json:"tool,omitzero"`
	Outcome  Outcome `json:"outcome"`
	Writes   bool    `json:"writes,omitzero"`
	Private  bool    `json:"private,omitzero"`
	Duration int64   `json:"durationUs,omitzero"` // microseconds
	Code     int     `json:"code,omitzero"`       // of an error of JSON-RPC
	Error    Text    `json:"error,omitzero"`
	Answer   Text    `json:"answer,omitzero"` // JSON, as the server wrote it
	Said     bool    `json:"-"`               // Error has words of the server: it is kept as an answer
	Keep     Keep    `json:"-"`
	NoServer bool    `json:"-"` // the server was not found: code made up its name
}

// A Verdict is what the policy says of a call. Where a call follows, its arguments are in the
// CallStart and need not be here.
type Verdict struct {
	Call      int      `json:"call,omitzero"`
	Line      int      `json:"line,omitzero"` // of the code, from 1, if it is known
	Effect    string   `json:"effect,omitzero"`
	Server    string   `json:"server,omitzero"`
	Tool      string   `json:"tool,omitzero"`
	Decision  string   `json:"decision"`         // allow, ask, deny or plan
	Reasons   []string `json:"reasons,omitzero"` // why it is asked or denied
	Writes    bool     `json:"writes,omitzero"`  //
	Private   bool     `json:"private,omitzero"` //
	Arguments Text     `json:"arguments,omitzero"`
	Keep      Keep     `json:"-"`
}

// An Ask is a question to the user: one entry when it is asked, and one when it ends.
type Ask struct {
	Question string `json:"question"`          // its ID
	State    string `json:"state"`             // asked, approved, denied, stopped, expired, ended, answered or revoked
	About    string `json:"about,omitzero"`    // call, input, or before: what a run may have before it starts
	Calls    []int  `json:"calls,omitzero"`    // numbers of the calls
	Server   string `json:"server,omitzero"`   // that asks for input
	Tool     string `json:"tool,omitzero"`     //
	Scope    string `json:"scope,omitzero"`    // of an approval: call, run, reads, connection, connection-same or connection-reads
	Allowed  []int  `json:"allowed,omitzero"`  // numbers of the calls that were allowed, if others were denied
	Because  Text   `json:"because,omitzero"`  // what the user says to what is denied
	By       string `json:"by,omitzero"`       // how the answer came: form, terminal or toolcell approvals
	Client   string `json:"client,omitzero"`   // through which it came
	Terminal string `json:"terminal,omitzero"` // where it was typed
	PID      int    `json:"pid,omitzero"`      // of the process that it came from
	Remark   string `json:"remark,omitzero"`   // why it is not clearly a person's
	Shown    Text   `json:"shown,omitzero"`    // what the user was shown
	Waited   int64  `json:"waitedUs,omitzero"` // microseconds
	Keep     Keep   `json:"-"`
}

// Egress is what a run did at one host and port.
type Egress struct {
	Host     string `json:"host"`
	Port     int    `json:"port,omitzero"`
	Rule     string `json:"rule,omitzero"`          // that allowed or denied it last
	Requests int    `json:"requests,omitzero"`      // or connections whose content is not seen
	Sent     int64  `json:"bytesSent,omitzero"`     //
	Received int64  `json:"bytesReceived,omitzero"` //
	Refused  int    `json:"refused,omitzero"`       // or failed before reaching the host
}

// A File is one that a run left, or a saved tool that it saved, removed, or was given the source of.
type File struct {
	Name   string `json:"name"`         // of a saved tool with its module: user_tools.NAME
	Use    string `json:"use,omitzero"` // left, given, saved or removed
	Type   string `json:"type,omitzero"`
	Size   int64  `json:"size"` // 0 if it was removed
	SHA256 string `json:"sha256,omitzero"`
	URI    string `json:"uri,omitzero"` // by which the client reads it, as long as it is kept
}

// A Limit is one that was reached.
type Limit struct {
	Name   string `json:"name"` // such as memory, time, pids or calls
	Max    int64  `json:"max,omitzero"`
	Unit   string `json:"unit,omitzero"` // of Max, such as bytes or seconds
	Server string `json:"server,omitzero"`
	Tool   string `json:"tool,omitzero"`
	Effect string `json:"effect,omitzero"` // what followed, such as killed or refused
}

// A Pin is a tool whose definition changed, or was accepted. It is of no run if a command accepted it.
type Pin struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
	Change string `json:"change"`                // changed, added, removed or accepted
	Before string `json:"beforeSHA256,omitzero"` // of the definition that was pinned
	Now    string `json:"nowSHA256,omitzero"`
	By     string `json:"by,omitzero"` // how the user accepted it: ByQuestion, or a command
}

// ByQuestion is Pin.By of a tool whose hint that it only reads was accepted, and nothing else of its
// definition, with the answer to a question.
const ByQuestion = "question"

// RunEnd is how a run ended, as in its result.
type RunEnd struct {
	Status    string `json:"status"`
	ExitCode  *int   `json:"exitCode,omitzero"`
	Error     Text   `json:"error,omitzero"`
	Traceback Text   `json:"traceback,omitzero"`
	Stdout    Text   `json:"stdout,omitzero"`
	Stderr    Text   `json:"stderr,omitzero"`
	Result    Text   `json:"result,omitzero"` // repr of a trailing expression
	Files     []File `json:"files,omitzero"`
	Effects   []Done `json:"effects,omitzero"` // the calls that may have changed something
	Calls     int    `json:"calls,omitzero"`   // all that went out
	Duration  int64  `json:"durationUs,omitzero"`
	Private   bool   `json:"private,omitzero"` // it has read what is private
	Own       bool   `json:"-"`                // Error is what toolcell itself says: nothing of it is private
	Lost      int    `json:"lost,omitzero"`    // entries of the run that are not on record, or not with all Texts: filled in
	Keep      Keep   `json:"-"`
}

// Done is a call that may have changed something.
type Done struct {
	Call    int     `json:"call"`
	Server  string  `json:"server"`
	Tool    string  `json:"tool"`
	Outcome Outcome `json:"outcome"`
}

// RunCost is what a run took, as far as it is known.
type RunCost struct {
	CPU      int64 `json:"cpuUs,omitzero"` // microseconds of processor time
	Peak     int64 `json:"peakBytes,omitzero"`
	Sent     int64 `json:"bytesSent,omitzero"` // over the network
	Received int64 `json:"bytesReceived,omitzero"`
}

// Torn says that entries before it are missing: the disk was full, or a process was killed while
// it wrote. If Bytes is not 0, the line before is what there is of one.
type Torn struct {
	Bytes  int    `json:"bytes,omitzero"`
	Lost   int    `json:"lost,omitzero"`       // entries, with the one that is torn
	Values int    `json:"lostValues,omitzero"` // texts beside entries that are there
	Error  string `json:"error,omitzero"`      // why
}

// Kind returns KindRunStart.
func (RunStart) Kind() Kind { return KindRunStart }

// Kind returns KindRunReady.
func (RunReady) Kind() Kind { return KindRunReady }

// Kind returns KindCallStart.
func (CallStart) Kind() Kind { return KindCallStart }

// Kind returns KindCallEnd.
func (CallEnd) Kind() Kind { return KindCallEnd }

// Kind returns KindVerdict.
func (Verdict) Kind() Kind { return KindVerdict }

// Kind returns KindAsk.
func (Ask) Kind() Kind { return KindAsk }

// Kind returns KindEgress.
func (Egress) Kind() Kind { return KindEgress }

// Kind returns KindFile.
func (File) Kind() Kind { return KindFile }

// Kind returns KindLimit.
func (Limit) Kind() Kind { return KindLimit }

// Kind returns KindPin.
func (Pin) Kind() Kind { return KindPin }

// Kind returns KindRunEnd.
func (RunEnd) Kind() Kind { return KindRunEnd }

// Kind returns KindRunCost.
func (RunCost) Kind() Kind { return KindRunCost }

// Kind returns KindTorn.
func (Torn) Kind() Kind { return KindTorn }
