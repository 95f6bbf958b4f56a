package informer

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryOptionReachesTheReflector sets every option, and finds none of the reflector's unset.
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
			continue // where to begin is the informer's own business
		}
		require.False(t, reflected.Field(i).IsZero(), name)
		if given := options.FieldByName(name); given.Kind() != reflect.Func {
			require.Equal(t, given.Interface(), reflected.Field(i).Interface(), name)
		}
	}
}

// setSomething gives a field a value that is not zero, and not that of another field of its type.
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
