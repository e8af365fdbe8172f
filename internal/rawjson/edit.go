package rawjson

import "encoding/json/jsontext"

// Edit returns valid JSON in which edit has replaced strings, numbers and literals by strings.
// It gets a string decoded, and all else as it is written, with the name of the member whose
// value it is, in its quotes: nil in a list, and for a name itself. No other byte is touched:
// to decode and encode would lose the order of members, and digits. Text with something else
// in it is returned as it is; whether the rest stands as JSON has it is not looked at.
func Edit(text []byte, edit func(name []byte, value string) string) []byte {
	var out, name, decoded []byte
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
		value := token
		if token[0] == '"' {
			decoded, _ = jsontext.AppendUnquote(decoded[:0], token) // it replaces what is not UTF-8
			value = decoded
		}
		if edited := edit(name, string(value)); edited != string(value) {
			out = append(append(out, text[done:from]...), Quote(edited)...)
			done = s.Offset
		}
		if s.take(':') {
			name = token
		}
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}
