package rawjson

// maxLevels bounds what Any remembers.
const maxLevels = 1 << 20

// Any passes over a value and returns it, however deep it nests, so that one that does
// spoils nothing that stands beside it.
func (s *Scanner) Any() (value []byte, ok bool) {
	s.SkipSpace()
	from := s.Offset
	if ok = s.value(MaxDepth); !ok {
		s.Offset = from
		ok = s.skip()
	}
	return s.Text[from:s.Offset:s.Offset], ok
}

// skip passes over a value without calling itself for what is inside.
func (s *Scanner) skip() bool {
	var open []byte // what closes the objects and lists around
	for {
		var closing byte
		switch {
		case s.take('{'):
			closing = '}'
		case s.take('['):
			closing = ']'
		case !s.value(0):
			return false
		}
		more := closing != 0 && !s.take(closing)
		if more {
			if len(open) == maxLevels {
				return false
			}
			open = append(open, closing)
		}
		for !more && len(open) > 0 { // a value has ended
			if more = s.take(','); more {
				break
			}
			if !s.take(open[len(open)-1]) {
				return false
			}
			open = open[:len(open)-1]
		}
		if len(open) == 0 {
			return true
		}
		if open[len(open)-1] == '}' && !s.name() {
			return false
		}
	}
}

// name passes over the name of a member with its colon.
func (s *Scanner) name() bool {
	s.SkipSpace()
	return s.str() && s.take(':')
}
