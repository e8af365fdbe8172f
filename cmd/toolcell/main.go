// Command toolcell is an MCP server with one tool, run_python, and the small
// container runtime behind it. Each command begins in a file of its name: flags,
// check, call.
package main

import "os"

func main() { os.Exit(runCommandLine(os.Args, os.Stdin, os.Stdout, os.Stderr)) }
