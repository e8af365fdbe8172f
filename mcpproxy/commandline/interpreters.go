package commandline

import (
	"path"
	"slices"
	"strings"
)

// pythonFolders are where the system's Python is. One elsewhere has packages of its own.
var pythonFolders = []string{".", "/bin", "/usr/bin", "/usr/local/bin"}

// parsePython reads [options] FILE arguments, or -m or -c in place of the file.
func parsePython(command string, args []string) (l Line, err error) {
	if !slices.Contains(pythonFolders, path.Dir(command)) || strings.HasPrefix(command, "./") {
		return l, refusal{command, "", "it is a Python with packages of its own, which the sandbox does not have: name them with uvx"}
	}
	return Line{Kind: Python, Args: args, Python: versionsOfName(path.Base(command)), File: pythonFile(args)}, nil
}

// pythonFile returns the file that Python runs; "" if it runs a module, code, or its standard
// input. Options of one letter can be joined, as in -um, and so can their values
// (docs.python.org, "Command line and environment").
func pythonFile(args []string) string {
	for i := 0; i < len(args); i++ {
		word := args[i]
		if !strings.HasPrefix(word, "-") {
			return word
		}
		if word == "-" {
			return ""
		}
		if word == "--check-hash-based-pycs" {
			i++
		}
		if strings.HasPrefix(word, "--") {
			continue
		}
		at := strings.IndexAny(word, "mcWX")
		switch {
		case at < 0:
		case word[at] == 'm' || word[at] == 'c':
			return ""
		case at == len(word)-1: // -W and -X, whose value follows
			i++
		}
	}
	return ""
}

// nodeValues are the options of Node that take a value as their next argument
// (nodejs.org, "Command-line API").
var nodeValues = []string{
	"-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "--input-type", "--env-file", "--env-file-if-exists",
	"--title", "--icu-data-dir", "--openssl-config", "--redirect-warnings", "--trace-event-categories",
}

// parseNode reads [options] FILE arguments, or code in place of the file.
func parseNode(args []string) Line {
	return Line{Kind: Node, Args: args, File: nodeFile(args)}
}

// nodeFile returns the file that Node runs; "" if it runs code, or its standard input.
func nodeFile(args []string) string {
	for i := 0; i < len(args); i++ {
		word := args[i]
		name, _, _ := strings.Cut(word, "=")
		switch {
		case word == "--" && i+1 < len(args):
			return args[i+1]
		case !strings.HasPrefix(word, "-"):
			return word
		case word == "-" || slices.Contains([]string{"-e", "--eval", "-p", "--print", "-pe", "--run", "--test"}, name):
			return ""
		case slices.Contains(nodeValues, word):
			i++
		}
	}
	return ""
}
