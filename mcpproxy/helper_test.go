package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

func trusting(t *testing.T, files map[string]string) (clientconfig.Options, clientconfig.Trust) {
	t.Helper()
	o := mcptest.Site(t, files)
	trust := clientconfig.NewTrust(filepath.Join(filepath.Dir(o.Home), "state"))
	o.Trusted = trust.State
	return o, trust
}

func names(c config.Config) string {
	var all []string
	for _, s := range c.Servers {
		all = append(all, s.Name+"="+s.Command)
	}
	return strings.Join(all, " ")
}

// A CallRequest is a call of a tool.
type CallRequest struct {
	Server, Tool string
	Arguments    json.RawMessage // none is the empty object
	Progress     Progress
	User         User
	Can          ElicitCapabilities
	Run          *policy.Enforcer         // nil limits nothing
	Allowed      func(a *policy.Ask) bool // the user's answer to what Run asks; nil is no user
}

// Call prepares a call, decides on it by its facts, and sends it, as the gate does.
func (p *Proxy) Call(ctx context.Context, r CallRequest) (CallResult, error) {
	args, err := CanonicalArguments(ctx, r.Arguments)
	if err != nil {
		return CallResult{}, fmt.Errorf("calling tool %q of server %q: %w", r.Tool, r.Server, err)
	}
	if r.User == nil {
		r.Can = p.elicitsNow()
	}
	w := Want{Method: CallTool, Name: r.Tool, Can: r.Can, Live: r.Run != nil}
	return p.do(ctx, r.Server, w, args, r.User, r.Progress, func(f Facts) error {
		if r.Run == nil {
			return nil
		}
		ask, err := r.Run.Check(ctx, policyCall(f, args))
		if ask != nil && err == nil && (r.Allowed == nil || !r.Allowed(ask)) {
			return ask
		}
		return err
	})
}

// policyCall is a call as policies see it.
func policyCall(f Facts, args json.RawMessage) policy.Call {
	t := f.Tool
	return policy.Call{
		Server: policy.Server{Name: f.Server.Name, Alias: f.Server.Alias}, Identity: f.Identity(), Arguments: args, Changed: t.Changed(),
		Tool: policy.Tool{Name: t.Name, Alias: t.Alias, Twins: t.Twins(), ReadOnly: t.ReadsOnly, Unaccepted: t.Unaccepted, Acceptable: t.Acceptable, Digest: t.Digest},
	}
}

// do prepares something, decides and sends it, again if it has changed meanwhile.
func (p *Proxy) do(ctx context.Context, server string, w Want, args json.RawMessage, user User, progress Progress, decide func(Facts) error) (result CallResult, err error) {
	for range 3 {
		var prepared *Prepared
		if prepared, err = p.Prepare(ctx, server, w); err == nil {
			err = decide(prepared.Facts())
		}
		if err != nil {
			return result, err
		}
		if result, err = prepared.Send(ctx, args, user, progress); !errors.Is(err, ErrChanged) {
			break
		}
	}
	return result, err
}

// read is do for what is no call of a tool. The user, if there is one, can be asked in any way.
func (p *Proxy) read(ctx context.Context, server, method, name string, args json.RawMessage, user ...User) (json.RawMessage, error) {
	w := Want{Method: method, Name: name}
	w.Can = p.elicitsNow()
	var asked User
	if len(user) > 0 {
		asked, w.Can = user[0], both
	}
	result, err := p.do(ctx, server, w, args, asked, nil, func(Facts) error { return nil })
	return result.JSON, err
}

// userFunc is a user as a function.
type userFunc func(ctx context.Context, e Elicitation) (ElicitationReply, error)

func (f userFunc) Elicit(ctx context.Context, e Elicitation) (ElicitationReply, error) {
	return f(ctx, e)
}
