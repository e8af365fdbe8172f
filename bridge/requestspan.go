package bridge

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/internal/signals"
)

// exportRequests exports each request of a client, if signals are exported.
func (s *Server) exportRequests(next mcp.MethodHandler) mcp.MethodHandler {
	if s.o.Signals == nil {
		return next
	}
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		if strings.HasPrefix(method, "notifications/") {
			return next(ctx, method, req)
		}
		ctx, span := s.o.Signals.Request(ctx, describe(method, req))
		failed := signals.Failure{Type: signals.OtherError} // if it panics
		defer func() { span.End(failed) }()
		res, err = next(ctx, method, req)
		failed = failureOf(res, err)
		return res, err
	}
}

// describe returns what is exported of a request. The name of a tool that there is not is a text of
// the client, and left out.
func describe(method string, req mcp.Request) signals.Request {
	r := signals.Request{Method: method}
	if p := req.GetParams(); p != nil && !reflect.ValueOf(p).IsNil() {
		r.Meta = p.GetMeta()
	}
	if call, ok := req.(*mcp.CallToolRequest); ok && call.Params != nil && call.Params.Name == toolName {
		r.Tool = toolName
	}
	if v, ok := req.(interface{ ProtocolVersion() string }); ok {
		r.Protocol = v.ProtocolVersion()
	}
	if session, ok := req.GetSession().(*mcp.ServerSession); ok {
		r.Client = clientOf(session).Name
	}
	return r
}

// failureOf returns how a request has failed.
func failureOf(res mcp.Result, err error) signals.Failure {
	if answer, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return signals.Failure{Code: strconv.FormatInt(answer.Code, 10)}
	}
	if err != nil {
		return signals.Failure{Type: signals.OtherError}
	}
	if called, ok := res.(*mcp.CallToolResult); ok && called != nil && called.IsError {
		return signals.Failure{Type: signals.ToolError}
	}
	return signals.Failure{}
}
