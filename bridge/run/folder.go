package run

import (
	"context"
	"errors"
	"slices"

	"github.com/toolcell/toolcell/bridge/project"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/spec"
)

// ShowsFolders reports whether runs are shown the folders of their clients.
func (rs *Runs) ShowsFolders() bool {
	o, _, err := rs.current()
	return err == nil && o.Shown != nil
}

// ErrNoFolder is a Request.FolderErr of a client that has told: it works in no folder.
var ErrNoFolder = errors.New("the client has no folder open on this machine")

// findFolder finds the folder that the code can read. Without one the run goes on, and says so. A
// session that goes on keeps its folder if the client does not tell.
func (r *Run) findFolder() {
	shown := r.o.Shown
	if shown == nil {
		return
	}
	err := r.req.FolderErr
	if in := r.session.interpreter; in != nil && in.folder != "" && err != nil && !errors.Is(err, ErrNoFolder) {
		r.folder = in.folder
		return
	}
	if err == nil {
		r.folder, err = shown.Resolve(r.req.Folder)
	}
	if err != nil {
		r.folder = ""
		r.noteFolder(err.Error())
	}
}

// maxNote bounds a note about a folder, in bytes: clients name folders, and say why they do not.
const maxNote = 2 << 10

// noteFolder adds a note about the folder, once in the life of the server.
func (r *Run) noteFolder(note string) {
	if note = text.Bound(note, maxNote); note != "" && r.runs.first("folder: "+note) {
		r.notes = append(r.notes, note)
	}
}

// markFolder notes that the code can read what a private server could say: what it does then
// lets the user's files out.
func (r *Run) markFolder() {
	if r.folder != "" {
		r.req.Client.Taint.Add(project.Target)
	}
}

// seesTheSame reports whether a session that goes on shows what counts now: the client's folder, and
// the folders of the settings. It ends otherwise.
func (r *Run) seesTheSame() bool {
	why := "the client works in another folder now"
	switch {
	case !slices.Equal(r.python.mounts, r.o.Mounts):
		why = "the settings have other mounts now"
	case r.python.folder == r.folder:
		return true
	case r.folder == "":
		why = "the folder that it showed is no longer shown"
	case r.python.folder == "":
		why = "it did not show the client's folder, which is known now"
	}
	r.runs.sessions.lose(r.session, why)
	r.python = nil
	return false
}

// newFolder has a new sandbox show no folder that the client did not tell: the one that findFolder
// kept was of a session that has ended since.
func (r *Run) newFolder() {
	if err := r.req.FolderErr; err != nil && r.folder != "" {
		r.folder = ""
		r.noteFolder(err.Error())
	}
}

// project returns where the sandbox shows the client's folder, "" if it does not.
func (in *interpreter) project() string {
	if in.folder == "" || !slices.Contains(in.mounted, project.Target) {
		return ""
	}
	return project.Target
}

// show has a process see a folder of the host, and in what it has found.
func (in *interpreter) show(p *oci.Process, projects *project.Projects, folder string) {
	if in.folder = folder; folder == "" {
		return
	}
	mounted := in.mounted
	p.FindProject = func(ctx context.Context) (*spec.Project, error) {
		found, err := projects.Find(ctx, folder)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			in.mounted, in.folderNote = mounted, err.Error()
			return nil, nil //nolint:nilnil // nothing is shown, and the note says why
		}
		in.mounted, in.folderNote = slices.Concat(mounted, []string{project.Target}), projects.Note(*found)
		return found, nil
	}
}
