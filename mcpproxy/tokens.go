package mcpproxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/statefile"
	"golang.org/x/oauth2"
	"golang.org/x/sys/unix"
)

const (
	maxLoginFile = 1 << 20
	renewWithin  = 15 * time.Second
)

// login is what is kept of a login between processes.
type login struct {
	URL          string           `json:"url"` // of the server
	ClientID     string           `json:"clientId"`
	ClientSecret string           `json:"clientSecret,omitempty"`
	AuthStyle    oauth2.AuthStyle `json:"authStyle"`
	TokenURL     string           `json:"tokenUrl"`
	Scopes       []string         `json:"scopes,omitempty"`
	Token        *oauth2.Token    `json:"token"`
}

// loginKeep has the login of one server, in memory and on disk. Other
// processes use the same file: `servers login` writes it while others serve,
// and each of them may renew the token. Many authorization servers take a
// refresh token only once and then withdraw everything when it comes again, so
// a renewal holds a lock between processes and stores its outcome before it is
// used.
type loginKeep struct {
	name    string // of the server
	url     string
	path    string // empty: nothing is kept
	secrets *redactor
	client  *http.Client
	turn    chan struct{} // one at a time; a channel, so that a caller can leave

	kept  *login
	stamp loginStamp // of the file that kept was read from
}

type loginStamp struct {
	time time.Time
	size int64
	node uint64
}

func newLoginKeep(s Server, dir string, hidden *redactor) *loginKeep {
	k := &loginKeep{name: s.Name, url: s.URL, secrets: hidden, turn: make(chan struct{}, 1), client: oauthClient()}
	if dir != "" {
		sum := sha256.Sum256([]byte(s.URL))
		k.path = filepath.Join(dir, hex.EncodeToString(sum[:16])+".json")
	}
	return k
}

// oauthClient talks to authorization servers. What is posted to them is secret
// and goes where it was meant to go only.
func oauthClient() *http.Client {
	return &http.Client{
		Timeout: renewWithin,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if via[0].Method != http.MethodGet || len(via) > maxRedirects {
				return errors.New("the authorization server redirects a request that must not be redirected")
			}
			return nil
		},
	}
}

// Token returns the access token to send, or "" if there is no login. A token
// that the server rejected, or that has come to its end, is renewed first.
func (k *loginKeep) Token(ctx context.Context, rejected string) (string, error) {
	if k.path == "" {
		return "", k.unless(rejected == "")
	}
	leave, err := k.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	if err := k.load(); err != nil {
		return "", err
	}
	if k.kept == nil {
		return "", k.unless(rejected == "")
	}
	if k.usable(rejected) {
		return k.kept.Token.AccessToken, nil
	}
	// A renewal that was begun is finished, whatever becomes of the call.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewWithin)
	defer cancel()
	if err := k.renew(ctx, rejected); err != nil {
		return "", err
	}
	return k.kept.Token.AccessToken, nil
}

// enter waits for our turn in this process. It comes before the file's lock.
func (k *loginKeep) enter(ctx context.Context) (leave func(), err error) {
	select {
	case k.turn <- struct{}{}:
		return func() { <-k.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// replace keeps a new login instead of what there is.
func (k *loginKeep) replace(ctx context.Context, kept *login) error {
	leave, err := k.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	unlock, err := statefile.Lock(ctx, k.path+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	return k.store(kept)
}

func (k *loginKeep) unless(fine bool) error {
	if fine {
		return nil
	}
	return errors.New(loginNeeded(k.name))
}

func (k *loginKeep) usable(rejected string) bool {
	return k.kept != nil && k.kept.Token.Valid() && k.kept.Token.AccessToken != rejected
}

// renew gets a new token for the refresh token, unless another process has
// done so in the meantime.
func (k *loginKeep) renew(ctx context.Context, rejected string) error {
	unlock, err := statefile.Lock(ctx, k.path+".lock")
	if err != nil {
		return fmt.Errorf("renewing the login of server %q: %w", k.name, err)
	}
	defer unlock()
	if err := k.load(); err != nil {
		return err
	}
	if k.usable(rejected) {
		return nil
	}
	ended := fmt.Errorf("the login has ended; in a terminal: toolcell servers login %s", shellWord(k.name))
	if k.kept == nil || k.kept.Token.RefreshToken == "" {
		return ended
	}
	config := oauth2.Config{
		ClientID: k.kept.ClientID, ClientSecret: k.kept.ClientSecret, Scopes: k.kept.Scopes,
		Endpoint: oauth2.Endpoint{TokenURL: k.kept.TokenURL, AuthStyle: k.kept.AuthStyle},
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, k.client)
	fresh, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: k.kept.Token.RefreshToken}).Token()
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		switch refused.ErrorCode {
		case "invalid_grant", "invalid_client", "unauthorized_client":
			return ended
		}
		return fmt.Errorf("renewing the login of server %q: the authorization server answered %s: %s", k.name,
			refused.Response.Status, k.secrets.hide(excerpt(refused.Body)))
	}
	if err != nil {
		return fmt.Errorf("renewing the login of server %q: %s", k.name, k.secrets.hide(plain(err)))
	}
	kept := *k.kept
	kept.Token = fresh
	return k.store(&kept)
}

// load reads the file if it is another than last time.
func (k *loginKeep) load() error {
	f, err := os.Open(k.path)
	if errors.Is(err, os.ErrNotExist) {
		k.kept, k.stamp = nil, loginStamp{}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the login of server %q: %w", k.name, err)
	}
	defer f.Close()
	stamp, err := loginStampOf(f)
	if err != nil || k.kept != nil && stamp == k.stamp {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(f, maxLoginFile))
	if err != nil {
		return fmt.Errorf("reading the login of server %q: %w", k.name, err)
	}
	var kept login
	if json.Unmarshal(body, &kept) != nil || kept.Token == nil || kept.URL != k.url {
		return fmt.Errorf("the login of server %q in %s cannot be read; in a terminal: toolcell servers login %s", k.name, k.path, shellWord(k.name))
	}
	k.take(&kept, stamp)
	return nil
}

func (k *loginKeep) take(kept *login, stamp loginStamp) {
	k.kept, k.stamp = kept, stamp
	for _, secret := range []string{kept.Token.AccessToken, kept.Token.RefreshToken, kept.ClientSecret} {
		k.secrets.add("token", secret)
	}
}

// store keeps a login. The caller has its turn, and the file's lock.
func (k *loginKeep) store(kept *login) error {
	body, err := json.MarshalIndent(kept, "", "  ")
	if err == nil {
		err = statefile.Replace(k.path, body)
	}
	if err != nil {
		return fmt.Errorf("keeping the login of server %q: %w", k.name, err)
	}
	return k.load()
}

// loginStampOf tells one state of the file from another. The rename makes every
// state a new inode.
func loginStampOf(f *os.File) (loginStamp, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return loginStamp{}, err
	}
	return loginStamp{time.Unix(st.Mtim.Unix()), st.Size, st.Ino}, nil
}
