package run

import (
	"context"

	"github.com/toolcell/toolcell/bridge/network"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
)

// openNetwork opens the egress that was granted, if any was. Without a sandbox there
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
	var err error
	in.network, err = network.Open(in.sandbox, grant)
	return err
}

// closeNetwork ends the egress, and reports what was reached.
func (in *interpreter) closeNetwork() network.Report {
	report := in.network.Close()
	in.network = nil
	return report
}
