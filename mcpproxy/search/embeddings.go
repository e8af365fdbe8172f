package search

import (
	"context"
	_ "embed"
	"math"
	"sort"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// vectorFile is written by data/distil.py, which says where its numbers come
// from; data/README.md has its form. It is read in place: what no search
// touches is never loaded from the binary.
//
//go:embed data/vectors.bin
var vectorFile string

const dims = 128

// vectors maps words to vectors: words that mean similar things have similar
// vectors, and the sum of a text's vectors stands for the text.
type vectors struct {
	n                       int
	offsets, scales, values int // where they begin in vectorFile
}

var theVectors = readVectors()

// readVectors finds its way in the file; it reads twelve bytes of it.
func readVectors() vectors {
	n := int(number(vectorFile, 4))
	if vectorFile[:4] != "RCV1" || number(vectorFile, 8) != dims {
		panic("data/vectors.bin is not what this program reads: run data/distil.py")
	}
	v := vectors{n: n, offsets: 12}
	v.scales = v.offsets + 4*(n+1)
	v.values = v.scales + 4*n
	return v
}

func (v vectors) word(i int) string {
	words := v.values + v.n*dims
	return vectorFile[words+int(number(vectorFile, v.offsets+4*i)) : words+int(number(vectorFile, v.offsets+4*i+4))]
}

// find returns the number of a word, or -1.
func (v vectors) find(word string) int {
	i := sort.Search(v.n, func(i int) bool { return v.word(i) >= word })
	if i == v.n || v.word(i) != word {
		return -1
	}
	return i
}

func (v vectors) knows(word string) bool { return v.find(word) >= 0 }

func (v vectors) add(sum *[dims]float32, i int) {
	addScaled(sum, vectorFile[v.values+i*dims:][:dims], math.Float32frombits(number(vectorFile, v.scales+4*i)))
}

// embeddings holds one vector for each document.
type embeddings struct {
	values []int8 // dims for each document
	scales []float32
}

// The parts of a tool's text. Each has a vector, and the document's vector is
// their sum: its names, its names with the beginning of its description, and
// what it does in a sentence.
const (
	maxMeantText     = 300
	maxMeantSentence = 200
)

// newEmbeddings is of no use if ctx has ended.
func newEmbeddings(ctx context.Context, docs []Document) *embeddings {
	m := &embeddings{values: make([]int8, len(docs)*dims), scales: make([]float32, len(docs))}
	for i, d := range docs {
		if ctx.Err() != nil {
			return m
		}
		tool := text.Clip(d.Tool, maxMeantSentence)
		if d.Title != "" {
			tool += " " + text.Clip(d.Title, maxMeantSentence)
		}
		about := strings.Join(strings.Fields(text.Clip(d.Description, maxIndexedText)), " ")
		var sum [dims]float32
		for _, text := range []string{
			d.Server + " " + tool,
			d.Server + " " + tool + " " + text.Clip(about, maxMeantText),
			tool + " " + text.Clip(firstSentence(about), maxMeantSentence),
		} {
			for d, x := range inTools.vectorOf(lowered(text)) {
				sum[d] += x
			}
		}
		m.set(i, &sum)
	}
	return m
}

func firstSentence(text string) string {
	for _, end := range []string{". ", "! ", "? "} {
		text, _, _ = strings.Cut(text, end)
	}
	return text
}

func normalise(v *[dims]float32) {
	var square float64
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	if square == 0 {
		return
	}
	by := float32(1 / math.Sqrt(square))
	for i := range v {
		v[i] *= by
	}
}

// set keeps a vector in a byte a number. The documents' vectors keep their
// length: a text whose parts mean different things means none of them much.
func (m *embeddings) set(doc int, v *[dims]float32) {
	var most float32
	for _, x := range v {
		most = max(most, x, -x)
	}
	if most == 0 {
		return
	}
	m.scales[doc] = most / 127 / 3 // of three parts
	for d, x := range v {
		m.values[doc*dims+d] = int8(math.Round(float64(x / most * 127)))
	}
}

// cosines returns how close each document is to a query, at most 1; nil if no
// word of the query has a vector.
func (m *embeddings) cosines(query []string) []float32 {
	v := inQuestions.vectorOf(query)
	if v == [dims]float32{} {
		return nil
	}
	all := make([]float32, len(m.scales))
	for doc := range all {
		all[doc] = m.cosine(doc, &v)
	}
	return all
}

// cosine returns how close a document is to a query.
func (m *embeddings) cosine(doc int, v *[dims]float32) float32 {
	values := m.values[doc*dims:][:dims]
	var a, b, c, d float32
	for i := 0; i < dims; i += 4 {
		a += v[i] * float32(values[i])
		b += v[i+1] * float32(values[i+1])
		c += v[i+2] * float32(values[i+2])
		d += v[i+3] * float32(values[i+3])
	}
	return (a + b + c + d) * m.scales[doc]
}
