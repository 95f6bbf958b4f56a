package discovery

import "strings"

// nearest returns the resource whose name is most similar to a mistyped one, or "" if no name is similar.
func (c *catalog) nearest(asked string) string {
	asked = strings.ToLower(asked)
	best, at := "", (len(asked)+2)/4+1
	for i := range c.resources {
		r := &c.resources[i]
		for _, form := range append([]string{r.Plural, r.String(), r.Singular}, r.ShortNames...) {
			if len(form) < 3 {
				continue // too short: every name would be similar
			}
			if d := distance(asked, strings.ToLower(form)); d < at {
				best, at = r.String(), d
			}
		}
	}
	return best
}

// distance counts missing, additional, different and swapped letters (the restricted Damerau-Levenshtein distance).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
