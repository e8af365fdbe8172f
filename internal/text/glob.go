package text

// Glob reports whether pattern matches all of name: * stands for any
// characters, ? for one, and every other character for itself. It takes no longer
// than the product of both lengths.
func Glob(patternText, nameText string) bool {
	pattern, name := []rune(patternText), []rune(nameText)
	i, j := 0, 0
	star, resume := -1, 0 // the last *, and the name that comes after what it took
	for j < len(name) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, resume = i, j
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == name[j]):
			i, j = i+1, j+1
		case star >= 0: // let it take one more
			resume++
			i, j = star+1, resume
		default:
			return false
		}
	}
	for i < len(pattern) && pattern[i] == '*' {
		i++
	}
	return i == len(pattern)
}
