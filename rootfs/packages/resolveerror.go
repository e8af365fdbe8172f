package packages

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// maxReason bounds each quotation from uv, in bytes, and maxReasons how many of its reasons
// are considered.
const (
	maxReason  = 300
	maxReasons = 100
)

// A phrase is an expression that is compiled where it is looked for. To compile all takes a
// millisecond, which most processes need not spend.
type phrase string

func (p phrase) form() *regexp.Regexp { return regexp.MustCompile(string(p)) }

// Phrases of uv (uv-resolver, error.rs and pubgrub/report.rs; tried with 0.13.9).
const (
	notUnderstood phrase = "Couldn't parse requirement in .{1,200}? cause: (.{1,200}?)(?: hint: | [a-z0-9-]+ ;|$)"
	fetchFailed   phrase = `Failed to fetch: |error sending request|Request failed`
	indexRefuses  phrase = `An index \(.{1,300}?\) returned an? (\d{3} [A-Za-z ]+?) error`
	needsLogin    phrase = `An index URL \(.{1,300}?\) could not be queried due to a lack of valid authentication credentials \((\d{3} [A-Za-z ]+?)\)`
	tooNew        phrase = "hint: `([^`]{1,100})` was filtered by `exclude-newer`"
	notFound      phrase = `([A-Za-z0-9._-]+) was not found in the package registry`
	noWheels      phrase = `(?:[Bb]ecause|and) (?:all versions of )?([A-Za-z0-9._-]+(?:==[^ ,]+)?)[^ ]* ha(?:s|ve) no (?:usable )?wheels`
	lacksWheels   phrase = `have no (?:usable )?wheels|has no (?:usable )?wheels`
	onlyVersions  phrase = `only (.{1,120}?) (?:is|are) available and you require ([^ ]+)`
	noVersion     phrase = `there (?:is|are) no versions? of ([A-Za-z0-9._-]+[^ ]*)`
	pythonNeeds   phrase = `([A-Za-z0-9._-]+[^ ]*) (?:depends? on|requires) Python ?([<>=!~][^ ]*)`
	dependsOn     phrase = `([A-Za-z0-9._-]+[^ ]*) depends? on ([A-Za-z0-9._-]+[^ ]*)`
	broken        phrase = `([A-Za-z0-9._-]+[^ ]*) has (an invalid package format|invalid metadata|inconsistent metadata)`
	fromAddress   phrase = "Failed to resolve dependencies for package `([^`]{1,200})` cause: Package `([^`]{1,100})` was included as a URL dependency"
	markerInName  phrase = `\{[^}]*\}`
	statusOf      phrase = `HTTP status[^(]*\((\d{3}[^)]*)\)`
	youRequire    phrase = `you require (.*?)(?:\. |$)`
)

// explainResolver explains in a sentence why uv could not choose versions.
func explainResolver(out Output, r Request) error {
	text := markerInName.form().ReplaceAllString(textOf(out.Stderr), "")
	find := func(p phrase) string {
		m := p.form().FindStringSubmatch(text)
		if m == nil {
			return ""
		}
		return cut(strings.TrimRight(m[1], ".,:"))
	}
	depends := dependsOn.form().MatchString(text)
	switch {
	case find(notUnderstood) != "":
		return requestErrorf("a dependency of the script is not understood: %s", find(notUnderstood))
	case fetchFailed.form().MatchString(text) && refusedHost(out) != "":
		return fmt.Errorf("the package index %s leads to another host: %s", r.Index, refusedHost(out))
	case fetchFailed.form().MatchString(text):
		return unreachable(r, fetchReason(out, text))
	case find(indexRefuses) != "":
		return unreachable(r, "it answers "+find(indexRefuses))
	case find(needsLogin) != "":
		return unreachable(r, "it answers "+find(needsLogin))
	case find(notFound) != "":
		return &RequestError{Err: &NoPackageError{find(notFound), r.Index}}
	case find(tooNew) != "" && strings.Contains(text, "is missing an upload date"):
		return requestErrorf("the index %s does not say when the files of %s were uploaded, and so they do not count (%s)", r.Index, find(tooNew), r.newerSetting())
	case find(tooNew) != "" && !depends && r.byScript():
		return requestErrorf("the versions of %s that would do were published after %s, and so do not count (%s)", find(tooNew), r.Before.Format("2006-01-02 15:04 UTC"), r.newerSetting())
	case find(tooNew) != "" && !depends:
		return requestErrorf("the versions of %s that would do were published within the last %s, and so do not count ([packages] excludeNewer)", find(tooNew), period(r))
	case find(onlyVersions) != "" && !depends:
		return requestErrorf("only %s is available, and the script needs %s", find(onlyVersions), cut(strings.TrimRight(onlyVersions.form().FindStringSubmatch(text)[2], ",.")))
	case find(noWheels) != "" && !depends:
		return &RequestError{Err: &NoWheelError{find(noWheels)}}
	case find(noVersion) != "" && !depends:
		return requestErrorf("there is no version of %s", find(noVersion))
	case find(broken) != "" && !depends:
		return fmt.Errorf("the wheel of %s in the index is broken: it has %s", find(broken), broken.form().FindStringSubmatch(text)[2])
	case find(fromAddress) != "":
		m := fromAddress.form().FindStringSubmatch(text)
		return requestErrorf("%s needs %s from an address, and packages come from the index alone", cut(m[1]), cut(m[2]))
	case pythonNeeds.form().MatchString(text):
		m := pythonNeeds.form().FindStringSubmatch(text)
		return requestErrorf("%s needs Python %s, which the image does not have", cut(m[1]), cut(strings.TrimRight(m[2], ",.")))
	case lacksWheels.form().MatchString(text) && !depends:
		return requestErrorf("%s%s has no wheel for the Python of this image, and nothing is built from source", together(r), briefly(concerned(text, r)))
	case strings.Contains(text, "No solution found"):
		return requestErrorf("no versions go together for %s%s%s", briefly(concerned(text, r)), conflict(text, r), ofPolicy(text, r))
	}
	return fmt.Errorf("the resolver failed: %s", cut(firstSentence(text)))
}

