package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/user"
	"github.com/toolcell/toolcell/oci/host"
)

// singleID describes the consequences on a single-ID host.
const singleID = "code, or an MCP server, that broke out of a sandbox would have your own id, and a start takes a little longer"

// idChecks check the IDs that sandboxes are mapped to. Several things can prevent a second
// ID.
func idChecks(f *hostFacts) []Check {
	h := f.host
	servers := idsOfServers(h)
	single := h.UIDs.User < 0 || h.GIDs.User < 0
	switch {
	case !single && h.OwnUIDs.Size > 0:
		last := h.OwnUIDs.Start + h.OwnUIDs.Size - 1
		return []Check{OK("RC-IDS", fmt.Sprintf("each sandbox has a user ID of its own, from %d to %d%s", h.OwnUIDs.Start, last, servers))}
	case !single && h.EUID == 0:
		return []Check{OK("RC-IDS", fmt.Sprintf("sandboxes have ids of their own, %d and %d%s", h.UIDs.Root, h.UIDs.User, servers))}
	case !single:
		return []Check{OK("RC-IDS", fmt.Sprintf("code in sandboxes has an id of its own, %d%s", h.UIDs.User, servers))}
	case h.EUID == 0:
		return []Check{Degraded("RC-IDS-ROOT", "this is root of a user namespace with a single id: "+singleID, "")}
	}
	return append(subIDChecks(f), idToolChecks(f)...)
}

// idsOfServers says which IDs MCP servers in sandboxes have, where code has some of its own (homes.Store).
func idsOfServers(h host.Host) string {
	ids := h.ServerUIDs
	if ids.Size <= 0 || h.NoProc && h.EUID != 0 {
		return "; MCP servers in sandboxes have this user's own ID"
	}
	return fmt.Sprintf("; each MCP server in a sandbox has another one, from %d to %d", ids.Start, ids.Start+ids.Size-1)
}

// subIDChecks look for the user's lines in /etc/subuid and /etc/subgid.
func subIDChecks(f *hostFacts) []Check {
	none := func(file string, self int64) bool {
		ranges := host.ParseSubIDs(strings.NewReader(f.Read(file)), f.user, f.host.EUID)
		return host.MapAsUser(self, ranges).User < 0
	}
	uids, gids := none("etc/subuid", f.host.UIDs.Root), none("etc/subgid", f.host.GIDs.Root)
	where := "/etc/subuid and /etc/subgid have no line"
	switch {
	case !uids && !gids:
		return nil
	case !gids:
		where = "/etc/subuid has no line"
	case !uids:
		where = "/etc/subgid has no line"
	}
	return []Check{Degraded("RC-IDS-SUBID", where+" for "+f.user+": "+singleID, subIDCure(f, uids, gids))}
}

// subIDCure assigns the user a range of ids that is not in use.
func subIDCure(f *hostFacts, uids, gids bool) string {
	start, ok := freeIDs(f)
	if !ok {
		return ""
	}
	first, last := strconv.FormatInt(start, 10), strconv.FormatInt(start+subIDCount-1, 10)
	// usermod supports only users in /etc/passwd, and BusyBox lacks it.
	known := strings.Contains("\n"+f.Read("etc/passwd"), "\n"+f.user+":")
	if f.Program("usermod") == "" || !known {
		var files []string
		if uids {
			files = append(files, "/etc/subuid")
		}
		if gids {
			files = append(files, "/etc/subgid")
		}
		return f.asRoot("echo '" + f.user + ":" + first + ":" + strconv.Itoa(subIDCount) + "' | tee -a " + strings.Join(files, " "))
	}
	c := "usermod"
	if uids {
		c += " --add-subuids " + first + "-" + last
	}
	if gids {
		c += " --add-subgids " + first + "-" + last
	}
	return f.asRoot(c + " " + f.user)
}

// subIDCount is how many subordinate ids useradd gives to a user.
const subIDCount = 65536

// freeIDs finds a range, at or above useradd's first, that overlaps no other range, user or
// group.
func freeIDs(f *hostFacts) (start int64, ok bool) {
	var taken []host.IDRange
	for _, file := range []string{"etc/subuid", "etc/subgid"} {
		ranges, _ := user.ParseSubID(strings.NewReader(f.Read(file))) // as far as they can be read, here and below
		for _, r := range ranges {
			taken = append(taken, host.IDRange{Start: r.SubID, Size: r.Count})
		}
	}
	users, _ := user.ParsePasswd(strings.NewReader(f.Read("etc/passwd")))
	for _, u := range users {
		taken = append(taken, host.IDRange{Start: int64(u.Uid), Size: 1})
	}
	groups, _ := user.ParseGroup(strings.NewReader(f.Read("etc/group")))
	for _, g := range groups {
		taken = append(taken, host.IDRange{Start: int64(g.Gid), Size: 1})
	}
	slices.SortFunc(taken, func(a, b host.IDRange) int { return int(a.Start - b.Start) })
	start = 100000
	for _, r := range taken {
		if r.Start < start+subIDCount && start < r.Start+r.Size {
			start = r.Start + r.Size
		}
	}
	return start, start+subIDCount <= host.BaseID // higher ones are toolcell's (host/idmap.go)
}

// idToolChecks find out why newuidmap or newgidmap cannot map ids.
func idToolChecks(f *hostFacts) []Check {
	var missing, weak []string
	for _, name := range []string{"newuidmap", "newgidmap"} {
		switch t := f.IDTool(name); {
		case t.Path == "":
			missing = append(missing, name)
		case !t.Able:
			weak = append(weak, t.Path)
		}
	}
	switch {
	case len(missing) > 0:
		cure := f.install(packageNames{
			"apt-get": "uidmap", "dnf": "shadow-utils", "apk": "shadow-uidmap", "pacman": "shadow", "zypper": "shadow",
		})
		return []Check{Degraded("RC-IDS-TOOLS", theyAre(missing, "missing")+": "+singleID, cure)}
	case len(weak) > 0:
		return []Check{Degraded("RC-IDS-SETUID", theyAre(weak, "not setuid root and without file capabilities")+": "+singleID,
			f.asRoot("chown root:root "+strings.Join(weak, " "), "chmod u+s "+strings.Join(weak, " ")))}
	case f.NoNewPrivs():
		return []Check{Degraded("RC-IDS-NOPRIVS", "newuidmap gets no rights, since toolcell was started with no_new_privs: "+singleID,
			"# start toolcell without it (systemd: NoNewPrivileges=no; Kubernetes: allowPrivilegeEscalation: true)")}
	}
	return nil
}

func theyAre(names []string, what string) string {
	if len(names) == 1 {
		return names[0] + " is " + what
	}
	return strings.Join(names, " and ") + " are " + what
}
