package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/installer"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/oci/doctor"
)

// checkClients are doctor's lines on the clients that are told to start toolcell: entries
// that start one that is gone, or another one than this.
func checkClients(o clientconfig.Options) (checks []doctor.Check) {
	var current []string
	for _, e := range installer.SelfEntries(o) {
		starts := fmt.Sprintf("the entry %q of %s in %s starts %s", e.Name, e.Title, e.File, e.Command)
		switch {
		case e.Path == "":
			checks = append(checks, doctor.Degraded("RC-CLIENT-GONE", starts+", which does not exist", reinstall(o.Self, e)))
		case !sameProgram(e.Path, o.Self):
			checks = append(checks, doctor.Degraded("RC-CLIENT-OTHER", starts+", which is another version than this, "+o.Self, reinstall(o.Self, e)))
		default:
			current = append(current, e.Title)
		}
	}
	if len(current) > 0 && len(checks) == 0 {
		checks = append(checks, doctor.OK("RC-CLIENT", startThis(current)))
	}
	return checks
}

func startThis(clients []string) string {
	if len(clients) == 1 {
		return clients[0] + " starts this program"
	}
	last := len(clients) - 1
	return strings.Join(clients[:last], ", ") + " and " + clients[last] + " start this program"
}

// reinstall writes the command that brings an entry up to date.
func reinstall(self string, e installer.SelfEntry) string {
	cure := text.ShellWord(self) + " install " + e.Client
	if e.Name != clientconfig.ProgramName {
		cure += " --name " + text.ShellWord(e.Name)
	}
	if info, err := os.Stat(e.File); err == nil && info.Mode()&0o200 == 0 {
		cure += " --force" // the user has made it read-only
	}
	return cure
}

// sameProgram reports whether two files are one, or have the same content: a copy
// elsewhere is as good.
func sameProgram(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA != nil || errB != nil || infoA.Size() != infoB.Size() {
		return false
	}
	return os.SameFile(infoA, infoB) || bytes.Equal(fileSum(a), fileSum(b))
}

func fileSum(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return []byte(path)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return []byte(path)
	}
	return sum.Sum(nil)
}
