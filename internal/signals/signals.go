// Package signals exports what toolcell does to an OpenTelemetry collector: a span for each
// request of a client, each run with its steps, and each request to the user's servers, and
// metrics of the same. OTEL_* variables configure it, as the OpenTelemetry specification has
// them, and nothing else does.
//
// Without an endpoint in these variables nothing is exported, and [Open] returns nil, on which
// all methods work: then a call costs a look at its context. Otherwise it promises that
//
//   - no value is exported: no code, arguments, results, addresses of resources, or texts of
//     errors; names of tools are cleaned,
//   - a collector that is down, slow or hostile delays nothing and fails nothing: what waits for
//     it is bounded, and what finds no room is dropped,
//   - the number of time series is bounded, whatever servers call their tools.
//
// The SDK of OpenTelemetry samples, batches and aggregates. Its exporters are not used: they
// link gRPC, which each start of the program would pay for (docs/benchmarks/signals.md). So this
// package writes the messages of OTLP itself (encode.go) and sends them (send.go).
package signals

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/toolcell/toolcell/internal/contain"
)

// closeTimeout bounds how long the end of the process waits for the collector. Tests on a slow host
// wait longer.
var closeTimeout = 2 * time.Second

const (
	scopeName = "github.com/toolcell/toolcell"
	// maxSeries bounds the series of one metric. Further ones are one series, which has the
	// attribute otel.metric.overflow.
	maxSeries = 1000
)

// Options describe the program that exports.
type Options struct {
	Version string
	Log     *slog.Logger
}

// Signals are exported until Close. They are safe for concurrent use, and so is nil.
type Signals struct {
	traced     bool // traces are exported
	tracer     trace.Tracer
	histograms map[string]metric.Float64Histogram
	active     metric.Int64UpDownCounter // runs
	refused    metric.Int64Counter       // requests

	senders  []*sender
	shutdown []func(context.Context) error // of the providers
	failed   func(error)                   // logs an error
	closing  chan struct{}
	end      context.CancelFunc // of what is being sent
}

// Open begins to export what the environment wants exported, and returns nil if that is nothing. A
// variable that makes no sense is logged, and its signal is not exported.
func Open(o Options) *Signals {
	traces, err := endpointOf("traces")
	if err != nil {
		o.Log.Warn("no OpenTelemetry traces are exported", "err", err)
	}
	metrics, err := endpointOf("metrics")
	selector, unclear := temporality()
	if metrics != nil && unclear != nil {
		metrics, err = nil, unclear
	}
	if err != nil {
		o.Log.Warn("no OpenTelemetry metrics are exported", "err", err)
	}
	if traces == nil && metrics == nil {
		return nil
	}
	return open(o, traces, metrics, selector)
}

func open(o Options, traces, metrics *endpoint, selector sdkmetric.TemporalitySelector) *Signals {
	failed := (&complaints{log: o.Log, what: "OpenTelemetry signals are lost"}).say
	// The SDK has only these global ones, and by default they write to stderr by themselves.
	otel.SetErrorHandler(otel.ErrorHandlerFunc((&complaints{log: o.Log, what: "OpenTelemetry's SDK has an error"}).say))
	otel.SetLogger(logr.FromSlogHandler(o.Log.Handler()))

	s := &Signals{failed: failed, closing: make(chan struct{}), histograms: map[string]metric.Float64Histogram{}}
	var life context.Context
	life, s.end = context.WithCancel(context.Background())
	newSender := func(e *endpoint) *sender {
		one := newSender(e, "toolcell/"+o.Version, life, s.closing, failed)
		s.senders = append(s.senders, one)
		return one
	}
	res := resourceOf(o.Version, failed)
	s.tracer = nooptrace.NewTracerProvider().Tracer(scopeName)
	if s.traced = traces != nil; s.traced {
		p := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithBatcher(spanExporter{newSender(traces)}))
		s.tracer, s.shutdown = p.Tracer(scopeName, trace.WithInstrumentationVersion(o.Version)), append(s.shutdown, p.Shutdown)
	}
	var meter metric.Meter = noopmetric.Meter{}
	if metrics != nil {
		p := sdkmetric.NewMeterProvider(sdkmetric.WithResource(res), sdkmetric.WithCardinalityLimit(maxSeries), sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter),
			sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metricExporter{newSender(metrics), selector})))
		meter, s.shutdown = p.Meter(scopeName, metric.WithInstrumentationVersion(o.Version)), append(s.shutdown, p.Shutdown)
	}
	s.makeInstruments(meter)
	return s
}

func (s *Signals) makeInstruments(meter metric.Meter) {
	for _, m := range Metrics {
		var err error
		switch m.Kind {
		case Histogram:
			s.histograms[m.Name], err = meter.Float64Histogram(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Description), metric.WithExplicitBucketBoundaries(buckets[m.Unit]...))
		case Counter:
			s.refused, err = meter.Int64Counter(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Description))
		case UpDown:
			s.active, err = meter.Int64UpDownCounter(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Description))
		}
		if err != nil {
			s.failed(err)
		}
	}
}

// resourceOf describes this process. What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say comes
// last, and so takes precedence.
func resourceOf(version string, failed func(error)) *resource.Resource {
	res, err := resource.New(context.Background(),
		resource.WithAttributes(attribute.String(attrServiceName, "toolcell"), attribute.String(attrVersion, version), attribute.String(attrInstance, rand.Text())),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		failed(err)
	}
	return res
}

// Close exports what has ended, for closeTimeout at most.
func (s *Signals) Close() {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	close(s.closing)
	var ending sync.WaitGroup
	for _, shutdown := range s.shutdown {
		ending.Go(contain.Func("exporting what is left", func() {
			if shutdown(ctx) != nil {
				s.failed(fmt.Errorf("the collector has not taken the last ones within %s", closeTimeout))
			}
		}))
	}
	ending.Wait()
	s.end()
	for _, one := range s.senders {
		one.client.CloseIdleConnections()
	}
}

// A spanExporter sends spans for the SDK.
type spanExporter struct{ *sender }

// ExportSpans implements sdktrace.SpanExporter.
func (e spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) (err error) {
	defer contain.Error("exporting spans", &err)
	if len(spans) > 0 {
		e.send(ctx, encodeSpans(spans))
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (spanExporter) Shutdown(context.Context) error { return nil }

// A metricExporter sends metrics for the SDK.
type metricExporter struct {
	*sender
	temporality sdkmetric.TemporalitySelector
}

// Temporality implements sdkmetric.Exporter.
func (e metricExporter) Temporality(k sdkmetric.InstrumentKind) metricdata.Temporality {
	return e.temporality(k)
}

// Aggregation implements sdkmetric.Exporter.
func (metricExporter) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}

// Export implements sdkmetric.Exporter.
func (e metricExporter) Export(ctx context.Context, all *metricdata.ResourceMetrics) (err error) {
	defer contain.Error("exporting metrics", &err)
	if slices.ContainsFunc(all.ScopeMetrics, func(s metricdata.ScopeMetrics) bool { return len(s.Metrics) > 0 }) {
		e.send(ctx, encodeMetrics(all))
	}
	return nil
}

// ForceFlush implements sdkmetric.Exporter.
func (metricExporter) ForceFlush(context.Context) error { return nil }

// Shutdown implements sdkmetric.Exporter.
func (metricExporter) Shutdown(context.Context) error { return nil }
