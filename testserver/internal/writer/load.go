package writer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// Loading is a state that is being read. It has a store of its own, so the present state does not change before Finish,
// nor if an object is wrong.
type Loading struct {
	present, staged *Writer

	definitions map[schema.GroupResource]*registry.Definition
	records     map[schema.GroupResource]map[api.Key]*store.Record
	uids        map[string]bool
	kept        map[schema.GroupResource][]*store.Record
	newest      uint64
}

// NewLoading returns a state with the present objects that keep selects. An object of Add with the same name replaces
// such an object. The caller holds the lock.
func (wr *Writer) NewLoading(keep func(*registry.Definition, api.Key) bool) *Loading {
	l := &Loading{
		present: wr, staged: New(wr.store.Empty(), wr.options),
		definitions: map[schema.GroupResource]*registry.Definition{},
		records:     map[schema.GroupResource]map[api.Key]*store.Record{},
		uids:        map[string]bool{},
		kept:        map[schema.GroupResource][]*store.Record{},
		newest:      wr.store.Version(),
	}
	l.staged.limits = wr.limits
	for _, c := range wr.store.Served() {
		d := c.Definition()
		if d.FromCRD {
			continue
		}
		l.staged.store.Define(d.Fresh())
		gr := d.GroupResource()
		l.definitions[gr] = l.staged.store.Collection(gr).Definition()
		for r := range c.All("") {
			if keep(d, r.Key) {
				l.kept[gr] = append(l.kept[gr], r)
			}
		}
	}
	return l
}

// Writer returns the writer of the state that is read. Objects without a resource version are created with it, after
// Place.
func (l *Loading) Writer() *Writer { return l.staged }

// Store returns the store of the state that is read.
func (l *Loading) Store() *store.Store { return l.staged.store }

// ErrNotServed is the error of an object of an unknown kind.
var ErrNotServed = errors.New("the server has no resource of this kind and version")

// definition returns the resource of an object: one that is built in, or defined by an object that Add got.
func (l *Loading) definition(tree object.Tree) (*registry.Definition, error) {
	group, version, ok := strings.Cut(object.StringAt(tree, "apiVersion"), "/")
	if !ok {
		group, version = "", group
	}
	for _, d := range l.definitions {
		switch {
		case d.Group != group || d.Kind != object.StringAt(tree, "kind") || d.Virtual():
		case d.Alias.Resource != "":
			return nil, wrongVersion(l.definitions[d.Alias])
		case d.Stores(version):
			return d, nil
		case d.Serves(version):
			return nil, wrongVersion(d)
		}
	}
	return nil, ErrNotServed
}

func wrongVersion(d *registry.Definition) error {
	return fmt.Errorf("an object with a resource version has the version in which it is stored, %s", d.In(d.Stored()).GroupVersion())
}

// Add adds an object with its resource version. The caller does not use tree afterwards.
func (l *Loading) Add(tree object.Tree) error {
	d, err := l.definition(tree)
	if err != nil {
		return err
	}
	if err := CheckShape(tree); err != nil {
		return err
	}
	meta := object.Metadata(tree)
	version, err := strconv.ParseUint(object.StringAt(meta, "resourceVersion"), 10, 63)
	if err != nil || version == 0 {
		return fmt.Errorf("metadata.resourceVersion %q is not a number above 0", object.StringAt(meta, "resourceVersion"))
	}
	key := api.Key{Namespace: object.StringAt(meta, "namespace"), Name: object.StringAt(meta, "name")}
	uid := object.StringAt(meta, "uid")
	gr := d.GroupResource()
	switch {
	case key.Name == "":
		return errors.New("metadata.name is missing")
	case d.Namespaced != (key.Namespace != ""):
		return errors.New("metadata.namespace is missing, or the resource has no namespaces")
	case uid == "":
		return errors.New("metadata.uid is missing, although there is a resource version")
	case l.records[gr][key] != nil:
		return errors.New("it is a second object of this name")
	case l.uids[uid]:
		return fmt.Errorf("another object has the same metadata.uid, %s", uid)
	}
	if tree, err = checked(d, tree); err != nil {
		return err
	}
	r, err := store.NewRecord(d, tree, version)
	if err != nil {
		return err
	}
	if l.records[gr] == nil {
		l.records[gr] = map[api.Key]*store.Record{}
	}
	l.records[gr][key], l.uids[uid] = r, true
	l.newest = max(l.newest, version)
	return l.define(d, r)
}

