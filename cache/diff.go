package cache

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
	"time"
)

const (
	maxDiffLines = 20
	maxDiffValue = 80 // longest value that a diff shows, in bytes
)

// diffOf returns one line for each place where two values differ. It returns "" if they are equal. Unlike
// reflect.DeepEqual, it names the places, and it treats a function as equal to itself.
func diffOf(before, after reflect.Value) string {
	d := differ{seen: map[visit]struct{}{}}
	d.compare("", before, after)
	if d.more > 0 {
		d.lines = append(d.lines, fmt.Sprintf("and %d more", d.more))
	}
	return strings.Join(d.lines, "\n")
}

type differ struct {
	lines []string
	more  int
	seen  map[visit]struct{} // pointers that are being compared; they stop the recursion in a value that contains itself
}

type visit struct {
	before, after uintptr
	kind          reflect.Type
}

func (d *differ) report(path string, before, after any) {
	if len(d.lines) == maxDiffLines {
		d.more++
		return
	}
	d.lines = append(d.lines, fmt.Sprintf("%s: %v → %v", path, before, after))
}

func (d *differ) compare(path string, before, after reflect.Value) {
	switch before.Kind() {
	case reflect.Pointer:
		d.pointers(path, before, after)
	case reflect.Interface:
		d.interfaces(path, before, after)
	case reflect.Struct:
		d.structs(path, before, after)
	case reflect.Slice:
		d.slices(path, before, after)
	case reflect.Array:
		d.elements(path, before, after, before.Len())
	case reflect.Map:
		d.maps(path, before, after)
	case reflect.Func:
		if before.Pointer() != after.Pointer() {
			d.report(path, "a function", "another")
		}
	default:
		if !equal(before, after) {
			d.report(path, show(before), show(after))
		}
	}
}

func (d *differ) pointers(path string, before, after reflect.Value) {
	if before.Pointer() == after.Pointer() {
		return
	}
	if before.IsNil() || after.IsNil() {
		d.report(path, show(before), show(after))
		return
	}
	v := visit{before.Pointer(), after.Pointer(), before.Type()}
	if _, again := d.seen[v]; again {
		return
	}
	d.seen[v] = struct{}{}
	d.compare(path, before.Elem(), after.Elem())
}

func (d *differ) interfaces(path string, before, after reflect.Value) {
	switch {
	case before.IsNil() && after.IsNil():
	case before.IsNil() || after.IsNil() || before.Elem().Type() != after.Elem().Type():
		d.report(path, show(before), show(after))
	default:
		d.compare(path, before.Elem(), after.Elem())
	}
}

func (d *differ) structs(path string, before, after reflect.Value) {
	if before.Type() == reflect.TypeFor[time.Time]() {
		if !before.Equal(after) {
			d.report(path, show(before), show(after))
		}
		return
	}
	for i := range before.NumField() {
		d.compare(path+"."+before.Type().Field(i).Name, before.Field(i), after.Field(i))
	}
}

func (d *differ) slices(path string, before, after reflect.Value) {
	if before.IsNil() != after.IsNil() {
		d.report(path, show(before), show(after))
		return
	}
	if before.Type().Elem().Kind() == reflect.Uint8 {
		if !slices.Equal(before.Bytes(), after.Bytes()) {
			d.report(path, show(before), show(after)+" that differ")
		}
		return
	}
	common := min(before.Len(), after.Len())
	d.elements(path, before, after, common)
	for i := common; i < before.Len(); i++ {
		d.report(fmt.Sprintf("%s[%d]", path, i), show(before.Index(i)), "nothing")
	}
	for i := common; i < after.Len(); i++ {
		d.report(fmt.Sprintf("%s[%d]", path, i), "nothing", show(after.Index(i)))
	}
}

func (d *differ) elements(path string, before, after reflect.Value, n int) {
	for i := range n {
		d.compare(fmt.Sprintf("%s[%d]", path, i), before.Index(i), after.Index(i))
	}
}

func (d *differ) maps(path string, before, after reflect.Value) {
	if before.IsNil() != after.IsNil() {
		d.report(path, show(before), show(after))
		return
	}
	if before.Pointer() == after.Pointer() {
		return
	}
	for _, key := range sortedKeys(before, after) {
		was, is := before.MapIndex(key), after.MapIndex(key)
		at := fmt.Sprintf("%s[%s]", path, show(key))
		switch {
		case !is.IsValid():
			d.report(at, show(was), "nothing")
		case !was.IsValid():
			d.report(at, "nothing", show(is))
		default:
			d.compare(at, was, is)
		}
	}
}

// sortedKeys returns the keys of both maps, each once, in the order in which the diff shows them.
func sortedKeys(before, after reflect.Value) []reflect.Value {
	keys := before.MapKeys()
	for _, key := range after.MapKeys() {
		if !before.MapIndex(key).IsValid() {
			keys = append(keys, key)
		}
	}
	sort.Slice(keys, func(i, j int) bool { return show(keys[i]) < show(keys[j]) })
	return keys
}

// equal compares two values that contain no references. It treats two NaNs as equal.
func equal(before, after reflect.Value) bool {
	return before.Equal(after) || before.CanFloat() && before.Float() != before.Float() && after.Float() != after.Float()
}

// show prints a value on one line. For a composite value it prints only the type and the size: the parts may be many,
// and the bytes of a secret may be among them.
func show(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return "nil"
		}
		return show(v.Elem())
	case reflect.Slice:
		switch {
		case v.IsNil():
			return "nil"
		case v.Type().Elem().Kind() == reflect.Uint8:
			return fmt.Sprintf("%d bytes", v.Len())
		}
		return fmt.Sprintf("%s of %d", v.Type(), v.Len())
	case reflect.Map:
		if v.IsNil() {
			return "nil"
		}
		return fmt.Sprintf("%s of %d", v.Type(), v.Len())
	case reflect.String:
		return fmt.Sprintf("%q", shorten(v.String()))
	case reflect.Array, reflect.Func, reflect.Chan:
		return v.Type().String()
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() && v.CanInterface() {
			return v.Interface().(time.Time).String()
		}
		return v.Type().String()
	default:
		return fmt.Sprint(v)
	}
}

func shorten(s string) string {
	if len(s) > maxDiffValue {
		return strings.ToValidUTF8(s[:maxDiffValue], "") + "…"
	}
	return s
}
