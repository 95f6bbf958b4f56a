package compare

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Difference is how the answer of the test server differs from the answer of kube-apiserver.
type Difference struct {
	Aspect string // what a row of the table says: "404-not-200", "Warning", ".spec.containers", "stdout"
	Detail string // a line for a report
}

// Compare returns the differences between the answer of the test server and that of kube-apiserver, both after masking.
// If the status differs, nothing else is compared, because an error and an object have nothing in common.
func Compare(have, want *Answer) []Difference {
	if have.Failure != want.Failure {
		return []Difference{{"connection", fmt.Sprintf("connection: have %q, want %q", have.Failure, want.Failure)}}
	}
	if have.Status != want.Status {
		aspect := fmt.Sprintf("%d-not-%d", have.Status, want.Status)
		if have.Command {
			aspect = fmt.Sprintf("exit-%d-not-%d", have.Status, want.Status)
		}
		return []Difference{{aspect, fmt.Sprintf("%s\n  have %s\n  want %s", aspect, have.brief(), want.brief())}}
	}
	var found []Difference
	for _, name := range append(slices.Clone(comparedHeaders), indented) {
		if h, w := have.Header[name], want.Header[name]; h != w {
			found = append(found, Difference{name, fmt.Sprintf("%s: have %q, want %q", name, h, w)})
		}
	}
	if (have.Value == nil) != (want.Value == nil) {
		return append(found, Difference{"form", fmt.Sprintf("form\n  have %s\n  want %s", have.brief(), want.brief())})
	}
	d := differ{}
	d.compare("", have.Value, want.Value)
	found = append(found, d.found...)
	output := "body"
	if have.Command {
		output = "stdout"
	}
	found = append(found, compareText(output, have.Text, want.Text)...)
	return append(found, compareText("stderr", have.Errors, want.Errors)...)
}

