// Package signalstest has a collector for tests, which decodes what it gets with the messages that
// OpenTelemetry publishes.
package signalstest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metricspb "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A Collector receives signals over HTTP.
type Collector struct {
	URL string

	t       testing.TB
	mu      sync.Mutex
	spans   []Span
	batches []Batch
	raw     bytes.Buffer
	headers []http.Header
	changed chan struct{} // closed at the next change
}

// A Span is one that was received.
type Span struct {
	*trace.Span
	Resource map[string]string
	Attrs    map[string]string
}

// A Batch is one export of metrics.
type Batch struct {
	Resource map[string]string
	Metrics  []*metrics.Metric
}

// Start starts a collector until the test ends, and has OTEL_* variables name it.
func Start(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{t: t, changed: make(chan struct{})}
	web := httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(web.Close)
	c.URL = web.URL
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	return c
}

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	body := r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(r.Body); err != nil {
			c.t.Error(err)
			return
		}
	}
	raw, err := io.ReadAll(body)
	if err == nil && (r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-protobuf") {
		err = fmt.Errorf("a request that is not of OTLP: %s %v", r.Method, r.Header)
	}
	if err == nil {
		err = c.keep(r, raw)
	}
	if err != nil {
		c.t.Errorf("the collector at %s: %v", r.URL.Path, err)
		w.WriteHeader(http.StatusBadRequest)
	}
}

func (c *Collector) keep(r *http.Request, raw []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		close(c.changed)
		c.changed = make(chan struct{})
	}()
	c.raw.Write(raw)
	c.headers = append(c.headers, r.Header.Clone())
	switch {
	case strings.HasSuffix(r.URL.Path, "/v1/traces"):
		return c.keepSpans(raw)
	case strings.HasSuffix(r.URL.Path, "/v1/metrics"):
		return c.keepMetrics(raw)
	}
	return fmt.Errorf("nothing is taken there")
}

func (c *Collector) keepSpans(raw []byte) error {
	var m tracepb.ExportTraceServiceRequest
	if err := decode(raw, &m); err != nil {
		return err
	}
	for _, of := range m.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, Span{s, Attributes(of.Resource.GetAttributes()), Attributes(s.Attributes)})
			}
		}
	}
	return nil
}

func (c *Collector) keepMetrics(raw []byte) error {
	var m metricspb.ExportMetricsServiceRequest
	if err := decode(raw, &m); err != nil {
		return err
	}
	for _, of := range m.ResourceMetrics {
		b := Batch{Resource: Attributes(of.Resource.GetAttributes())}
		for _, scope := range of.ScopeMetrics {
			b.Metrics = append(b.Metrics, scope.Metrics...)
		}
		c.batches = append(c.batches, b)
	}
	return nil
}

// decode decodes a message in which there is nothing unknown.
func decode(raw []byte, m proto.Message) error {
	if err := proto.Unmarshal(raw, m); err != nil {
		return err
	}
	return unknown(m.ProtoReflect())
}

func unknown(m protoreflect.Message) (err error) {
	if b := m.GetUnknown(); len(b) > 0 {
		return fmt.Errorf("%s has unknown fields: %x", m.Descriptor().FullName(), b)
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				err = cmp.Or(err, unknown(v.List().Get(i).Message()))
			}
		default:
			err = cmp.Or(err, unknown(v.Message()))
		}
		return err == nil
	})
	return err
}

// Attributes returns attributes as texts.
func Attributes(all []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range all {
		switch v := a.Value.GetValue().(type) {
		case *common.AnyValue_StringValue:
			out[a.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			out[a.Key] = fmt.Sprint(v.IntValue)
		case *common.AnyValue_DoubleValue:
			out[a.Key] = fmt.Sprint(v.DoubleValue)
		case *common.AnyValue_BoolValue:
			out[a.Key] = fmt.Sprint(v.BoolValue)
		}
	}
	return out
}

// Spans returns those received so far, in the order in which they began.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(c.spans), func(a, b Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
}

// Named returns the spans of a name.
func (c *Collector) Named(name string) (found []Span) {
	for _, s := range c.Spans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// Batches returns the exports of metrics so far.
func (c *Collector) Batches() []Batch {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.batches)
}

// Metric returns a metric as it was exported last, nil if it was not.
func (c *Collector) Metric(name string) (last *metrics.Metric) {
	for _, b := range c.Batches() {
		for _, m := range b.Metrics {
			if m.Name == name {
				last = m
			}
		}
	}
	return last
}

// Points returns the histogram's series in the last export, each as its attributes and count.
func (c *Collector) Points(name string) (points []map[string]string, counts []uint64) {
	for _, p := range c.Metric(name).GetHistogram().GetDataPoints() {
		points, counts = append(points, Attributes(p.Attributes)), append(counts, p.Count)
	}
	return points, counts
}

// Raw returns all bytes that were received.
func (c *Collector) Raw() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw.String()
}

// Headers returns those of all requests.
func (c *Collector) Headers() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.headers)
}

// Await waits until something is received of which ok is true.
func (c *Collector) Await(what string, ok func() bool) {
	c.t.Helper()
	for deadline := time.After(2 * time.Minute); ; {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			c.t.Fatalf("the collector never got %s", what)
		}
	}
}
