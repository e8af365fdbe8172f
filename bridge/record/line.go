package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/v2"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/toolcell/toolcell/internal/text"
)

// Version is that of the lines' form, their member "v".
const Version = 1

// MaxLine bounds a line. What Append writes is shorter.
const MaxLine = 1 << 20

// MaxID bounds the ID of a run, and MaxNumber each count of an entry. Lines with more are written by
// others: they are no entries, or say nothing beside their headers.
const (
	MaxID     = 64
	MaxNumber = 1 << 44 // 16 TiB, or half a year of microseconds
)

// Day is the form of the names of folders, one for each day (UTC).
const Day = time.DateOnly

const timeForm = "2006-01-02T15:04:05.000000000Z"

// A Header is what each line begins with.
type Header struct {
	Version int       `json:"v"`
	Seq     uint64    `json:"seq"`  // from 1 in each file
	Prev    string    `json:"prev"` // SHA-256 of the line before, without its line feed; of the first line, of the file's name
	Time    time.Time `json:"time"`
	Kind    Kind      `json:"kind"`
	Run     string    `json:"run,omitzero"`
	Parent  string    `json:"parent,omitzero"` // of what the run is a part, as its caller calls it
}

// A Hash is the SHA-256 of a line.
type Hash [sha256.Size]byte

// HashOf returns that of a line without its line feed.
func HashOf(line []byte) Hash { return sha256.Sum256(line) }

// FirstPrev returns what the first line of a file has for the line before: the hash of its name, with
// the folder of its day.
func FirstPrev(name string) Hash { return sha256.Sum256([]byte(name)) }

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// appendLine appends a line to b: the header, and the members of a JSON object.
func appendLine(b []byte, h *Header, prev Hash, body []byte) []byte {
	b = append(b, `{"v":1,"seq":`...)
	b = strconv.AppendUint(b, h.Seq, 10)
	b = append(b, `,"prev":"`...)
	b = hex.AppendEncode(b, prev[:])
	b = append(b, `","time":"`...)
	b = h.Time.AppendFormat(b, timeForm)
	b = append(b, `","kind":"`...)
	b = append(b, h.Kind...)
	b = append(b, '"')
	b = appendID(b, `,"run":"`, h.Run)
	b = appendID(b, `,"parent":"`, h.Parent)
	if len(body) > len("{}") {
		b = append(b, ',')
	}
	b = append(b, body[1:]...)
	return append(b, '\n')
}

// appendID appends a member whose value needs no escapes (idOf).
func appendID(b []byte, name, id string) []byte {
	if id == "" {
		return b
	}
	b = append(b, name...)
	b = append(b, id...)
	return append(b, '"')
}

// idOf makes an ID of what a caller gives as one: bytes that JSON writes as they are.
func idOf(s string, most int) string {
	id := []byte(s[:min(len(s), most)])
	for i, c := range id {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			id[i] = '_'
		}
	}
	return string(id)
}

// A VersionError is of a line that a newer toolcell wrote.
type VersionError struct{ Version int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("written by a newer toolcell (record version %d)", e.Version)
}

// ReadHeader reads the header of a line. The error is a VersionError if it may be an entry to a newer
// toolcell. It does not mind a time that is none, which is then zero:
// whether a line is an entry does not depend on that.
func ReadHeader(line []byte) (Header, error) {
	var h struct {
		Header
		Time string `json:"time"`
	}
	if len(line) > MaxLine {
		return Header{}, fmt.Errorf("it is longer than %s", text.Size(MaxLine))
	}
	if err := json.Unmarshal(line, &h); err != nil || h.Version > Version {
		return Header{}, cmp.Or(newerVersion(line), err)
	}
	switch {
	case h.Version != Version:
		return Header{}, fmt.Errorf("version %d is not known", h.Version)
	case h.Seq == 0 || h.Kind == "" || len(h.Prev) != hex.EncodedLen(sha256.Size):
		return Header{}, errors.New("it has no seq, kind or prev")
	case len(h.Run) > MaxID || len(h.Kind) > MaxID || len(h.Parent) > maxName:
		return Header{}, errors.New("its run, kind or parent is too long")
	}
	h.Header.Time, _ = time.Parse(time.RFC3339Nano, h.Time)
	return h.Header, nil
}

// newerVersion returns a VersionError if a line says no more than that it is of a newer version, whose
// other members may mean anything.
func newerVersion(line []byte) error {
	var h struct {
		Version int `json:"v"`
	}
	if json.Unmarshal(line, &h) != nil || h.Version <= Version {
		return nil
	}
	return &VersionError{h.Version}
}

// ReadEntry reads what the line says beside its header: a pointer to one of the structs, nil if
// the kind is not known. It is an error if a member is of another type, or a count negative or more
// than MaxNumber.
func ReadEntry(h Header, line []byte) (Entry, error) {
	e := blank(h.Kind)
	if e == nil {
		return nil, nil
	}
	if err := json.Unmarshal(line, e); err != nil {
		return nil, err
	}
	if !inRange(reflect.ValueOf(e).Elem()) {
		return nil, errors.New("it has a count that is negative or too large")
	}
	return e, nil
}

// inRange looks at the counts of an entry and of what is in it. The codes of errors may be negative.
func inRange(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		return v.Int() >= 0 && v.Int() <= MaxNumber
	case reflect.Struct:
		for field, of := range v.Fields() {
			if field.IsExported() && (field.Name != "Code" || of.Kind() != reflect.Int) && !inRange(of) {
				return false
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if !inRange(v.Index(i)) {
				return false
			}
		}
	}
	return true
}
