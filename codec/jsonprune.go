package codec

// withoutManagedFields copies the current object without the managedFields of its metadata, for a decoder that cannot
// skip them.
func withoutManagedFields(c cursor) cursor {
	w := pruner{cursor: c}
	w.object(inObject)
	pruned, _ := outlined(w.out) // it was scanned before
	return pruned
}

// pruner writes a copy of an object.
type pruner struct {
	cursor
	out []byte
}

func (w *pruner) object(where int) {
	w.out = append(w.out, '{')
	first := true
	for end := w.enter(); w.k < end; {
		quoted := w.tokens[w.k]
		name := string(w.content())
		if where == inMetadata && name == "managedFields" {
			w.skip()
			continue
		}
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		w.out = append(append(w.out, w.b[quoted.start():quoted.to]...), ':')
		if where == inObject && name == "metadata" && w.kind() == '{' {
			w.object(inMetadata)
		} else {
			w.out = append(w.out, w.raw()...)
		}
	}
	w.k++
	w.out = append(w.out, '}')
}
