package signals

import (
	"encoding/binary"
	"math"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// encodeMetrics returns metrics as an ExportMetricsServiceRequest.
func encodeMetrics(all *metricdata.ResourceMetrics) message {
	var of, request message
	of.sub(1, resourceMessage(all.Resource))
	for _, s := range all.ScopeMetrics {
		var scope message
		scope.sub(1, scopeMessage(s.Scope))
		for _, one := range s.Metrics {
			scope.sub(2, metricMessage(one))
		}
		of.sub(2, scope)
	}
	request.sub(1, of)
	return request
}

// metricMessage writes one of the kinds that there are here: histograms and sums.
func metricMessage(one metricdata.Metrics) (m message) {
	m.text(1, one.Name)
	m.text(2, one.Description)
	m.text(3, one.Unit)
	switch data := one.Data.(type) {
	case metricdata.Sum[int64]:
		m.sub(7, sumMessage(data))
	case metricdata.Histogram[float64]:
		m.sub(9, histogramMessage(data))
	}
	return m
}

func sumMessage(sum metricdata.Sum[int64]) (m message) {
	for _, p := range sum.DataPoints {
		var point message
		point.fixed64(2, nanoseconds(p.StartTime))
		point.fixed64(3, nanoseconds(p.Time))
		point.fixed64(6, uint64(p.Value))
		point.attributes(7, p.Attributes.ToSlice())
		m.sub(1, point)
	}
	m.varint(2, uint64(temporalityNumber(sum.Temporality)))
	if sum.IsMonotonic {
		m.varint(3, 1)
	}
	return m
}

func histogramMessage(h metricdata.Histogram[float64]) (m message) {
	for _, p := range h.DataPoints {
		var point message
		point.fixed64(2, nanoseconds(p.StartTime))
		point.fixed64(3, nanoseconds(p.Time))
		point.fixed64(4, p.Count)
		point.double(5, p.Sum)
		point.sub(6, packed(p.BucketCounts, func(n uint64) uint64 { return n }))
		point.sub(7, packed(p.Bounds, math.Float64bits))
		point.attributes(9, p.Attributes.ToSlice())
		if least, ok := p.Min.Value(); ok {
			point.double(11, least)
		}
		if most, ok := p.Max.Value(); ok {
			point.double(12, most)
		}
		m.sub(1, point)
	}
	m.varint(2, uint64(temporalityNumber(h.Temporality)))
	return m
}

// packed writes numbers of eight bytes one after the other.
func packed[T any](all []T, bits func(T) uint64) (m message) {
	for _, n := range all {
		m = binary.LittleEndian.AppendUint64(m, bits(n))
	}
	return m
}

// temporalityNumber is the number that OTLP has for a temporality.
func temporalityNumber(t metricdata.Temporality) int {
	if t == metricdata.DeltaTemporality {
		return 1
	}
	return 2
}
