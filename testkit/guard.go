package testkit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Masks are the paths of the mask of each kind of objects, such as "Pod".
type Masks map[string][]string

// objects are the objects of a server, without what differs between runs.
type objects map[object]map[string]any

// object names an object.
type object struct{ kind, namespace, name string }

func (o object) String() string { return fmt.Sprintf("%s %s/%s", o.kind, o.namespace, o.name) }

// GuardMasks finds fields that a program reads although its masks leave them out. It runs test with the masks, and
// again with masks that keep everything, each time on a new server. It fails t if the servers hold different objects at
// the end. It then leaves one field at a time out of the masks that keep everything, and names those that matter.
//
// test makes the masks from its argument, with codec.NewMask or leatcache.Options.Fields, starts the program, and does
// what makes the program read and write. It must not fail because of what the program writes. At the end, the server
// needs an object of each kind that has a mask, because its fields are those that GuardMasks tries. Fields with the
// names uid, resourceVersion and managedFields, Events and Leases are not compared. A read that changes no object is
// not found. If equal masks can give other objects, because of the order of workers or of generated names, GuardMasks
// reports that.
func GuardMasks(t *testing.T, o Options, masks Masks, test func(k *Kit, masks Masks)) {
	t.Helper()
	for _, line := range compareMasks(masks, func(m Masks) (state objects) {
		t.Helper()
		Run(t, o, func(k *Kit) {
			test(k, m)
			k.Idle()
			state = stateOf(k)
		})
		return state
	}) {
		t.Errorf("testkit: %s", line)
	}
}

// compareMasks returns what depends on fields that the masks leave out. run returns the objects at the end of a run.
func compareMasks(masks Masks, run func(Masks) objects) (out []string) {
	states := []objects{run(masks)}
	whole, want := Masks(nil), objects(nil)
	for next := everything(masks, states); !maps.EqualFunc(next, whole, slices.Equal); next = everything(masks, states) {
		for kind, fields := range next {
			if len(fields) == 0 {
				return []string{fmt.Sprintf("the server has no %s at the end; GuardMasks needs one of each kind that has a mask", kind)}
			}
		}
		whole, want = next, run(next) // the status appears when the program has written it
		states = append(states, want)
	}
	if out = differences(states[0], want); len(out) == 0 {
		return nil
	}
	for _, kind := range slices.Sorted(maps.Keys(masks)) {
		// matters reports whether the objects are others if a mask has only its own paths of a field.
		matters := func(field string, rest ...string) bool {
			less := maps.Clone(whole)
			less[kind] = append(slices.DeleteFunc(slices.Clone(whole[kind]), func(f string) bool { return f == field }), rest...)
			less[kind] = append(less[kind], masks[kind]...)
			return len(differences(run(less), want)) > 0
		}
		for _, field := range whole[kind] {
			if slices.Contains(masks[kind], field) || !matters(field) {
				continue
			}
			paths := below(want, kind, field)
			found := slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
				return slices.Contains(masks[kind], path) || !matters(field, slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return p == path })...)
			})
			if len(found) == 0 {
				found = []string{field}
			}
			out = append(out, fmt.Sprintf("the program reads %s, which the mask of %s leaves out", strings.Join(found, ", "), kind))
		}
	}
	return out
}

// everything returns masks that keep each field of the objects.
func everything(masks Masks, states []objects) Masks {
	out := Masks{}
	for kind := range masks {
		fields := map[string]bool{}
		for _, state := range states {
			for o, content := range state {
				for name := range content {
					if o.kind == kind && name != "apiVersion" && name != "kind" {
						fields[name] = true
					}
				}
			}
		}
		out[kind] = slices.Sorted(maps.Keys(fields))
	}
	return out
}

// below returns the paths of the fields below one that is a struct in every type.
func below(state objects, kind, field string) []string {
	paths := map[string]bool{}
	for o, content := range state {
		if in, ok := content[field].(map[string]any); ok && o.kind == kind && slices.Contains([]string{"metadata", "spec", "status"}, field) {
			for name := range in {
				paths[field+"."+name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

// differences returns a line for each object that is not the same in both states.
func differences(masked, want objects) (out []string) {
	all := maps.Clone(want)
	maps.Copy(all, masked)
	for o := range all {
		a, has := masked[o]
		b, wanted := want[o]
		switch left, right := text(a), text(b); {
		case !has:
			out = append(out, fmt.Sprintf("%s exists only without the masks", o))
		case !wanted:
			out = append(out, fmt.Sprintf("%s exists only with the masks", o))
		case left != right:
			out = append(out, fmt.Sprintf("%s depends on the masks: with them it is %s, and without them %s", o, left, right))
		}
	}
	slices.Sort(out)
	return out
}

func text(object map[string]any) string {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(fmt.Sprintf("testkit: encode what was decoded: %v", err))
	}
	return string(raw)
}

// stateOf returns the objects of the server.
func stateOf(k *Kit) objects {
	k.Helper()
	var list struct{ Items []unstructured.Unstructured }
	if err := json.Unmarshal(k.Server.Dump(), &list); err != nil {
		k.Fatalf("testkit: read the state of the server: %v", err)
	}
	state := objects{}
	for _, o := range list.Items {
		if o.GetKind() != "Event" && o.GetKind() != "Lease" {
			strip(o.Object)
			state[object{o.GetKind(), o.GetNamespace(), o.GetName()}] = o.Object
		}
	}
	return state
}

// strip removes fields that differ between runs, at every depth.
func strip(value any) {
	switch in := value.(type) {
	case map[string]any:
		for _, name := range []string{"uid", "resourceVersion", "managedFields"} {
			delete(in, name)
		}
		for _, v := range in {
			strip(v)
		}
	case []any:
		for _, v := range in {
			strip(v)
		}
	}
}
