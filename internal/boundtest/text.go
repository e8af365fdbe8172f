package boundtest

import "slices"

// Text returns shapes of text between two texts: what a terminal would obey, what is not
// seen, what is no text, and what is markup.
func Text(before, after string) []Shape {
	return Between(before, after,
		repeated("one word", "", "w", ""),
		repeated("words", "", "word ", ""),
		counted("other words", "", "word%d ", "", ""),
		counted("names in parts", "", "getThing%d_byID-", "", ""),
		repeated("lines", "", "x\n", ""),
		repeated("empty lines", "", "\n", ""),
		repeated("carriage returns", "", "\r", ""),
		repeated("blanks", "x", " ", "x"),
		repeated("backspaces", "x", "\b", "x"),
		repeated("zero bytes", "", "\x00", ""),
		repeated("colors", "", "\x1b[31mx", ""),
		repeated("escape sequences that do not end", "", "\x1b]0;", ""),
		repeated("an escape sequence", "\x1b]", "x", "\a"),
		repeated("escapes", "", "\x1b", ""),
		repeated("combining characters", "a", "\u0301", ""),
		repeated("combining characters out of order", "a", "\u0301\u0316", ""),
		repeated("joiners", "", "👩\u200d", ""),
		repeated("only joiners", "", "\u200d", ""),
		repeated("tags", "", "\U000e0041", ""),
		repeated("overrides", "", "\u202ea\u202c", ""),
		repeated("characters that fold to many", "", "ﷺ", ""),
		repeated("bytes that are not UTF-8", "", "\xff", ""),
		repeated("halves of characters", "", "\xf0\x9f", ""),
		repeated("elements that do not end", "<", "<script>", ""),
		repeated("titles that do not end", "<", "<title", ""),
		repeated("elements", "<p>", "<style></style>", ""),
		repeated("links", "", "[![a](b)]", ""),
		repeated("open brackets", "", "[(", ""),
		repeated("backticks", "", "`", "x"),
		repeated("quotes", "", `"'`, ""),
		repeated("backslashes", "", `\`, ""),
		repeated("digits", "", "9", ""),
		repeated("letters of one kind", "", "a", "b"),
		nested("nested brackets", "(", ")"),
	)
}

// Pick returns the shapes of these names, in this order, where all would take long.
func Pick(shapes []Shape, names ...string) (picked []Shape) {
	for _, name := range names {
		i := slices.IndexFunc(shapes, func(s Shape) bool { return s.Name == name })
		picked = append(picked, shapes[i])
	}
	return picked
}

// Named adds words to the names of shapes, where several sets of them are used.
func Named(shapes []Shape, more string) []Shape {
	for i := range shapes {
		shapes[i].Name += more
	}
	return shapes
}
