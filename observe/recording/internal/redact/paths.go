package redact

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/quote"
)

// Path names values that are replaced: the plural name of a resource, and the path from the object to a field.
type Path struct{ Resource, Path string }

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// secretPaths are always redacted. Tools copy the data of a Secret into its annotations.
var secretPaths = []Path{
	{"secrets", "data"}, {"secrets", "stringData"}, {"secrets", "metadata.annotations"},
}

// secretForm is the key of the known form of a Secret in Paths. It is not the name of a resource.
const secretForm = "secrets (known form)"

// secretFields are the plain values that stay in a Secret. All others are replaced, also those that no version of
// Kubernetes has: the server decides what it sends. The labels stay, because they select. The status, the reason and
// the code stay for the Status of an error; a Secret has no such fields.
var secretFields = append([]string{
	"type", "immutable", "metadata.labels.*", "metadata.creationTimestamp", "metadata.deletionTimestamp",
	"metadata.deletionGracePeriodSeconds", "metadata.generateName", "metadata.generation", "metadata.ownerReferences.*",
	"status", "reason", "code",
}, identity...)

// identity are the fields without which a recording cannot be read. They are never redacted.
var identity = []string{
	"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion",
}

// Paths are compiled paths by resource.
type Paths map[string]*field

// Roots are the trees of paths of a resource.
type Roots []*field

// field is a node of the tree of paths.
type field struct {
	below  map[string]*field
	hash   bool // the values below are replaced by their hashes
	remove bool // the value is replaced by null
	keep   bool // the value stays, also below a field whose values are replaced
	mark   bool // a value "true" stays
	open   bool // the tree of the envelope does not replace the value
	begins byte // the byte with which the value must begin, or 0

	hits atomic.Uint64 // values of this field that were replaced
}

// maxQuote is the number of bytes of a path in an error.
const maxQuote = 512

// Compile checks the paths and adds those of Secrets. A resource with a redaction also loses what may repeat
// its values: the annotation that kubectl apply writes, and managedFields, which contain keys of lists.
func Compile(all []Path) (Paths, error) {
	form := &field{below: map[string]*field{"*": {hash: true}}}
	for _, name := range secretFields {
		form.at(strings.Split(name, ".")).keep = true
	}
	out := Paths{secretForm: form}
	for _, r := range append(append([]Path(nil), secretPaths...), all...) {
		if r.Resource == "" || strings.ContainsAny(r.Resource, "/ ") {
			return nil, fmt.Errorf("recording: redaction of %s: the resource is a plural name, such as configmaps or deployments.apps",
				quote.Short(fmt.Sprintf("%q", r.Resource), maxQuote))
		}
		path, err := parsePath(r.Path)
		if err != nil {
			return nil, fmt.Errorf("recording: redaction of %s: %s: %w", r.Resource, quote.Short(fmt.Sprintf("%q", r.Path), maxQuote), err)
		}
		if isIdentity(path) {
			return nil, fmt.Errorf("recording: redaction of %s: %s: this field is never redacted, because a recording needs the kind and the identity of each object",
				r.Resource, quote.Short(fmt.Sprintf("%q", r.Path), maxQuote))
		}
		resource := strings.ToLower(r.Resource)
		root := out[resource]
		if root == nil {
			root = &field{}
			out[resource] = root
			root.at([]string{"metadata", "annotations", lastApplied}).hash = true
			root.at([]string{"metadata", "managedFields"}).remove = true
			root.at([]string{"metadata", "annotations", api.InitialEventsEndAnnotation}).mark = true
			for _, name := range identity {
				root.at(strings.Split(name, ".")).keep = true
			}
		}
		root.at(path).hash = true
	}
	return out, nil
}

// isIdentity reports whether a path leads to a field that is never redacted, or below one.
func isIdentity(path []string) bool {
	return slices.ContainsFunc(identity, func(text string) bool {
		names := strings.Split(text, ".")
		return len(path) >= len(names) && slices.Equal(path[:len(names)], names)
	})
}

// Hits returns how many values each of the redactions has replaced. They were compiled.
func (r Paths) Hits(all []Path) (counts []uint64) {
	for _, one := range all {
		path, _ := parsePath(one.Path) // Compile has checked it
		counts = append(counts, r[strings.ToLower(one.Resource)].at(path).hits.Load())
	}
	return counts
}

// Of returns the paths of a resource; empty if nothing is redacted. A server may accept the name of a resource in
// another case.
func (r Paths) Of(resource string) (roots Roots) {
	resource = strings.ToLower(resource)
	names := []string{resource, "*"}
	if plural, _, grouped := strings.Cut(resource, "."); grouped {
		names = append(names, plural)
	}
	for _, name := range names {
		if f := r[name]; f != nil {
			roots = append(roots, f)
		}
		if name == "secrets" {
			roots = append(roots, r[secretForm])
		}
	}
	return roots
}

// at returns the field at a path, and makes it if it does not exist.
func (f *field) at(path []string) *field {
	for _, name := range path {
		if f.below == nil {
			f.below = map[string]*field{}
		}
		if f.below[name] == nil {
			f.below[name] = &field{}
		}
		f = f.below[name]
	}
	return f
}

// redacts reports whether a field below f is redacted.
func (f *field) redacts() bool {
	for _, below := range f.below {
		if below.hash || below.remove || below.redacts() {
			return true
		}
	}
	return false
}

// parsePath splits a path into names.
func parsePath(text string) (names []string, err error) {
	rest := text
	for rest != "" {
		var name string
		switch {
		case strings.HasPrefix(rest, "[*]"):
			rest = rest[len("[*]"):]
		case strings.HasPrefix(rest, "['"):
			var ok bool
			if name, rest, ok = strings.Cut(rest[2:], "']"); !ok {
				return nil, fmt.Errorf("a bracket has no end")
			}
			names = append(names, name)
		default:
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			name, rest = rest[:end], rest[end:]
			if name == "" {
				return nil, fmt.Errorf("write it as spec.containers.env.value")
			}
			names = append(names, name)
		}
		if strings.HasPrefix(rest, ".") {
			if rest = rest[1:]; rest == "" {
				return nil, fmt.Errorf("it ends with a dot")
			}
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("it is empty")
	}
	return names, nil
}
