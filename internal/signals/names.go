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

	// Attributes of our own.
	attrClient      = "toolcell.client.name"
	attrServer      = "toolcell.server.name"
	attrWrites      = "toolcell.writes"
	attrRunID       = "toolcell.run.id"
	attrRunStatus   = "toolcell.run.status"
	attrRunCalls    = "toolcell.run.calls"
	attrStartKind   = "toolcell.start.kind"
	attrAskOutcome  = "toolcell.ask.outcome"
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
	metricStart           = "toolcell.sandbox.start.duration"
	metricAsk             = "toolcell.ask.duration"
	metricResolve         = "toolcell.package.resolve.duration"
)

// Values of attributes.
const (
	executeTool = "execute_tool" // of attrOperation
	pipe        = "pipe"         // of attrTransport
	tcp         = "tcp"

	// ToolError is the error type of a tool that says itself that it failed (isError).
	ToolError = "tool_error"
	// OtherError is the error type of what has no name of its own.
	OtherError = "_OTHER"
)

// callTool is the method of MCP that calls a tool.
const callTool = "tools/call"

// A Metric is one that is exported.
type Metric struct {
	Name, Unit, Description string
	Histogram               bool // otherwise a sum that goes up and down
}

// Metrics are all that are exported.
var Metrics = []Metric{
	{metricServerOperation, "s", "Requests of clients, such as calls of run_python", true},
	{metricClientOperation, "s", "Requests to the user's MCP servers", true},
	{metricServerSession, "s", "Connections of clients", true},
	{metricClientSession, "s", "Connections to the user's MCP servers", true},
	{metricRun, "s", "Runs of code, with what they wait for", true},
	{metricStart, "s", "Starts of sandboxes", true},
	{metricAsk, "s", "Questions to the user, until the answer", true},
	{metricResolve, "s", "Packages of a script made ready", true},
	{metricActive, "{run}", "Runs under way", false},
}

// buckets are the bounds of histograms, in seconds. A run in a fork takes some milliseconds.
var buckets = []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
