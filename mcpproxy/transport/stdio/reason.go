package stdio

import (
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// reasonIn returns the part of a server's output that explains its end: the error of the
// last Python traceback, the error of npm or uv, the last line that looks like an error, or
// just the last line.
func reasonIn(output string) string {
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	for _, find := range []func([]string) string{pythonReason, npmReason, uvReason, lineReason} {
		if reason := strings.TrimSpace(find(lines)); reason != "" {
			return reason
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}

// moreLines is how many lines after the first one belong to a reason.
const moreLines = 3

// pythonReason returns the error below the last traceback. Some have several lines, as
// pydantic's.
func pythonReason(lines []string) string {
	inner := make([]string, len(lines))
	for i, line := range lines {
		inner[i] = exceptionGroup().ReplaceAllString(line, "")
	}
	at := -1
	for i, line := range inner {
		if strings.HasPrefix(line, "Traceback (most recent call last)") {
			at = i + 1
		}
	}
	if at < 0 {
		return ""
	}
	for ; at < len(inner); at++ {
		if line := inner[at]; line != "" && strings.TrimLeft(line, " ") == line {
			break
		}
	}
	if at == len(inner) {
		return ""
	}
	if strings.Contains(lines[at], "| ") { // the next lines are of other errors of the group
		return inner[at]
	}
	return strings.Join(inner[at:min(at+1+moreLines, len(inner))], " ")
}

// exceptionGroup matches the prefix of lines of an exception group, with which asyncio's
// servers often end.
var exceptionGroup = text.Pattern(`^ *\+?[|+] ?`)

// npmReason returns the first line of npm's that is not about its code or its log.
func npmReason(lines []string) string {
	for _, line := range lines {
		said, isNPM := strings.CutPrefix(line, "npm error ")
		if !isNPM {
			said, isNPM = strings.CutPrefix(line, "npm ERR! ")
		}
		if key, _, _ := strings.Cut(said, " "); isNPM && !slices.Contains([]string{"code", "syscall", "path", "errno", "command", "dest"}, key) {
			return line
		}
	}
	return ""
}

// uvReason returns the error that uv and uvx print after a cross, and the causes below it.
func uvReason(lines []string) string {
	for i, line := range slices.Backward(lines) {
		if _, said, isUV := strings.Cut(line, "× "); isUV && strings.TrimSpace(strings.TrimSuffix(line, "× "+said)) == "" {
			for _, more := range lines[i+1 : min(i+1+moreLines, len(lines))] {
				said += " " + strings.Trim(more, " │├╰─▶")
			}
			return said
		}
	}
	return ""
}

// saysReason finds lines that give a reason, but not Node.js's last one, which is its
// version.
var saysReason = text.Pattern(`(?i)^\S*(?:error|exception|exit)\b|\b(?:error|exception|fatal|panic|cannot|failed|missing|required|not found|no such)\b`)

// lineReason returns the last line that looks like a reason. Indented lines are frames.
func lineReason(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if strings.TrimLeft(line, " ") == line && saysReason().MatchString(line) {
			return line
		}
	}
	return ""
}
