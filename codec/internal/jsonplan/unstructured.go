package jsonplan

import (
	"reflect"
	"strconv"

	"github.com/leatproject/leat/codec/internal/plan"
)

// genericReader decodes scanned JSON into maps, slices, strings, int64s, float64s, booleans and nils, as
// sigs.k8s.io/json does. A number without a fraction or exponent is an int64 if it fits.
type genericReader struct{ Reader }

// These constants tell genericReader.object where managedFields may be.
const (
	nowhere = iota
	inMetadata
	inObject
)

func (r *genericReader) value() (any, error) {
	switch r.Kind() {
	case '{':
		return r.object(nowhere)
	case '[':
		return r.array()
	case '"':
		return r.strings.Box(r.Content()), nil
	case 't':
		r.K++
		return true, nil
	case 'f':
		r.K++
		return false, nil
	case 'n':
		r.K++
		return nil, nil
	default:
		return r.number()
	}
}

// object decodes an object. where tells whether to skip managedFields in the object or in its metadata.
func (r *genericReader) object(where int) (map[string]any, error) {
	end := r.Enter()
	m := make(map[string]any, r.Count(end)/2)
	for r.K < end {
		if err := r.breaks.Pause(r.K); err != nil {
			return nil, err
		}
		name := r.text()
		var value any
		var err error
		switch {
		case where == inMetadata && name == "managedFields":
			r.Skip()
			continue
		case where == inObject && name == "metadata" && r.Kind() == '{':
			value, err = r.object(inMetadata)
		default:
			value, err = r.value()
		}
		if err != nil {
			return nil, plan.Within(plan.AnyKey, err)
		}
		m[name] = value
	}
	r.K++
	return m, nil
}

func (r *genericReader) array() ([]any, error) {
	end := r.Enter()
	a := make([]any, 0, r.Count(end))
	for r.K < end {
		if err := r.breaks.Pause(r.K); err != nil {
			return nil, err
		}
		value, err := r.value()
		if err != nil {
			return nil, plan.Within("["+strconv.Itoa(len(a))+"]", err)
		}
		a = append(a, value)
	}
	r.K++
	return a, nil
}

func (r *genericReader) number() (any, error) {
	at := r.K
	b := r.Raw()
	if n, ok := smallInt(b); ok {
		return n, nil
	}
	digits := string(b)
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		r.K = at
		return nil, r.mismatch(reflect.TypeFor[float64]())
	}
	return f, nil
}
