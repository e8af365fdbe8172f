package hostapi

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/savedtools"
)

// maxSavedEntries bounds the entries of one run about saved tools: code may save and remove some as
// often as it likes.
const maxSavedEntries = 200

// A savedRecord has on record what a run does with saved tools. What is as the entry before says is
// not recorded again.
type savedRecord struct {
	run *record.Run

	mu      sync.Mutex
	stored  map[string]record.File // the last entry about what is stored, by the tool's name
	source  map[string]record.File // about what the code got
	entries int
}

// saved records that the code has saved a tool.
func (r *savedRecord) saved(t savedtools.Tool) { r.note(&r.stored, fileOf(t, "saved")) }

// removed records that the code has removed a tool.
func (r *savedRecord) removed(name string) {
	r.note(&r.stored, record.File{Name: savedServer + "." + name, Use: "removed"})
}

// given records that the code is about to get the sources of tools.
func (r *savedRecord) given(tools ...savedtools.Tool) {
	for _, t := range tools {
		r.note(&r.source, fileOf(t, "given"))
	}
}

// fileOf is a saved tool as the record has it. Digests of files have no salt, so there is none of a
// source that may hold private data, which could be guessed.
func fileOf(t savedtools.Tool, use string) record.File {
	f := record.File{Name: savedServer + "." + t.Name, Use: use, Size: int64(len(t.Source))}
	if len(t.Private) == 0 {
		sum := sha256.Sum256([]byte(t.Source))
		f.SHA256 = hex.EncodeToString(sum[:])
	}
	return f
}

// note records a file, unless that is known or there are too many entries.
func (r *savedRecord) note(known *map[string]record.File, f record.File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.run == nil || r.entries > maxSavedEntries || (*known)[f.Name] == f {
		return
	}
	if r.entries++; r.entries > maxSavedEntries {
		_ = r.run.Append(record.Limit{Name: "saved tools on record", Max: maxSavedEntries, Unit: "entries", Effect: "the rest is not recorded"})
		return
	}
	if *known == nil {
		*known = map[string]record.File{}
	}
	(*known)[f.Name] = f
	_ = r.run.Append(f)
}
