package history

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"io"
	"os"

	"github.com/toolcell/toolcell/bridge/record"
)

// Codes returns what is kept of the code of runs, by their IDs. A run of which nothing is kept, or
// whose values were forgotten, is not among them. It reads each file of values from its end, and no
// more of it than these runs need.
func (r *Record) Codes(runs []Run) (map[string]record.Value, error) {
	wanted := map[string]map[string]bool{} // runs, by file
	for _, run := range runs {
		if wanted[run.File] == nil {
			wanted[run.File] = map[string]bool{}
		}
		wanted[run.File][run.ID] = true
	}
	codes := map[string]record.Value{}
	for name, ids := range wanted {
		if err := r.codesIn(name, ids, codes); err != nil {
			return nil, err
		}
	}
	return codes, nil
}

// codesIn adds the code of the runs that begin in one file.
func (r *Record) codesIn(name string, ids map[string]bool, codes map[string]record.Value) error {
	lines, err := openBackward(r.path(record.ValuesName(name)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer lines.close()
	for len(ids) > 0 {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		rest, ok := bytes.CutPrefix(line, []byte(`{"run":"`))
		run, rest, _ := bytes.Cut(rest, []byte{'"'})
		if !ok || !ids[string(run)] || !bytes.Contains(rest, []byte(`"field":"code"`)) {
			continue
		}
		var v record.Value
		if json.Unmarshal(line, &v) == nil && v.Field == "code" {
			codes[v.Run] = v
			delete(ids, v.Run)
		}
	}
	return nil
}
