// Package bridge is the MCP server with the tool run_python: it reads the arguments of a call,
// begins a run (package run) or comes back to one that waits for the user, and writes the result
// as the client reads it.
//
// It promises that only calls of the connection that began a run come back to it, that an answer
// in a call counts with the requestState of the last result that asked, once, and for the same
// request, and that the calls that wait for a run when it ends get its result.
package bridge
