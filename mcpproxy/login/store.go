package login

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
	"reflect"
	"slices"
	"syscall"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
	"golang.org/x/oauth2"
)

const maxLoginFile = 1 << 20

// login is a login as it is kept between processes. Without a token it holds only what the
// server has asked for.
type login struct {
	URL      string `json:"url"` // of the server
	Issuer   string `json:"issuer,omitempty"`
	Resource string `json:"resource,omitempty"`
	client
	TokenURL string        `json:"tokenUrl,omitempty"`
	Scopes   []string      `json:"scopes,omitempty"` // that were asked for
	Token    *oauth2.Token `json:"token,omitempty"`

	Challenged *challenge `json:"challenged,omitempty"` // how the server last answered without a token
	Missing    []string   `json:"missing,omitempty"`    // scopes that calls failed without
}

func (l *login) loggedIn() bool { return l != nil && l.Token != nil }

func (l *login) copy() *login {
	if l == nil {
		return &login{}
	}
	c := *l
	return &c
}

// asksAs reports whether another login has the same challenge and missing scopes.
func (l *login) asksAs(other *login) bool {
	return reflect.DeepEqual(l.Challenged, other.Challenged) && slices.Equal(l.Missing, other.Missing)
}

// Store has the login of one server, in memory and on disk. Other
// processes use the same file: `servers login` writes it while others serve,
// and each of them may renew the token. Many authorization servers take a
// refresh token only once and then withdraw everything when it comes again, so
// a renewal holds a lock between processes and stores its outcome before it is
// used.
type Store struct {
	name    string // of the server
	url     string
	entry   config.OAuth
	path    string // empty: nothing is kept on disk
	secrets *redact.Redactor
	client  *http.Client
	turn    chan struct{} // one at a time; a channel, so that a caller can leave

	kept  *login
	stamp state.Stamp // of the file that kept was read from
}

// NewStore opens the login of the server of an entry. Logins are files in dir; none is
// kept if that is empty. Tokens are added to secrets.
func NewStore(server config.Server, dir string, secrets *redact.Redactor) *Store {
	s := &Store{name: server.Name, url: server.URL, secrets: secrets, turn: make(chan struct{}, 1), client: newClient(server.URL)}
	if server.OAuth != nil {
		s.entry = *server.OAuth
	}
	if dir != "" {
		sum := sha256.Sum256([]byte(s.url))
		s.path = filepath.Join(dir, hex.EncodeToString(sum[:16])+".json")
	}
	return s
}

// current returns a copy of what is kept, or an empty login if that cannot be read: a new
// one is how it is mended.
func (s *Store) current(ctx context.Context) *login {
	leave, err := s.enter(ctx)
	if err == nil {
		defer leave()
		err = s.load()
	}
	if err != nil {
		return &login{}
	}
	return s.kept.copy()
}

// hold waits for our turn in this process, and then keeps other processes out of the file.
func (s *Store) hold(ctx context.Context) (release func(), err error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		leave()
		return nil, err
	}
	return func() { unlock(); leave() }, nil
}

// enter waits for our turn in this process.
func (s *Store) enter(ctx context.Context) (leave func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// lock keeps other processes out of the file. The caller has its turn.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	if s.path == "" {
		return func() {}, nil
	}
	return state.Lock(ctx, s.path+".lock", state.Exclusive)
}

// Remove deletes the login, and reports whether there was one.
func (s *Store) Remove(ctx context.Context) (was bool, err error) {
	if s.path == "" {
		return false, nil
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	was = true
	if body, err := state.ReadRegular(s.path, maxLoginFile); err == nil {
		var kept login
		was = json.Unmarshal(body, &kept) != nil || kept.loggedIn()
	}
	err = os.Remove(s.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return was && err == nil, err
}

// load reads the file if it has changed.
func (s *Store) load() error {
	if s.path == "" {
		return nil
	}
	f, err := os.OpenFile(s.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		s.kept, s.stamp = nil, state.Stamp{}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the login of server %q: %w", s.name, err)
	}
	defer f.Close()
	stamp, err := state.StampOfFile(f)
	if err != nil || s.kept != nil && stamp == s.stamp {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(f, maxLoginFile))
	if err != nil {
		return fmt.Errorf("reading the login of server %q: %w", s.name, err)
	}
	var kept login
	if json.Unmarshal(body, &kept) != nil || kept.URL != s.url || kept.Token == nil && kept.asksAs(&login{}) {
		return fmt.Errorf("the login of server %q in %s cannot be read; in a terminal: toolcell servers login %s", s.name, s.path, text.ShellWord(s.name))
	}
	s.setLogin(&kept, stamp)
	return nil
}

func (s *Store) setLogin(kept *login, stamp state.Stamp) {
	s.kept, s.stamp = kept, stamp
	if kept.Token == nil {
		return
	}
	for _, secret := range []string{kept.Token.AccessToken, kept.Token.RefreshToken, kept.ClientSecret} {
		s.secrets.Add("token", secret)
	}
}

// write writes the login to its file. The caller has its turn, and the file's lock.
func (s *Store) write(kept *login) error {
	if s.path == "" {
		s.setLogin(kept, state.Stamp{})
		return nil
	}
	body, err := json.MarshalIndent(kept, "", "  ")
	if err == nil {
		err = state.Replace(s.path, body, state.Options{Locked: true})
	}
	if err != nil {
		return fmt.Errorf("keeping the login of server %q: %w", s.name, err)
	}
	return s.load()
}