// Aspects returns the aspects of some differences, each once, in order.
func Aspects(found []Difference) []string {
	set := map[string]bool{}
	for _, d := range found {
		set[d.Aspect] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// brief returns the beginning of an answer.
func (a *Answer) brief() string {
	text := a.Text + a.Errors
	if a.Value != nil {
		text = show(a.Value)
	}
	return fmt.Sprintf("%d %s", a.Status, shorten(text, 600))
}

func show(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func shorten(text string, limit int) string {
	if len(text) > limit {
		return fmt.Sprintf("%s… (%d bytes)", text[:limit], len(text))
	}
	return text
}

// differ collects the differences between two values.
type differ struct{ found []Difference }

func (d *differ) compare(path string, have, want any) {
	switch w := want.(type) {
	case map[string]any:
		if h, ok := have.(map[string]any); ok {
			d.compareObjects(path, h, w)
			return
		}
	case []any:
		if h, ok := have.([]any); ok {
			d.compareLists(path, h, w)
			return
		}
	}
	if !reflect.DeepEqual(have, want) {
		d.add(path, "have %s, want %s", shorten(show(have), 300), shorten(show(want), 300))
	}
}

func (d *differ) compareObjects(path string, have, want map[string]any) {
	all := maps.Clone(have)
	maps.Copy(all, want)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		at := path + "." + key
		if strings.ContainsAny(key, ".[] ") {
			at = path + "[" + key + "]"
		}
		h, inHave := have[key]
		w, inWant := want[key]
		switch {
		case !inHave:
			d.add(at, "missing, want %s", shorten(show(w), 300))
		case !inWant:
			d.add(at, "have %s, want nothing", shorten(show(h), 300))
		default:
			d.compare(at, h, w)
		}
	}
}

// compareLists compares items by their names, if they have some, and otherwise by their places.
func (d *differ) compareLists(path string, have, want []any) {
	if h, w := namesOf(have), namesOf(want); h != nil && w != nil {
		d.compareNamed(path, have, want, h, w)
		return
	}
	if areTexts(have) && areTexts(want) {
		if !reflect.DeepEqual(have, want) {
			d.add(path, "have %s, want %s", shorten(show(have), 300), shorten(show(want), 300))
		}
		return
	}
	for i := range min(len(have), len(want)) {
		d.compare(fmt.Sprintf("%s[%d]", path, i), have[i], want[i])
	}
	for i := len(have); i < len(want); i++ {
		d.add(fmt.Sprintf("%s[%d]", path, i), "missing, want %s", shorten(show(want[i]), 300))
	}
	for i := len(want); i < len(have); i++ {
		d.add(fmt.Sprintf("%s[%d]", path, i), "have %s, want nothing", shorten(show(have[i]), 300))
	}
}

func areTexts(list []any) bool {
	return !slices.ContainsFunc(list, func(item any) bool {
		_, ok := item.(string)
		return !ok
	})
}

// compareNamed compares items of the same name, and their order.
func (d *differ) compareNamed(path string, have, want []any, haveNames, wantNames []string) {
	for i, name := range wantNames {
		if at := slices.Index(haveNames, name); at >= 0 {
			d.compare(itemPath(path, name), have[at], want[i])
		} else {
			d.add(itemPath(path, name), "missing, want %s", shorten(show(want[i]), 300))
		}
	}
	for i, name := range haveNames {
		if !slices.Contains(wantNames, name) {
			d.add(itemPath(path, name), "have %s, want nothing", shorten(show(have[i]), 300))
		}
	}
	foreign := func(others []string) func(string) bool {
		return func(name string) bool { return !slices.Contains(others, name) }
	}
	h, w := slices.DeleteFunc(haveNames, foreign(wantNames)), slices.DeleteFunc(wantNames, foreign(haveNames))
	if !slices.Equal(h, w) {
		d.found = append(d.found, Difference{"order", fmt.Sprintf("%s: the order is %q, want %q", path, h, w)})
	}
}

func itemPath(path, name string) string { return fmt.Sprintf("%s[=%s]", path, name) }

// namesOf returns the names of the objects in a list, or nil if they have no names or not different ones.
func namesOf(list []any) []string {
	names := []string{}
	for _, item := range list {
		fields, _ := item.(map[string]any)
		meta, _ := fields["metadata"].(map[string]any)
		for _, name := range []any{fields["name"], meta["name"], fields["resource"], fields["subresource"]} {
			if name, ok := name.(string); ok && !slices.Contains(names, name) {
				names = append(names, name)
				break
			}
		}
	}
	if len(names) < len(list) {
		return nil
	}
	return names
}

func (d *differ) add(path, format string, args ...any) {
	d.found = append(d.found, Difference{aspectOf(path), path + ": " + fmt.Sprintf(format, args...)})
}

// aspectOf shortens the path of a field to its first two names. The items of a list and the objects of a watch count
// as if they were the answer.
func aspectOf(path string) string {
	var names []string
	rest := path
	for rest != "" && len(names) < 2 {
		var name string
		switch {
		case rest[0] == '[':
			end := strings.IndexByte(rest, ']')
			name, rest = rest[:end+1], rest[end+1:]
			if strings.HasPrefix(name, "[=") || strings.Trim(name, "[]0123456789") == "" {
				continue
			}
		default:
			end := strings.IndexAny(rest[1:], ".[") + 1
			if end == 0 {
				end = len(rest)
			}
			name, rest = rest[:end], rest[end:]
		}
		if len(names) == 0 && rest != "" && (name == ".items" || name == ".object") {
			continue
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "items"
	}
	return strings.Join(names, "")
}

// compareText compares two texts by line. The detail has the lines of only one of them.
func compareText(aspect, have, want string) []Difference {
	if have == want {
		return nil
	}
	h, w := strings.Split(have, "\n"), strings.Split(want, "\n")
	var lines []string
	for _, l := range h {
		if !slices.Contains(w, l) {
			lines = append(lines, "  have "+l)
		}
	}
	for _, l := range w {
		if !slices.Contains(h, l) {
			lines = append(lines, "  want "+l)
		}
	}
	if len(lines) == 0 {
		lines = []string{"  the same lines in another order or number"}
	}
	return []Difference{{aspect, aspect + "\n" + strings.Join(lines, "\n")}}
}

// reportLimit is the number of lines of a report.
const reportLimit = 40

// Report returns the details of some differences, with a limit.
func Report(found []Difference) string {
	var details []string
	for _, d := range found {
		details = append(details, d.Detail)
	}
	lines := strings.Split(strings.Join(details, "\n"), "\n")
	if len(lines) > reportLimit {
		lines = append(lines[:reportLimit], fmt.Sprintf("… and %d lines more", len(lines)-reportLimit))
	}
	return "  " + strings.Join(lines, "\n  ")
}
