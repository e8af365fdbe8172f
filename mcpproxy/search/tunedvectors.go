package search

import (
	_ "embed"
	"encoding/binary"
	"math"
	"sort"
)

// tunedFile is written by data/tune.py: words that mean something else in a
// question, or in a tool's text, than they do in general. It is read in place.
//
//go:embed data/tuned.bin
var tunedFile string

// A side has the vectors of words in texts of one kind.
type side struct {
	n                   int
	ids, scales, values int // where they begin in tunedFile
}

var (
	inQuestions, inTools = readTuned()
	untuned              side // as in general
)

func readTuned() (questions, tools side) {
	if tunedFile[:4] != "RCT1" || int(number(tunedFile, 4)) != theVectors.n || number(tunedFile, 8) != dims {
		panic("data/tuned.bin is not of this data/vectors.bin: run data/tune.py")
	}
	at := 12
	for _, s := range []*side{&questions, &tools} {
		s.n = int(number(tunedFile, at))
		s.ids = at + 4
		s.scales = s.ids + 4*s.n
		s.values = s.scales + 4*s.n
		at = s.values + dims*s.n
	}
	return questions, tools
}

// vectorOf is the sum of the words' vectors on this side, of length 1 if any word has one.
func (s side) vectorOf(words []string) (sum [dims]float32) {
	for _, w := range words {
		if i := theVectors.find(w); i >= 0 {
			s.add(&sum, i)
		}
	}
	normalise(&sum)
	return sum
}

func (s side) add(sum *[dims]float32, i int) {
	at := sort.Search(s.n, func(at int) bool { return int(number(tunedFile, s.ids+4*at)) >= i })
	if at == s.n || int(number(tunedFile, s.ids+4*at)) != i {
		theVectors.add(sum, i)
		return
	}
	addScaled(sum, tunedFile[s.values+at*dims:][:dims], math.Float32frombits(number(tunedFile, s.scales+4*at)))
}

func addScaled(sum *[dims]float32, values string, scale float32) {
	for d := range dims {
		sum[d] += scale * float32(int8(values[d]))
	}
}

func number(file string, at int) uint32 {
	return binary.LittleEndian.Uint32([]byte(file[at : at+4]))
}
