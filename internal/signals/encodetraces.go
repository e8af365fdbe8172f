package signals

import (
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// encodeSpans returns spans of one resource and one scope, which all of ours are, as an
// ExportTraceServiceRequest. There has to be one.
func encodeSpans(spans []sdktrace.ReadOnlySpan) message {
	var scope, of, request message
	scope.sub(1, scopeMessage(spans[0].InstrumentationScope()))
	for _, s := range spans {
		scope.sub(2, spanMessage(s))
	}
	of.sub(1, resourceMessage(spans[0].Resource()))
	of.sub(2, scope)
	request.sub(1, of)
	return request
}

func spanMessage(s sdktrace.ReadOnlySpan) (m message) {
	self, parent := s.SpanContext(), s.Parent()
	traceID, spanID := self.TraceID(), self.SpanID()
	m.bytes(1, traceID[:])
	m.bytes(2, spanID[:])
	m.text(3, self.TraceState().String())
	if id := parent.SpanID(); id.IsValid() {
		m.bytes(4, id[:])
	}
	m.text(5, s.Name())
	m.varint(6, uint64(s.SpanKind())) // they have the same numbers
	m.fixed64(7, nanoseconds(s.StartTime()))
	m.fixed64(8, nanoseconds(s.EndTime()))
	m.attributes(9, s.Attributes())
	m.varint(10, uint64(s.DroppedAttributes()))
	for _, l := range s.Links() {
		m.sub(13, linkMessage(l.SpanContext))
	}
	m.varint(14, uint64(s.DroppedLinks()))
	m.sub(15, statusMessage(s.Status().Code))
	m.fixed32(16, flags(self.TraceFlags(), parent.IsRemote()))
	return m
}

func linkMessage(c trace.SpanContext) (m message) {
	traceID, spanID := c.TraceID(), c.SpanID()
	m.bytes(1, traceID[:])
	m.bytes(2, spanID[:])
	m.text(3, c.TraceState().String())
	m.fixed32(6, flags(c.TraceFlags(), c.IsRemote()))
	return m
}

func statusMessage(c codes.Code) (m message) {
	if c == codes.Error { // the only one that is set here; it has another number there
		m.varint(3, 2)
	}
	return m
}

// flags returns those of W3C, with what OTLP adds: that it is known whether a parent or a link is
// remote, and that it is.
func flags(f trace.TraceFlags, remote bool) uint32 {
	const known, isRemote = 0x100, 0x200
	if remote {
		return uint32(f) | known | isRemote
	}
	return uint32(f) | known
}

func nanoseconds(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) }
