package page

import (
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
)

// pictures are the types of files that a browser shows as a picture and as nothing else. SVG has scripts.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// maxPicture bounds the files that are shown, in bytes: larger ones are to be saved.
const maxPicture = 20 << 20

func isPicture(f *record.File) bool { return slices.Contains(pictures, f.Type) && f.Size <= maxPicture }

// file answers with a file that a run has left, as it is kept now: a picture, or something to save. Whatever
// is in it, the browser takes it for nothing else, and lets it do nothing.
func (s *Server) file(w http.ResponseWriter, r *http.Request) {
	shown, err := s.find(r.PathValue("id"))
	if err != nil {
		s.noRun(w, err)
		return
	}
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil || n < 0 || n >= len(shown.Files) || shown.Files[n].URI == "" || s.o.OpenFile == nil {
		s.fail(w, http.StatusNotFound, "The run has no such file, or it is not shown.")
		return
	}
	f := shown.Files[n]
	kept, err := s.o.OpenFile(f.URI)
	if err != nil {
		s.fail(w, http.StatusNotFound, err.Error()+".")
		return
	}
	defer kept.Close()
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Content-Type", "application/octet-stream")
	if isPicture(f) {
		h.Set("Content-Type", f.Type)
	} else {
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": console.Plain(f.Name)}))
	}
	_, _ = io.Copy(w, kept)
}
