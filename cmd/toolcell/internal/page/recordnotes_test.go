package page

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
)

// ofNewer has a newer toolcell have written the entries that have a text in them.
func (v *visitor) ofNewer(text string) {
	v.t.Helper()
	files, err := filepath.Glob(filepath.Join(v.runs, "*", "*.jsonl"))
	if err != nil || len(files) == 0 {
		v.t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		lines := strings.SplitAfter(string(data), "\n")
		for i, line := range lines {
			if strings.Contains(line, text) {
				lines[i] = strings.Replace(line, `{"v":1,`, `{"v":2,`, 1)
			}
		}
		if err == nil {
			err = os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600)
		}
		if err != nil {
			v.t.Fatal(err)
		}
	}
}

// TestWhatTheRecordLacksIsSaid, in lists and of a run: entries that were lost, and those of a newer toolcell.
func TestWhatTheRecordLacksIsSaid(t *testing.T) {
	v := visit(t, nil)
	if _, body := v.get("/runs"); !strings.Contains(body, "No runs are on record yet.") {
		t.Errorf("an empty record: %s", body)
	}
	j := v.journal()
	whole, lossy := j.Begin("whole00000", ""), j.Begin("lossy00000", "")
	if err := errors.Join(whole.Append(record.RunStart{Command: "exec"}), whole.Append(record.RunEnd{Status: "success"}),
		lossy.Append(record.RunStart{Command: "exec"}), lossy.Append(record.RunEnd{Status: "success", Lost: 2}), j.Close()); err != nil {
		t.Fatal(err)
	}
	says := func(path string, want int, texts map[string]bool) {
		t.Helper()
		status, body := v.get(path)
		for text, there := range texts {
			if status != want || strings.Contains(body, text) != there {
				t.Errorf("%s: %d, %q is there: %t; %s", path, status, text, !there, body)
			}
		}
	}
	const lost, newer = "Entries could not be written of lossy000: not all that these runs did is listed.", "written by a newer toolcell (record version 2)"
	for _, path := range []string{"/", "/runs"} {
		says(path, http.StatusOK, map[string]bool{lost: true, newer: false})
	}
	says("/runs/lossy00000", http.StatusOK, map[string]bool{"could not be written, or not in full: 2": true})
	says("/runs/whole00000", http.StatusOK, map[string]bool{"could not be written": false, newer: false})

	v.ofNewer(`"` + string(record.KindRunEnd) + `"`)
	for _, path := range []string{"/", "/runs", "/runs/whole00000"} {
		says(path, http.StatusOK, map[string]bool{newer: true})
	}
	v.ofNewer("")
	says("/runs", http.StatusOK, map[string]bool{newer: true, "No runs that this version of toolcell can read": true})
	says("/runs?status=success", http.StatusOK, map[string]bool{newer: true, "No runs fit": true})
	says("/runs/whole00000", http.StatusNotFound, map[string]bool{"no such run is on record": true, "written by a newer toolcell": true})
}
