// Package console writes for a person at a terminal: colors, tables that keep to
// the width, and bars of a pull. Text of others is printed without what a
// terminal would obey. In a file or a pipe there are no colors, and tables are
// whole.
package console
