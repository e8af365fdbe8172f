package consent

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// A Ticket is what a client brings back with its answer, as requestState (MCP
// specification, Multi Round-Trip Requests). Which client may use it is not in it: that of
// the question's run.
type Ticket struct {
	Question string    `json:"q"`
	Run      string    `json:"r"`
	Nonce    string    `json:"n"` // makes each ticket another one, to be used once
	Digest   string    `json:"d"` // of the request that it belongs to
	Expires  time.Time `json:"e"`
}

// A Sealer makes tickets that only it can read and change.
type Sealer struct{ aead cipher.AEAD }

// NewSealer makes a Sealer with a key of its own.
func NewSealer() *Sealer {
	var key [32]byte
	_, _ = rand.Read(key[:]) // it never fails (crypto/rand)
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the size of the key is right
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // the block is AES
	}
	return &Sealer{aead}
}

// ErrTicket is the error of a ticket that is not ours or was changed.
var ErrTicket = errors.New("this requestState is not valid: it was changed, used before, is too old, or belongs to another request")

// Seal writes a ticket as text: its question's ID, so that another process can say
// what became of its run, a dot, and the ticket.
func (s *Sealer) Seal(t Ticket) string {
	body, err := json.Marshal(t)
	if err != nil {
		panic(err) // texts and a time only
	}
	return t.Question + "." + base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, body, []byte(t.Question)))
}

// maxTicket bounds the text of a ticket, in bytes.
const maxTicket = 4 << 10

// Open reads a ticket. The error is ErrTicket; id, which may be forged, is there if the
// text begins with one.
func (s *Sealer) Open(sealed string) (t Ticket, id string, err error) {
	if len(sealed) > maxTicket {
		return t, "", ErrTicket
	}
	id, sealed, _ = strings.Cut(sealed, ".")
	if !IsID(id) {
		id = ""
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil || strings.ContainsAny(sealed, "\r\n") { // which the decoder skips
		return t, id, ErrTicket
	}
	body, err := s.aead.Open(nil, nil, raw, []byte(id))
	if err != nil || json.Unmarshal(body, &t) != nil || t.Question != id {
		return Ticket{}, id, ErrTicket
	}
	return t, id, nil
}
