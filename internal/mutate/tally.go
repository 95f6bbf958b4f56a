package main

import (
	"fmt"
	"sync"
	"time"
)

// progress is how often the program says how far it is.
const progress = 10 * time.Second

// tally counts the results of a package, and prints what is worth knowing.
type tally struct {
	pkg     string
	of      int // mutants that there are
	reasons map[string]string
	verbose bool
	began   time.Time

	mu       sync.Mutex // guards the fields below
	printed  time.Time
	count    map[result]int
	unlisted int // survivors without an entry
}

func (t *tally) note(m *mutant, r result, output []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == nil {
		t.count, t.printed = map[result]int{}, t.began
	}
	t.count[r]++
	_, listed := t.reasons[m.name]
	switch {
	case r == survived && !listed:
		t.unlisted++
		fmt.Printf("%s\n\tsurvives, line %d\n", m.name, m.line)
	case (r == killed || r == hung) && listed:
		fmt.Printf("%s\n\tis listed as a survivor, but %s this time\n", m.name, r)
	case t.verbose:
		fmt.Printf("%s\n\t%s, line %d\n%s\n", m.name, r, m.line, output)
	}
	if time.Since(t.printed) > progress {
		t.printed = time.Now()
		t.line()
	}
}

func (t *tally) print() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line()
}

func (t *tally) line() {
	run := t.count[killed] + t.count[hung] + t.count[survived]
	fmt.Printf("%s: ran %d of %d mutants in %v: %d killed, %d timed out, %d survived, of which %d are not listed\n",
		t.pkg, run, t.of, time.Since(t.began).Round(time.Second), t.count[killed], t.count[hung], t.count[survived], t.unlisted)
}
