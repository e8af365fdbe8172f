package signals

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"golang.org/x/net/http/httpguts"
)

// Variables of the OpenTelemetry specification that are read here. The SDK reads those of the
// resource, of sampling and of batches by itself.
const (
	varDisabled    = "OTEL_SDK_DISABLED"
	varTemporality = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
	varExporter    = "OTEL_EXPORTER_OTLP_"
)

// An endpoint is where one kind of signals is sent.
type endpoint struct {
	signal  string // "traces" or "metrics"
	url     *url.URL
	headers http.Header
	timeout time.Duration // of a batch, with its retries
	gzip    bool
	tls     *tls.Config // nil is the default
}

// endpointOf reads where a signal is sent, nil if nowhere. The error names the variable and not
// its value, which may hold a secret.
func endpointOf(signal string) (*endpoint, error) {
	if disabled, _ := strconv.ParseBool(strings.ToLower(os.Getenv(varDisabled))); disabled {
		return nil, nil
	}
	v := variables{strings.ToUpper(signal) + "_"}
	if wanted, err := v.exported(); err != nil || !wanted {
		return nil, err
	}
	e := &endpoint{signal: signal}
	steps := []func(variables) error{e.readURL, e.readProtocol, e.readHeaders, e.readTimeout, e.readCompression, e.readCertificates}
	for _, read := range steps {
		if err := read(v); err != nil {
			return nil, err
		}
		if e.url == nil {
			return nil, nil
		}
	}
	return e, nil
}

// variables are those of one signal, which take precedence over those of all.
type variables struct{ signal string }

// get returns the value of a variable of the exporter, and the variable.
func (v variables) get(name string) (value, variable string) {
	if value := strings.TrimSpace(os.Getenv(varExporter + v.signal + name)); value != "" {
		return value, varExporter + v.signal + name
	}
	return strings.TrimSpace(os.Getenv(varExporter + name)), varExporter + name
}

// exported reports whether OTEL_TRACES_EXPORTER or OTEL_METRICS_EXPORTER leaves the signal on.
func (v variables) exported() (bool, error) {
	variable := "OTEL_" + v.signal + "EXPORTER"
	switch value := cmp.Or(strings.TrimSpace(os.Getenv(variable)), "otlp"); value {
	case "otlp":
		return true, nil
	case "none":
		return false, nil
	default:
		return false, fmt.Errorf("%s names an exporter that toolcell does not have; it has otlp, and none", variable)
	}
}

func (e *endpoint) readURL(v variables) error {
	value, variable := v.get("ENDPOINT")
	if value == "" {
		return nil
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%s is no URL such as http://localhost:4318", variable)
	}
	if variable == varExporter+"ENDPOINT" { // "signals are sent to this URL with the path v1/traces appended"
		u = u.JoinPath("v1", e.signal)
	}
	e.url = u
	return nil
}

func (e *endpoint) readProtocol(v variables) error {
	if value, variable := v.get("PROTOCOL"); value != "" && value != "http/protobuf" {
		return fmt.Errorf("%s names a protocol that toolcell does not speak; it speaks http/protobuf, which collectors take on port 4318", variable)
	}
	return nil
}

// readHeaders reads NAME=VALUE,NAME=VALUE, values in percent-encoding.
func (e *endpoint) readHeaders(v variables) error {
	value, variable := v.get("HEADERS")
	e.headers = http.Header{}
	for i, pair := range strings.Split(value, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, text, ok := strings.Cut(pair, "=")
		text, err := url.PathUnescape(strings.TrimSpace(text))
		if name = strings.TrimSpace(name); !ok || err != nil || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(text) {
			return fmt.Errorf("entry %d of %s is not NAME=VALUE as a header has it", i+1, variable)
		}
		e.headers.Set(name, text)
	}
	return nil
}

func (e *endpoint) readTimeout(v variables) error {
	value, variable := v.get("TIMEOUT")
	ms, err := strconv.Atoi(cmp.Or(value, "10000"))
	if err != nil || ms <= 0 || ms > int(time.Hour/time.Millisecond) {
		return fmt.Errorf("%s is no number of milliseconds from 1 to an hour", variable)
	}
	e.timeout = time.Duration(ms) * time.Millisecond
	return nil
}

func (e *endpoint) readCompression(v variables) error {
	value, variable := v.get("COMPRESSION")
	if e.gzip = value == "gzip"; value != "" && value != "none" && !e.gzip {
		return fmt.Errorf("%s is neither gzip nor none", variable)
	}
	return nil
}

func (e *endpoint) readCertificates(v variables) error {
	authorities, variable := v.get("CERTIFICATE")
	certificate, _ := v.get("CLIENT_CERTIFICATE")
	key, keyVariable := v.get("CLIENT_KEY")
	if authorities == "" && certificate == "" && key == "" {
		return nil
	}
	e.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	if authorities != "" {
		pem, err := os.ReadFile(authorities)
		if err != nil {
			return fmt.Errorf("%s: %w", variable, err)
		}
		e.tls.RootCAs = x509.NewCertPool()
		if !e.tls.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s: the file has no certificate", variable)
		}
	}
	if certificate == "" && key == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return fmt.Errorf("the client's certificate of %s: %w", keyVariable, err)
	}
	e.tls.Certificates = []tls.Certificate{pair}
	return nil
}

// temporality reads whether histograms are of all the time since the start, or of the time since
// the last export.
func temporality() (metric.TemporalitySelector, error) {
	switch strings.ToLower(strings.TrimSpace(os.Getenv(varTemporality))) {
	case "", "cumulative":
		return metric.CumulativeTemporalitySelector, nil
	case "delta":
		return metric.DeltaTemporalitySelector, nil
	case "lowmemory":
		return metric.LowMemoryTemporalitySelector, nil
	}
	return nil, errors.New(varTemporality + " is none of cumulative, delta, lowmemory")
}
