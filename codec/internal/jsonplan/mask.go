package jsonplan

import (
	"github.com/leatproject/leat/codec/internal/plan"
	"github.com/leatproject/leat/codec/internal/scan"
)

// AppendMasked appends what a mask keeps of the current value.
func AppendMasked(dst []byte, c scan.Cursor, m *plan.Mask) []byte {
	w := pruner{Cursor: c, out: dst}
	w.masked(m)
	return w.out
}

// masked writes the current value. Lists are transparent. A value that cannot have members is kept, so that a decoder
// reports one of the wrong type.
func (w *pruner) masked(m *plan.Mask) {
	kind := w.Kind()
	if m == nil || kind != '{' && kind != '[' {
		w.out = append(w.out, w.Raw()...)
		return
	}
	w.out = append(w.out, kind)
	first := true
	for end := w.Enter(); w.K < end; {
		below := m
		var name []byte
		if kind == '{' {
			quoted := w.Tokens[w.K]
			var kept bool
			if below, kept = m.Child(w.Content()); !kept {
				w.Skip()
				continue
			}
			name = w.B[quoted.Start():quoted.To]
		}
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		if kind == '{' {
			w.out = append(append(w.out, name...), ':')
		}
		w.masked(below)
	}
	w.K++
	w.out = append(w.out, kind+2) // the brackets of JSON differ by two in ASCII
}
