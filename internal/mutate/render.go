package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// insertion is text that goes to one place of a file.
type insertion struct {
	at    int
	skip  int // of what follows in the file
	close bool
	span  int // of the part that the text belongs to
	order int
	text  string
}

// render returns a file with all its mutants in it. No line begins anywhere else than before.
func render(content []byte, mutants []*mutant) []byte {
	var all []insertion
	for _, m := range mutants {
		for _, e := range m.edits {
			before := strings.ReplaceAll(e.before, "%d", fmt.Sprint(m.id))
			after := strings.ReplaceAll(e.after, "%d", fmt.Sprint(m.id))
			if e.replace {
				all = append(all, insertion{at: e.from, skip: e.to - e.from, order: m.id, text: before})
				continue
			}
			all = append(all, insertion{at: e.from, span: e.to - e.from, order: m.id, text: before})
			all = append(all, insertion{at: e.to, close: true, span: e.to - e.from, order: m.id, text: after})
		}
	}
	slices.SortStableFunc(all, nested)
	var out []byte
	done := 0
	for _, i := range all {
		out = append(out, content[done:i.at]...)
		out = append(out, i.text...)
		done = i.at + i.skip
	}
	return append(out, content[done:]...)
}

// nested orders insertions so that they nest as the parts do that they belong to: at one place the inner part is closed
// first, and the outer one is opened first.
func nested(a, b insertion) int {
	switch {
	case a.at != b.at:
		return cmp.Compare(a.at, b.at)
	case a.close != b.close:
		if a.close {
			return -1
		}
		return 1
	case a.close:
		return cmp.Or(cmp.Compare(a.span, b.span), cmp.Compare(b.order, a.order))
	case a.skip != b.skip: // what is replaced comes after what is put around it
		return cmp.Compare(a.skip, b.skip)
	}
	return cmp.Or(cmp.Compare(b.span, a.span), cmp.Compare(a.order, b.order))
}

// helpers is the file that the mutated code calls. %s is the package.
const helpers = `package %s

import (
	"cmp"
	"os"
	"strconv"
)

var mutateNumber, _ = strconv.Atoi(os.Getenv("MUTATE"))

func mutantIs(n int) bool { return n == mutateNumber }

func mutateNil(n int, err error) error {
	if mutantIs(n) {
		return nil
	}
	return err
}

type mutateNumeric interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

func mutateBy[T mutateNumeric](n int) T {
	if mutantIs(n) {
		return 1
	}
	return 0
}

func mutatePlus[T mutateNumeric](n int, a, b T) T {
	if mutantIs(n) {
		return a - b
	}
	return a + b
}

func mutateMinus[T mutateNumeric](n int, a, b T) T {
	if mutantIs(n) {
		return a + b
	}
	return a - b
}

func mutateLess[T cmp.Ordered](n int, a, b T) bool           { return a < b || a == b && mutantIs(n) }
func mutateLessOrEqual[T cmp.Ordered](n int, a, b T) bool    { return a < b || a == b && !mutantIs(n) }
func mutateGreater[T cmp.Ordered](n int, a, b T) bool        { return a > b || a == b && mutantIs(n) }
func mutateGreaterOrEqual[T cmp.Ordered](n int, a, b T) bool { return a > b || a == b && !mutantIs(n) }

func mutateMin[T cmp.Ordered](n int, first T, others ...T) T {
	for _, other := range others {
		if mutantIs(n) {
			first = max(first, other)
		} else {
			first = min(first, other)
		}
	}
	return first
}

func mutateMax[T cmp.Ordered](n int, first T, others ...T) T {
	for _, other := range others {
		if mutantIs(n) {
			first = min(first, other)
		} else {
			first = max(first, other)
		}
	}
	return first
}
`
