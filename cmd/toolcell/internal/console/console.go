// Package console is the program's side of the terminal: the standard streams
// and the signals, colors, tables that keep to the width, bars of a pull, JSON
// output, exit codes. Foreign text is printed without control characters; what
// code prints keeps its colors. In a file or a pipe there are no colors of ours,
// tables are whole, and what code prints is as it was.
package console
