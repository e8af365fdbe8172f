// Package state has what processes that share files need: locks between them,
// files that are replaced as a whole, stamps that tell whether a file has
// changed, folders that forget what is not used, and small maps of JSON.
//
// It promises that a killed process leaves no lock behind, and in place of a file
// either the old one or the new one. No other package locks files, replaces them by
// rename or compares their times itself; a test has the exceptions.
package state
