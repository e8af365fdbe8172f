package rule

import "slices"

// Reasons say why the user has to be asked, each once, in the order of the rules. All are
// kept: the user allows what they name.
type Reasons []string

// Add adds a reason.
func (r *Reasons) Add(reason string) {
	if !slices.Contains(*r, reason) {
		*r = append(*r, reason)
	}
}
