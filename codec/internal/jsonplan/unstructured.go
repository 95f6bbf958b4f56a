package jsonplan

import (
	"reflect"
	"strconv"

	"github.com/leatproject/leat/codec/internal/plan"
)

// genericReader decodes scanned JSON into maps, slices, strings, int64s, float64s, booleans and nils, as
// sigs.k8s.io/json does. A number without a fraction or exponent is an int64 if it fits.
type genericReader struct {
	*Reader
	drop bool // metadata.managedFields
}

// The maps of an object differ in what their values share.
const (
	inside = iota
	inMetadata
	inObject
)

var (
	genericParts    = plan.NewPartKind(false) // parts of status, and parts of parts
	genericPartsNow = plan.NewPartKind(true)  // as shareStructs says
)

func (r *genericReader) value() (any, error) {
	switch r.Kind() {
	case '{':
		return r.object(inside)
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

// shared is value for a map or a slice that other objects may have too.
func (r *genericReader) shared(k *plan.PartKind) (any, error) {
	kind := r.Kind()
	if r.parts == nil || kind != '{' && kind != '[' {
		return r.value()
	}
	t, at, n, keep := r.part(k)
	switch {
	case at != nil && kind == '{':
		r.Skip()
		return genericMap(at), nil
	case at != nil:
		r.Skip()
		return genericSlice(at, n), nil
	}
	r.depth++
	value, err := r.value()
	r.depth--
	if err == nil && keep {
		if at, n := genericPart(value); n > 0 {
			r.parts.Keep(t, at, n)
		}
	}
	return value, err
}

// object decodes the map of an object, or another map in it.
func (r *genericReader) object(where int) (map[string]any, error) {
	end := r.Enter()
	members := r.Count(end) / 2
	if where == inMetadata {
		members-- // managedFields; a map of nine takes twice the memory of one of eight
	}
	m := make(map[string]any, max(0, members))
	for r.K < end {
		if err := r.breaks.Pause(r.K); err != nil {
			return nil, err
		}
		name := r.text()
		var value any
		var err error
		switch {
		case where == inMetadata && name == "managedFields" && r.drop:
			r.Skip()
			continue
		case where == inObject && name == "metadata" && r.Kind() == '{':
			value, err = r.object(inMetadata)
		case where == inMetadata && name != "managedFields", where == inObject && name != "status":
			value, err = r.shared(&genericPartsNow)
		default:
			value, err = r.shared(&genericParts)
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
		value, err := r.shared(&genericParts)
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
