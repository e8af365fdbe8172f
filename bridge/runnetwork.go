package bridge

import (
	"context"

	"github.com/toolcell/toolcell/bridge/network"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/bridge/toon"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
)

// openNetwork opens the way out that was granted, if one was. Without a sandbox there
// is none, and the run says why.
func (in *interpreter) openNetwork(ctx context.Context, grant *hosts.Grant) error {
	if grant == nil {
		return nil
	}
	select {
	case <-in.started:
	case <-ctx.Done():
		return nil
	}
	if in.sandbox == nil {
		return nil
	}
	l, err := in.sandbox.Listen()
	if err == nil {
		in.network, err = network.Open(l, grant)
	}
	return err
}

// closeNetwork closes the way out, and returns what went through it.
func (in *interpreter) closeNetwork() network.Report {
	report := in.network.Close()
	in.network = nil
	return report
}

// networkStart returns what the runner needs to know about the way out.
func (in *interpreter) networkStart() *runner.Network {
	if in.network == nil {
		return nil
	}
	return &runner.Network{Variables: in.network.Variables(), Roots: string(in.network.Roots())}
}

// addNetwork adds what went through the way out of a run, and says once what was
// refused: in the hint if the code has failed.
func (r *Result) addNetwork(p plan, code string, report network.Report) (notes []string) {
	r.Network = report.Uses
	refused := report.Refused()
	if r.Status == StatusError && r.Hint == "" {
		if p.network == nil {
			r.Hint = network.UnaskedHint(p.policy, code, r.Error)
		} else if r.Hint, refused = refused, ""; r.Hint == "" {
			r.Hint = network.BypassedHint(r.Error)
		}
	}
	if refused != "" {
		notes = append(notes, refused)
	}
	if report.Unchecked {
		notes = append(notes, "addresses were not checked: connections went through the proxy of the host ([network] via = \"env\")")
	}
	return notes
}

func (r *Result) networkRows() []any {
	rows := make([]any, len(r.Network))
	for i, u := range r.Network {
		rows[i] = toon.Object{
			{Key: "host", Value: u.Host},
			{Key: "port", Value: u.Port},
			{Key: "requests", Value: u.Requests},
			{Key: "bytesSent", Value: u.BytesSent},
			{Key: "bytesReceived", Value: u.BytesReceived},
			{Key: "refused", Value: u.Refused},
			{Key: "rule", Value: u.Rule},
		}
	}
	return rows
}
