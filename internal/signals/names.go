package signals

// The names of spans, attributes and metrics. Those without toolcell in them are of
// OpenTelemetry's conventions for MCP (semantic-conventions-genai, docs/gen-ai/mcp.md), which are
// in development: a change there is a change here and nowhere else. What they do not name is
// below toolcell.
const (
	// Spans. Those of requests are named by the method and the tool.
	spanRun     = "toolcell.run"
	spanStart   = "toolcell.sandbox.start"
	spanAsk     = "toolcell.ask"
	spanResolve = "toolcell.package.resolve"

	// Attributes of requests.
	attrMethod        = "mcp.method.name"
	attrProtocol      = "mcp.protocol.version"
	attrTool          = "gen_ai.tool.name"
	attrPrompt        = "gen_ai.prompt.name"
	attrOperation     = "gen_ai.operation.name"
	attrErrorType     = "error.type"
	attrStatusCode    = "rpc.response.status_code"
	attrTransport     = "network.transport"
	attrServerAddress = "server.address"
	attrServerPort    = "server.port"

	// An attribute of bytes over the network, of OpenTelemetry's conventions for systems.
	attrDirection = "network.io.direction"

	// Attributes of our own.
	attrClient      = "toolcell.client.name"
	attrServer      = "toolcell.server.name"
	attrWrites      = "toolcell.writes"
	attrRunID       = "toolcell.run.id"
	attrRunStatus   = "toolcell.run.status"
	attrRunCalls    = "toolcell.run.calls"
	attrCPUTime     = "toolcell.run.cpu.time"
	attrMemoryPeak  = "toolcell.run.memory.peak"
	attrSent        = "toolcell.run.network.sent"
	attrReceived    = "toolcell.run.network.received"
	attrStartKind   = "toolcell.start.kind"
	attrAskOutcome  = "toolcell.ask.outcome"
	attrVerdict     = "toolcell.verdict"
	attrServiceName = "service.name"
	attrVersion     = "service.version"
	attrInstance    = "service.instance.id"

	// Metrics.
	metricServerOperation = "mcp.server.operation.duration"
	metricClientOperation = "mcp.client.operation.duration"
	metricServerSession   = "mcp.server.session.duration"
	metricClientSession   = "mcp.client.session.duration"
	metricRun             = "toolcell.run.duration"
	metricActive          = "toolcell.run.active"
	metricCPUTime         = "toolcell.run.cpu.time"
	metricMemoryPeak      = "toolcell.run.memory.peak"
	metricNetwork         = "toolcell.run.network.io"
	metricStart           = "toolcell.sandbox.start.duration"
	metricAsk             = "toolcell.ask.duration"
	metricResolve         = "toolcell.package.resolve.duration"
	metricRefused         = "toolcell.call.refused"
)

// Values of attributes.
const (
	executeTool = "execute_tool" // of attrOperation
	pipe        = "pipe"         // of attrTransport
	tcp         = "tcp"
	transmit    = "transmit" // of attrDirection
	receive     = "receive"

	// ToolError is the error type of a tool that says itself that it failed (isError).
	ToolError = "tool_error"
	// OtherError is the error type of what has no name of its own.
	OtherError = "_OTHER"
)

// Verdicts on requests that toolcell does not let out.
const (
	VerdictDeny    = "deny"    // it may not be made
	VerdictAsk     = "ask"     // the user has to be asked, and has not answered
	VerdictRefused = "refused" // it cannot be made
)

// Error types of requests that toolcell does not let out.
const (
	DeniedByPolicy   = "policy_denied" // these four of VerdictDeny
	LimitReached     = "limit_reached"
	NotGranted       = "not_granted"
	DeniedByUser     = "user_denied"
	NoUser           = "no_user" // these two of VerdictAsk
	NoAnswer         = "no_answer"
	InvalidArguments = "invalid_arguments" // the others, and OtherError, of VerdictRefused
	UnknownServer    = "unknown_server"
	UnknownTool      = "unknown_tool"
	ServerChanged    = "server_changed"
	RunStopped       = "run_stopped"
)

// callTool is the method of MCP that calls a tool.
const callTool = "tools/call"

// A Metric is one that is exported.
type Metric struct {
	Name, Unit, Description string
	Kind                    Kind
}

// A Kind is how a Metric adds up.
type Kind int

// The kinds of metrics.
const (
	Histogram Kind = iota
	Counter        // a sum that goes up
	UpDown         // a sum that goes up and down
)

// Metrics are all that are exported.
var Metrics = []Metric{
	{metricServerOperation, "s", "Requests of clients, such as calls of run_python", Histogram},
	{metricClientOperation, "s", "Requests to the user's MCP servers", Histogram},
	{metricServerSession, "s", "Connections of clients", Histogram},
	{metricClientSession, "s", "Connections to the user's MCP servers", Histogram},
	{metricRun, "s", "Runs of code, with what they wait for", Histogram},
	{metricCPUTime, "s", "Processor time of runs", Histogram},
	{metricMemoryPeak, "By", "Memory of runs, at the time of the most", Histogram},
	{metricNetwork, "By", "What runs sent to hosts, and received from them", Histogram},
	{metricStart, "s", "Starts of sandboxes", Histogram},
	{metricAsk, "s", "Questions to the user, until the answer", Histogram},
	{metricResolve, "s", "Packages of a script made ready", Histogram},
	{metricRefused, "{call}", "Requests to the user's MCP servers that toolcell did not let out", Counter},
	{metricActive, "{run}", "Runs under way", UpDown},
}

// buckets are the bounds of histograms, by unit. A run in a fork takes some milliseconds; an
// interpreter alone takes some MiB.
var buckets = map[string][]float64{
	"s": {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300},
	"By": {
		1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20, 64 << 20, 128 << 20, 256 << 20, 512 << 20,
		1 << 30, 2 << 30, 4 << 30, 8 << 30, 16 << 30,
	},
}
