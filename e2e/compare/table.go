package compare

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Unexplained is the reason of rows that Update adds.
const Unexplained = "TO EXPLAIN"

// Table is the list of known differences: which steps differ, in what, and why.
type Table struct {
	reasons []string // in the order of the file
	rows    map[string]*Row
}

// Row is the known difference of one step.
type Row struct {
	Step    string
	Aspects []string
	Reason  string
}

// ParseTable reads a table. A line "== reason" begins the rows of one reason; a row is the ID of a step and its
// aspects.
func ParseTable(text string) (*Table, error) {
	t := &Table{rows: map[string]*Row{}}
	for i, line := range strings.Split(text, "\n") {
		reason, isReason := strings.CutPrefix(line, "== ")
		fields := strings.Fields(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case isReason:
			if slices.Contains(t.reasons, reason) {
				return nil, fmt.Errorf("compare: line %d: the reason %q is there twice", i+1, reason)
			}
			t.reasons = append(t.reasons, reason)
		case len(t.reasons) == 0:
			return nil, fmt.Errorf("compare: line %d: a row without a reason", i+1)
		case len(fields) < 2:
			return nil, fmt.Errorf("compare: line %d: a row needs a step and an aspect", i+1)
		case t.rows[fields[0]] != nil:
			return nil, fmt.Errorf("compare: line %d: %s has two rows", i+1, fields[0])
		default:
			t.rows[fields[0]] = &Row{Step: fields[0], Aspects: fields[1:], Reason: t.reasons[len(t.reasons)-1]}
		}
	}
	return t, nil
}

const tableHead = `# How the answers of the test server differ from those of kube-apiserver. A line "==" gives the reason for the rows below
# it. A row is a step and what differs in it: a status, a header, a field, an output. README.md explains the aspects.
# go test -C e2e ./compare -update rewrites the rows; the reasons are written by hand.
`

// String returns the text of the table: reasons in the order in which they were read, rows in the order of their steps.
func (t *Table) String() string {
	var b strings.Builder
	b.WriteString(tableHead)
	for _, reason := range t.reasons {
		rows := t.because(reason)
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n== %s\n", reason)
		for _, r := range rows {
			fmt.Fprintf(&b, "%s  %s\n", r.Step, strings.Join(r.Aspects, " "))
		}
	}
	return b.String()
}

// because returns the rows of one reason in the order of their steps.
func (t *Table) because(reason string) []*Row {
	var rows []*Row
	for _, step := range slices.Sorted(maps.Keys(t.rows)) {
		if r := t.rows[step]; r.Reason == reason {
			rows = append(rows, r)
		}
	}
	return rows
}

// Check compares the row of a step with what was found.
func (t *Table) Check(step string, found []Difference) error {
	row, aspects := t.rows[step], Aspects(found)
	switch {
	case row == nil && len(aspects) == 0:
		return nil
	case row == nil:
		return errors.New("a difference that the table does not have")
	case len(aspects) == 0:
		return fmt.Errorf("no difference any more; remove the row (%s)", strings.Join(row.Aspects, " "))
	case row.Reason == Unexplained:
		return errors.New("its row needs a reason")
	case !slices.Equal(row.Aspects, aspects):
		return fmt.Errorf("another difference than in the table, which has %s", strings.Join(row.Aspects, " "))
	}
	return nil
}

// Update changes the row of a step to what was found. A new row has the reason Unexplained.
func (t *Table) Update(step string, found []Difference) {
	row, aspects := t.rows[step], Aspects(found)
	switch {
	case len(aspects) == 0:
		delete(t.rows, step)
	case row != nil:
		row.Aspects = aspects
	default:
		t.rows[step] = &Row{Step: step, Aspects: aspects, Reason: Unexplained}
		if !slices.Contains(t.reasons, Unexplained) {
			t.reasons = append(t.reasons, Unexplained)
		}
	}
}

// Strangers returns the steps of rows that no area has.
func (t *Table) Strangers(areas []*Area) []string {
	known := map[string]bool{}
	for _, a := range areas {
		for _, s := range a.Scenarios {
			for _, step := range s.Steps {
				known[step.ID] = true
			}
		}
	}
	var strangers []string
	for _, step := range slices.Sorted(maps.Keys(t.rows)) {
		if !known[step] {
			strangers = append(strangers, step)
		}
	}
	return strangers
}

// Remove removes the row of a step.
func (t *Table) Remove(step string) { delete(t.rows, step) }
