// Package console is the program's side of the terminal: the standard streams
// and the signals, colors, tables that keep to the width, bars of a pull, JSON
// output, exit codes. Foreign text is printed without control characters. In a
// file or a pipe there are no colors, and tables are whole.
package console
