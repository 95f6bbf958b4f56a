package informer

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/reflector"
)

// TestEveryOptionReachesTheReflector sets every option, and checks that every option of the reflector is set.
func TestEveryOptionReachesTheReflector(t *testing.T) {
	var o Options[*thing]
	options := reflect.ValueOf(&o).Elem()
	for _, f := range reflect.VisibleFields(options.Type()) {
		if !f.Anonymous {
			setSomething(options.FieldByIndex(f.Index))
		}
	}
	reflected := reflect.ValueOf(o.reflector())
	for _, f := range reflect.VisibleFields(reflected.Type()) {
		switch {
		case f.Anonymous, f.Name == "OnWait": // New sets OnWait
			continue
		case f.Name == "NotOlderThan": // package scopes sets it
			continue
		}
		field := reflected.FieldByIndex(f.Index)
		require.False(t, field.IsZero(), f.Name)
		if given := options.FieldByName(f.Name); given.Kind() != reflect.Func {
			require.Equal(t, given.Interface(), field.Interface(), f.Name)
		}
	}
}

// setSomething sets a field to a value that is not zero and differs from those of other fields of its type.
func setSomething(field reflect.Value) {
	switch field.Kind() {
	case reflect.String:
		field.SetString(field.String() + "x")
	case reflect.Bool:
		field.SetBool(true)
	case reflect.Int, reflect.Int64:
		field.SetInt(int64(field.UnsafeAddr() % 4096))
	case reflect.Func:
		field.Set(reflect.MakeFunc(field.Type(), nil))
	case reflect.Struct:
		for i := range field.NumField() {
			setSomething(field.Field(i))
		}
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
	case reflect.Interface:
		if gate := reflect.ValueOf(reflector.MaxLists(1)); gate.Type().Implements(field.Type()) {
			field.Set(gate)
		}
	}
}
