package rawjson

// Edit returns valid JSON in which edit has replaced strings, numbers and literals. It gets
// each as it is written, with the name of the member whose value it is, in its quotes: nil
// in a list, and for a name itself. No other byte is touched: to decode and encode would lose
// the order of members, and digits. Text that is not JSON is returned as it is.
func Edit(text []byte, edit func(name, token []byte) []byte) []byte {
	var out, name []byte
	done := 0 // up to where out has the text
	for s := (Scanner{Text: text}); s.Offset < len(text); {
		from := s.Offset
		switch text[from] {
		case ',', '{', '[':
			name = nil
			s.Offset++
			continue
		case ' ', '\t', '\n', '\r', ':', '}', ']':
			s.Offset++
			continue
		}
		if !s.value(0) {
			return text
		}
		token := text[from:s.Offset]
		edited := edit(name, token)
		if s.take(':') {
			name = token
		}
		if string(edited) != string(token) {
			out = append(append(out, text[done:from]...), edited...)
			done = from + len(token)
		}
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}
