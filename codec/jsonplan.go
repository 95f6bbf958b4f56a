package codec

import (
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"sync/atomic"

	jsonx "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// jsonOptions make the decoder read what sigs.k8s.io/json reads, with the same result: decision 0002 has the reasons,
// and the one known difference.
var jsonOptions = jsonx.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	jsonx.MatchCaseInsensitiveNames(false),
	jsontext.AllowDuplicateNames(true),
	jsontext.AllowInvalidUTF8(true),
)

// fastOptions are jsonOptions without the first of the two passes that encoding/json makes over everything: the
// scanner has made it already. They also refuse what encoding/json tolerates in the tags of a struct.
var fastOptions = jsonx.JoinOptions(jsonOptions, jsonv1.ReportErrorsWithLegacySemantics(false))

// The types that the decoder has to be told of, each only where T can hold one: a hook costs a look-up at every value.
var (
	anyType    = reflect.TypeFor[any]()
	numberType = reflect.TypeFor[stdjson.Number]()
)

// decodeAny decodes what stands in an interface as unstructured objects have it, integers as int64.
func decodeAny(d *jsontext.Decoder, to *any) error {
	b, err := d.ReadValue()
	if err != nil {
		return err
	}
	value := genericDecoder{b: b, names: &names{}}
	*to, err = value.value()
	return err
}

// decodeNumber decodes a json.Number, which may stand in quotes.
func decodeNumber(d *jsontext.Decoder, to *stdjson.Number) error {
	b, err := d.ReadValue()
	if err != nil || string(b) == "null" {
		return err
	}
	if quoted := textOf(b); quoted != nil {
		b = quoted
	}
	if !isNumber(b) {
		return fmt.Errorf("%q is not a number", b)
	}
	*to = stdjson.Number(b)
	return nil
}

// jsonPlan decodes JSON into the structs of one type.
type jsonPlan struct {
	elem           reflect.Type
	fast, tolerant jsonx.Options
	needsTolerance atomic.Bool // the struct has tags that only encoding/json puts up with
}

func compileJSON(elem reflect.Type) *jsonPlan {
	p := &jsonPlan{elem: elem, fast: fastOptions, tolerant: jsonOptions}
	var hooks []*jsonx.Unmarshalers
	if reaches(elem, anyType, map[reflect.Type]bool{}) {
		hooks = append(hooks, jsonx.UnmarshalFromFunc(decodeAny))
	}
	if reaches(elem, numberType, map[reflect.Type]bool{}) {
		hooks = append(hooks, jsonx.UnmarshalFromFunc(decodeNumber))
	}
	if len(hooks) > 0 {
		with := jsonx.WithUnmarshalers(jsonx.JoinUnmarshalers(hooks...))
		p.fast, p.tolerant = jsonx.JoinOptions(p.fast, with), jsonx.JoinOptions(p.tolerant, with)
	}
	return p
}

// decode returns a pointer to a new struct. What the fast way refuses gets a second chance, so that it is always the
// semantics of encoding/json that decide; a type that needs it once takes the slow way from then on.
func (p *jsonPlan) decode(b []byte) (any, error) {
	if !p.needsTolerance.Load() {
		obj := reflect.New(p.elem).Interface()
		if jsonx.Unmarshal(b, obj, p.fast) == nil {
			return obj, nil
		}
	}
	obj := reflect.New(p.elem).Interface()
	err := jsonx.Unmarshal(b, obj, p.tolerant)
	if err == nil {
		p.needsTolerance.Store(true)
	}
	return obj, err
}

// reaches tells whether a value of type t can hold one of type wanted. seen has the structs that were looked into.
func reaches(t, wanted reflect.Type, seen map[reflect.Type]bool) bool {
	if t == wanted {
		return true
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return reaches(t.Elem(), wanted, seen)
	case reflect.Struct:
		if seen[t] {
			return false
		}
		seen[t] = true
		for i := range t.NumField() {
			if reaches(t.Field(i).Type, wanted, seen) {
				return true
			}
		}
	}
	return false
}