// A NoPackageError says that the index does not have a package.
type NoPackageError struct{ Name, Index string }

func (e *NoPackageError) Error() string {
	return fmt.Sprintf("there is no package %q in the index %s", e.Name, e.Index)
}

// A NoWheelError says that a package has nothing that can be installed.
type NoWheelError struct{ Name string }

func (e *NoWheelError) Error() string {
	return e.Name + " has no wheel for the Python of this image, and nothing is built from source"
}

// together introduces a message about one of several requirements.
func together(r Request) string {
	if len(r.Requirements) < 2 {
		return ""
	}
	return "no versions go together for " + briefly(r.Requirements) + ": "
}

// An UnreachableError says why the package index cannot be reached.
type UnreachableError struct{ Index, Reason string }

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the package index %s cannot be reached: %s", e.Index, e.Reason)
}

func unreachable(r Request, reason string) error {
	if r.Credential == nil && strings.Contains(reason, "401") {
		reason += "; a name and a password for it go into [packages] credential"
	}
	return &UnreachableError{r.Index, reason}
}

// concerned returns the requirements that uv's explanation is about.
func concerned(text string, r Request) (lines []string) {
	lines = mentioned(text, r.Requirements)
	if len(lines) == 0 {
		return r.Requirements
	}
	return lines
}

// inName are the characters of names of packages.
const inName = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

// packageOf returns the name of a package that a requirement begins with.
func packageOf(requirement string) string {
	return requirement[:len(requirement)-len(strings.TrimLeft(requirement, inName))]
}

// conflict explains which package conflicts with the script's requirements: the first of
// uv's reasons that is about a package of the script.
func conflict(text string, r Request) string {
	all := dependsOn.form().FindAllStringSubmatch(text, maxReasons)
	if all == nil {
		return ""
	}
	names := make([]string, len(r.Requirements))
	for i, line := range r.Requirements {
		names[i] = packageOf(line)
	}
	reason := func(m []string) string { return ": " + cut(m[1]) + " needs " + cut(strings.TrimRight(m[2], ",.")) }
	for _, m := range all {
		needs, needed := packageOf(m[1]), packageOf(m[2])
		for i, line := range r.Requirements {
			if name := names[i]; name != line && sameName(name, needed) && !sameName(name, needs) {
				return reason(m) + ", and the script needs " + line
			}
		}
	}
	return reason(all[0])
}

// ofPolicy names the versions that the policy allows, of the packages that uv's
// explanation is about.
func ofPolicy(text string, r Request) string {
	bounds := mentioned(text, r.Constraints)
	if len(bounds) == 0 {
		return ""
	}
	return "; the policy allows " + briefly(bounds)
}

// mentioned returns the requirements whose package uv's explanation names after "you
// require".
func mentioned(text string, requirements []string) (lines []string) {
	required := map[string]bool{}
	for _, sentence := range youRequire.form().FindAllStringSubmatch(text, -1) {
		for _, name := range strings.FieldsFunc(sentence[1], func(c rune) bool { return !strings.ContainsRune(inName, c) }) {
			required[strings.TrimRight(name, ".-")] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(requirements), func(line string) bool { return !required[packageOf(line)] })
}

func period(r Request) string {
	if days := int(r.ExcludeNewer.Hours()) / 24; days > 1 {
		return fmt.Sprintf("%d days", days)
	}
	return r.ExcludeNewer.String()
}

// newerSetting names the setting because of which new files are ignored.
func (r Request) newerSetting() string {
	if r.byScript() {
		return "[tool.uv] exclude-newer in the script"
	}
	return "[packages] excludeNewer"
}

// refusedHost returns the broker's message if it refused a host of the index's files.
func refusedHost(out Output) string {
	if len(out.Refused) == 0 || !strings.Contains(out.Refused[0], "[packages] files") {
		return ""
	}
	return cut(out.Refused[0])
}

// fetchReason explains why the network failed. The broker's messages are plainer than
// uv's.
func fetchReason(out Output, text string) string {
	if len(out.Refused) > 0 {
		return cut(out.Refused[0])
	}
	if m := statusOf.form().FindStringSubmatch(text); m != nil {
		return "it answers " + cut(m[1])
	}
	causes := strings.Split(text, "cause: ")
	return cut(firstSentence(causes[len(causes)-1]))
}

// textOf returns output of the sandbox as one line, without control characters.
func textOf(b []byte) string {
	return text.Printable(strings.ToValidUTF8(string(b[:min(len(b), 64<<10)]), "?"), 64<<10)
}

func firstSentence(text string) string {
	if at := strings.Index(text, "error: "); at >= 0 { // warnings come before
		text = text[at+len("error: "):]
	}
	before, _, _ := strings.Cut(text, " hint: ")
	return before
}

func cut(s string) string {
	if len(s) > maxReason {
		return strings.ToValidUTF8(s[:maxReason], "") + "…"
	}
	return s
}
