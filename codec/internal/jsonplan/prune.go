package jsonplan

import "github.com/leatproject/leat/codec/internal/scan"

// withoutManagedFields copies the current object without the managedFields of its metadata, for a decoder that cannot
// skip them.
func withoutManagedFields(c scan.Cursor) scan.Cursor {
	out := AppendWithoutManagedFields(nil, c)
	var o scan.Outline
	_ = o.Scan(out) // it was scanned before
	return o.At(out)
}

// AppendWithoutManagedFields appends the current object without the managedFields of its metadata.
func AppendWithoutManagedFields(dst []byte, c scan.Cursor) []byte {
	w := pruner{Cursor: c, out: dst}
	w.object(inObject)
	return w.out
}

// pruner writes a copy of an object.
type pruner struct {
	scan.Cursor
	out []byte
}

func (w *pruner) object(where int) {
	w.out = append(w.out, '{')
	first := true
	for end := w.Enter(); w.K < end; {
		quoted := w.Tokens[w.K]
		name := string(w.Content())
		if where == inMetadata && name == "managedFields" {
			w.Skip()
			continue
		}
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		w.out = append(append(w.out, w.B[quoted.Start():quoted.To]...), ':')
		if where == inObject && name == "metadata" && w.Kind() == '{' {
			w.object(inMetadata)
		} else {
			w.out = append(w.out, w.Raw()...)
		}
	}
	w.K++
	w.out = append(w.out, '}')
}
