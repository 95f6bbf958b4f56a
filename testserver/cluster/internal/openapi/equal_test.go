package openapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// equal reports the places where documents differ.
func equal(t *testing.T, want, got any) {
	t.Helper()
	var found []string
	differences(&found, "", want, got)
	for i, text := range found {
		if i == 20 {
			t.Errorf("… %d differences", len(found))
			return
		}
		t.Error(text)
	}
}

func differences(found *[]string, path string, want, got any) {
	w, ok := want.(tree)
	g, too := got.(tree)
	if !ok || !too {
		if text, ok := got.(string); ok {
			text, _, _ = strings.Cut(text, "Possible enum values:")
			got = strings.TrimRight(text, "\n")
		}
		if list, ok := want.([]any); ok {
			want = slices.DeleteFunc(list, func(v any) bool {
				text, _ := v.(string)
				return strings.Contains(text, "cbor")
			})
		}
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(got)
		if string(a) != string(b) {
			*found = append(*found, fmt.Sprintf("%s: want %.300s, got %.300s", path, a, b))
		}
		return
	}
	names := slices.Sorted(maps.Keys(w))
	for name := range g {
		if _, ok := w[name]; !ok {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if strings.Contains(name, "cbor") || name == "enum" || path+" "+name == " info version" {
			continue // CBOR is off in servers, and values of enumerations and a version are missing in what is published
		}
		differences(found, path+" "+name, w[name], g[name])
	}
}
