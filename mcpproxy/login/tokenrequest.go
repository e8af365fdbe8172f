package login

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/transport/remote"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// refusedGrant is the answer of an authorization server that gives no token.
type refusedGrant struct {
	status int
	code   string // such as invalid_grant
	text   string
}

// isOfClient reports whether it is the client that was refused, so that the code or the
// refresh token is still unused.
func (e *refusedGrant) isOfClient() bool {
	return e.status == http.StatusUnauthorized || e.code == "invalid_client" || e.code == "invalid_request"
}

func (e *refusedGrant) Error() string { return e.text }

// requestToken asks for a token for a login, which it changes: a client that does not know
// how the server wants its secret finds that out.
//
// All grants go through the library's client credentials, the one that takes further
// parameters and lets the grant be another. Its refresh of tokens takes none, and each
// request has to name the resource (MCP, Resource Parameter Implementation).
func (s *Store) requestToken(ctx context.Context, l *login, grant url.Values) (*oauth2.Token, error) {
	styles := []oauth2.AuthStyle{l.AuthStyle}
	if l.AuthStyle == oauth2.AuthStyleAutoDetect {
		styles = []oauth2.AuthStyle{oauth2.AuthStyleInHeader, oauth2.AuthStyleInParams}
	}
	var failure error
	for _, style := range styles {
		token, err := s.postGrant(ctx, l, grant, style)
		if err == nil {
			l.AuthStyle = style
			return token, nil
		}
		failure = s.explain(err)
		if refused := new(refusedGrant); !errors.As(failure, &refused) || !refused.isOfClient() {
			break
		}
	}
	return nil, failure
}

func (s *Store) postGrant(ctx context.Context, l *login, grant url.Values, style oauth2.AuthStyle) (*oauth2.Token, error) {
	form := url.Values{"resource": {l.Resource}}
	maps.Copy(form, grant)
	if l.Resource == "" { // a login of before resources were kept
		form.Del("resource")
	}
	secret, ofEntry := l.ClientSecret, l.ClientID == s.entry.ClientID
	if ofEntry {
		secret = s.entry.ClientSecret // which is kept nowhere else
	}
	if s.entry.PrivateKey != "" && ofEntry {
		assertion, err := signAssertion(s.entry.PrivateKey, s.entry.KeyID, l.ClientID, l.Issuer, time.Now())
		if err != nil {
			return nil, err
		}
		form.Set("client_assertion_type", assertionType)
		form.Set("client_assertion", assertion)
		style = oauth2.AuthStyleInParams
	}
	config := clientcredentials.Config{
		ClientID: l.ClientID, ClientSecret: secret, TokenURL: l.TokenURL, EndpointParams: form, AuthStyle: style,
	}
	return config.Token(context.WithValue(ctx, oauth2.HTTPClient, s.client))
}

// explain puts an error of the token endpoint into words without secrets.
func (s *Store) explain(err error) error {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return &refusedGrant{refused.Response.StatusCode, refused.ErrorCode, fmt.Sprintf("the authorization server answered %s: %s",
			text.Printable(refused.Response.Status, 80), s.secrets.Text(text.Excerpt(refused.Body)))}
	}
	return errors.New(s.secrets.Text(remote.PlainText(err)))
}

// authStyle is how a client sends its secret: as it was registered to, else in a way
// that the server says it takes.
func authStyle(secret, registered string, supported []string) oauth2.AuthStyle {
	if secret == "" {
		return oauth2.AuthStyleInParams // the id alone
	}
	for _, method := range slices.Concat([]string{registered}, supported) {
		switch method {
		case "client_secret_basic":
			return oauth2.AuthStyleInHeader
		case "client_secret_post":
			return oauth2.AuthStyleInParams
		}
	}
	return oauth2.AuthStyleAutoDetect
}
