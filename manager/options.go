package manager

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/leatproject/leat/informer"
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

// serveInformers serves the state of all informers, and of their scopes.
func (m *Manager) serveInformers(w http.ResponseWriter, _ *http.Request) {
	var all []informer.Status
	for _, r := range m.membersWhere(func(*RunnableRegistration) bool { return true }) {
		all = append(all, statuses(r.runnable)...)
	}
	slices.SortStableFunc(all, func(a, b informer.Status) int { return strings.Compare(a.Name, b.Name) })
	writeJSON(w, printed(reflect.ValueOf(all)))
}

// printed returns options or a status as a value for encoding/json. Durations are texts such as "5ms", and errors are
// their texts. Of a function or another interface it says whether it is set; of a listener, where it listens; of a list
// of functions, how many there are.
func printed(v reflect.Value) any {
	if v.Type() == reflect.TypeFor[error]() && v.IsNil() {
		return nil
	}
	switch x := v.Interface().(type) {
	case error:
		return x.Error()
	case time.Time:
		return x
	case time.Duration:
		return x.String()
	case net.Listener:
		return x.Addr().String()
	}
	switch v.Kind() {
	case reflect.Func, reflect.Interface, reflect.Pointer:
		return !v.IsNil()
	case reflect.Float64:
		if f := v.Float(); math.IsInf(f, 0) || math.IsNaN(f) {
			return fmt.Sprint(f) // JSON has no such number
		}
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
		switch v.Type().Elem().Kind() {
		case reflect.Func:
			return v.Len()
		case reflect.Struct:
			all := make([]any, v.Len())
			for i := range all {
				all[i] = printed(v.Index(i))
			}
			return all
		}
	}
	return v.Interface()
}
