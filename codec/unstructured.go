package codec

import (
	"fmt"
	"strconv"
)

// genericReader decodes what was scanned into maps, slices, strings, int64s, float64s, booleans and nils, as
// sigs.k8s.io/json does: a number without a fraction or exponent that fits is an int64.
type genericReader struct{ jsonReader }

// How far managedFields are away, for genericReader.object.
const (
	nowhere = iota
	inMetadata
	inObject
)

func (r *genericReader) value() (any, error) {
	switch r.kind() {
	case '{':
		return r.object(nowhere)
	case '[':
		return r.array()
	case '"':
		return r.strings.box(r.content()), nil
	case 't':
		r.k++
		return true, nil
	case 'f':
		r.k++
		return false, nil
	case 'n':
		r.k++
		return nil, nil
	default:
		return r.number()
	}
}

// object decodes an object; where says whether to leave managedFields out that stand in it or in its metadata.
func (r *genericReader) object(where int) (map[string]any, error) {
	end := r.enter()
	m := make(map[string]any, r.count(end)/2)
	for r.k < end {
		name := r.text()
		var value any
		var err error
		switch {
		case where == inMetadata && name == "managedFields":
			r.skip()
			continue
		case where == inObject && name == "metadata" && r.kind() == '{':
			value, err = r.object(inMetadata)
		default:
			value, err = r.value()
		}
		if err != nil {
			return nil, within(name, err)
		}
		m[name] = value
	}
	r.k++
	return m, nil
}

func (r *genericReader) array() ([]any, error) {
	end := r.enter()
	a := make([]any, 0, r.count(end))
	for r.k < end {
		value, err := r.value()
		if err != nil {
			return nil, within("["+strconv.Itoa(len(a))+"]", err)
		}
		a = append(a, value)
	}
	r.k++
	return a, nil
}

func (r *genericReader) number() (any, error) {
	b := r.raw()
	if n, ok := smallInt(b); ok {
		return n, nil
	}
	digits := string(b)
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return nil, fmt.Errorf("%.40s does not fit a float64", digits)
	}
	return f, nil
}
