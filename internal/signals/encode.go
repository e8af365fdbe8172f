package signals

import (
	"encoding/binary"
	"math"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
)

// A message is one of protocol buffers as it is written. Its methods append a field with its
// number; like other encoders they leave out what is zero, unless they say otherwise. The numbers
// are those of opentelemetry-proto (opentelemetry/proto/{common,resource,trace,metrics}/v1).
type message []byte

// Types of fields on the wire.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

func (m *message) tag(field, wireType int) {
	*m = binary.AppendUvarint(*m, uint64(field)<<3|uint64(wireType))
}

func (m *message) varint(field int, n uint64) {
	if n != 0 {
		m.tag(field, wireVarint)
		*m = binary.AppendUvarint(*m, n)
	}
}

// fixed64 writes n even if it is 0.
func (m *message) fixed64(field int, n uint64) {
	m.tag(field, wireFixed64)
	*m = binary.LittleEndian.AppendUint64(*m, n)
}

// double writes f even if it is 0.
func (m *message) double(field int, f float64) { m.fixed64(field, math.Float64bits(f)) }

func (m *message) fixed32(field int, n uint32) {
	m.tag(field, wireFixed32)
	*m = binary.LittleEndian.AppendUint32(*m, n)
}

func (m *message) bytes(field int, b []byte) {
	if len(b) > 0 {
		m.sub(field, b)
	}
}

func (m *message) text(field int, s string) { m.bytes(field, []byte(s)) }

// sub writes another message, even if it is empty.
func (m *message) sub(field int, b message) {
	m.tag(field, wireBytes)
	*m = append(binary.AppendUvarint(*m, uint64(len(b))), b...)
}

// attributes writes each attribute as a KeyValue.
func (m *message) attributes(field int, all []attribute.KeyValue) {
	for _, a := range all {
		var pair message
		pair.text(1, string(a.Key))
		pair.sub(2, anyValue(a.Value))
		m.sub(field, pair)
	}
}

func anyValue(v attribute.Value) (m message) {
	switch v.Type() {
	case attribute.BOOL:
		m.tag(2, wireVarint) // in a oneof, false is written too
		m = append(m, 0)
		if v.AsBool() {
			m[len(m)-1] = 1
		}
	case attribute.INT64:
		m.tag(3, wireVarint)
		m = binary.AppendUvarint(m, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		m.double(4, v.AsFloat64())
	default:
		m.sub(1, message(v.String()))
	}
	return m
}

func resourceMessage(r *resource.Resource) (m message) {
	m.attributes(1, r.Attributes())
	return m
}

func scopeMessage(s instrumentation.Scope) (m message) {
	m.text(1, s.Name)
	m.text(2, s.Version)
	return m
}