// checked checks the contents of an object of a built-in type as an update without changes does, and returns it with
// its defaults. Custom resources stay as they are, because those of a real cluster may be older than their schema.
func checked(d *registry.Definition, tree object.Tree) (object.Tree, error) {
	if d.Custom {
		return tree, nil
	}
	to := registry.Target{Served: d.Stored()}
	out, problems, err := DecodeTree(d, to, tree)
	if err == nil && len(problems) > 0 {
		err = errors.New(strings.Join(problems, ", "))
	}
	if err != nil {
		return nil, err
	}
	same := runtime.DeepCopyJSON(out) // Update owns what it gets
	if _, _, err := d.Schema.Update(registry.Operation{Target: to, Direct: true}, out, same); err != nil {
		return nil, err
	}
	if claimer, ok := d.Schema.(registry.Claimer); ok && !claimer.Claim(nil, out) {
		return nil, store.ErrClaimed
	}
	return out, nil
}

// define adds the resource of a CustomResourceDefinition, if the definition is one that is served.
func (l *Loading) define(of *registry.Definition, crd *store.Record) error {
	if !of.IsCRD() {
		return nil
	}
	d := l.staged.parsed(crd).definition
	if d == nil {
		return nil
	}
	if have := l.definitions[d.GroupResource()]; have != nil {
		return fmt.Errorf("%s is already served", d.Resource)
	}
	l.definitions[d.GroupResource()] = d
	return nil
}

// Place puts the objects of Add and the kept ones into the store, at a version after all present ones and after a given
// one. A kept object whose UID an object of Add has gets a new UID.
func (l *Loading) Place(after uint64) error {
	s := l.staged.store
	after = max(after, l.newest) + 1
	all := map[schema.GroupResource][]*store.Record{}
	for gr, kept := range l.kept {
		var others []*store.Record
		for _, r := range kept {
			if l.records[gr][r.Key] != nil {
				continue
			}
			if l.uids[string(r.UID())] {
				tree := r.Tree()
				object.Metadata(tree)["uid"] = l.freeUID()
				var err error
				if r, err = store.NewRecord(l.definitions[gr], tree, after); err != nil {
					return err
				}
			}
			others = append(others, r)
		}
		l.kept[gr], all[gr] = others, slices.Clone(others)
	}
	for gr, records := range l.records {
		for _, r := range records {
			all[gr] = append(all[gr], r)
		}
	}
	for _, d := range l.definitions {
		if d.FromCRD {
			s.Define(d)
		}
	}
	l.staged.Restore(s.Assemble(after, all))
	return nil
}

// Release removes a kept object, so that the list can create one of the same name. Its finalizers do not delay this,
// because they belong to the earlier state. Release does nothing if there is no such object, or if it was released or
// replaced before. It is called after Place.
func (l *Loading) Release(c *store.Collection, key api.Key) {
	gr := c.Definition().GroupResource()
	i := slices.IndexFunc(l.kept[gr], func(r *store.Record) bool { return r.Key == key })
	if i < 0 {
		return
	}
	s := l.staged.store
	s.Lock()
	defer s.Unlock()
	s.Drop(c, l.kept[gr][i])
	l.kept[gr] = slices.Delete(l.kept[gr], i, i+1)
}

// freeUID generates a UID that no object of Add has.
func (l *Loading) freeUID() string {
	for {
		if uid := l.staged.store.NewUID(); !l.uids[uid] {
			return uid
		}
	}
}

// Finish makes the state that was read the present one. The caller holds the lock.
func (l *Loading) Finish() error {
	s := l.present.store
	all := map[schema.GroupResource][]*store.Record{}
	var custom []*registry.Definition
	for _, c := range l.staged.store.Served() {
		d := c.Definition()
		gr := d.GroupResource()
		if d.Alias.Resource != "" {
			continue
		}
		if d.FromCRD {
			custom = append(custom, d)
		}
		present := s.Collection(gr)
		for r := range c.All("") {
			if !d.FromCRD && present.Definition() != d {
				moved, err := store.NewRecord(present.Definition(), r.Tree(), r.Version)
				if err != nil {
					return err
				}
				r = moved
			}
			all[gr] = append(all[gr], r)
		}
	}
	for _, d := range custom {
		s.Define(d)
	}
	l.present.Restore(s.Assemble(max(l.staged.store.Version(), s.Version()+1), all))
	return nil
}
