// Package e2e has the end-to-end tests: they start the real, static binary and
// talk to it as an MCP client or a shell would.
package e2e
