package history

import (
	"encoding/json/v2"

	"github.com/toolcell/toolcell/bridge/record"
)

// JoinValues gives entries of any runs and files the Values of one field, such as shown.
func (r *Record) JoinValues(entries []Entry, field string) error {
	type place struct {
		run string
		seq uint64
	}
	files := map[string]map[place]int{}
	for i, e := range entries {
		if t := record.Texts(e.Body)[field]; t == nil || t.Kept == 0 {
			continue
		}
		if files[e.File] == nil {
			files[e.File] = map[place]int{}
		}
		files[e.File][place{e.Run, e.Seq}] = i
	}
	for name, wanted := range files {
		err := grep(r.path(record.ValuesName(name)), []byte(`"field":"`+field+`"`), func(line []byte) bool {
			var v record.Value
			if json.Unmarshal(line, &v) == nil && v.Field == field {
				if i, ok := wanted[place{v.Run, v.Seq}]; ok {
					join(entries[i:i+1], v)
				}
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}
