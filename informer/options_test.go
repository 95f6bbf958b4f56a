package informer

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryOptionReachesTheReflector sets every option, and checks that every option of the reflector is set.
func TestEveryOptionReachesTheReflector(t *testing.T) {
	var o Options[*thing]
	options := reflect.ValueOf(&o).Elem()
	for i := range options.NumField() {
		setSomething(options.Field(i))
	}
	reflected := reflect.ValueOf(o.reflector())
	for i := range reflected.NumField() {
		name := reflected.Type().Field(i).Name
		if name == "ResourceVersion" {
			continue // the informer itself decides where to begin
		}
		require.False(t, reflected.Field(i).IsZero(), name)
		if given := options.FieldByName(name); given.Kind() != reflect.Func {
			require.Equal(t, given.Interface(), reflected.Field(i).Interface(), name)
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
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
	}
}
