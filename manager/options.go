package manager

import (
	"fmt"
	"net"
	"net/http"
	"reflect"
	"time"
)

// serveOptions serves the effective options of the manager and of its controllers.
func (m *Manager) serveOptions(w http.ResponseWriter, _ *http.Request) {
	controllers := map[string]any{}
	for _, d := range m.debuggable() {
		if o, ok := d.(OptionsReporter); ok {
			controllers[d.Name()] = printed(reflect.ValueOf(o.Options()))
		}
	}
	writeJSON(w, map[string]any{"Manager": printed(reflect.ValueOf(m.o)), "Controllers": controllers})
}

// printed returns options as a value for encoding/json. Durations are texts such as "5ms". Of a function or an
// interface it says whether it is set; of a listener, where it listens; of a list of functions, how many there are.
func printed(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Duration:
		return x.String()
	case net.Listener:
		return x.Addr().String()
	}
	switch v.Kind() {
	case reflect.Func, reflect.Interface, reflect.Pointer:
		return !v.IsNil()
	case reflect.Struct:
		fields := map[string]any{}
		for i := range v.NumField() {
			fields[v.Type().Field(i).Name] = printed(v.Field(i))
		}
		return fields
	case reflect.Map:
		entries := map[string]any{}
		for key, value := range v.Seq2() {
			entries[fmt.Sprint(key)] = printed(value)
		}
		return entries
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Func {
			return v.Len()
		}
	}
	return v.Interface()
}
