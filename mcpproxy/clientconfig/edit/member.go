package edit

import "encoding/json"

// Set returns the text of a config file, whose name tells the format, in which the member at path
// has a value: JSON. Every other byte is as it was. An error says what is wrong with the text, or
// that it has to be changed by hand.
func Set(file string, data []byte, value json.RawMessage, path ...string) ([]byte, error) {
	d, err := newDocument(file, data)
	if err != nil {
		return nil, err
	}
	if err := d.set(value, path...); err != nil {
		return nil, err
	}
	return d.bytes(), nil
}

// Cut returns the text of a config file without the member at path, and whether it was there.
// Comments stay.
func Cut(file string, data []byte, path ...string) (rest []byte, was bool, err error) {
	d, err := newDocument(file, data)
	if err != nil || !d.has(path...) {
		return data, false, err
	}
	if _, err := d.cut(path...); err != nil {
		return nil, true, err
	}
	return d.bytes(), true, nil
}
