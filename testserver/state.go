package testserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/disturb"
	"github.com/leatproject/leat/testserver/internal/extension"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/wire"
	"github.com/leatproject/leat/testserver/internal/writer"
)

// Dump returns the whole state as a List in JSON, with UIDs and resource versions. Load reads it. The list contains
// Secrets as they are, but neither the logs of containers nor the history.
func (s *Server) Dump() []byte {
	s.store.Lock()
	version := s.store.Version()
	definitions := s.store.Served()
	state := make([]func() object.Tree, 0, len(definitions))
	for _, c := range definitions {
		d := c.Definition()
		if d.Alias.Resource != "" {
			continue // its objects are those of another resource
		}
		for r := range c.All("") {
			state = append(state, func() object.Tree {
				tree := r.Tree() // a custom resource has the version in which it was stored
				tree["kind"] = d.Kind
				object.SetDefault(tree, "apiVersion", d.In(d.Stored()).GroupVersion().String())
				return tree
			})
		}
	}
	s.store.Unlock()
	items := []object.Tree{}
	for _, item := range state { // without the lock, because a state can be large
		items = append(items, item())
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(object.Tree{
		"kind": "List", "apiVersion": "v1", "metadata": object.Tree{"resourceVersion": strconv.FormatUint(version, 10)}, "items": items,
	})
	if err != nil {
		panic(fmt.Sprintf("testserver: encode objects that were decoded from JSON: %v", err))
	}
	return out.Bytes()
}

// Load replaces the state by a List in JSON or YAML, such as Dump returns, and resets every watch. Objects with a
// resource version are restored as they are; the metadata of built-in kinds must be valid. Those without one are
// created, so a person can write the list. The server has a newer version afterwards, so that clients of this and of
// the dumped server get 410. What every new server has, such as the four namespaces, stays if the list lacks it;
// otherwise the object of the list replaces it. If an object is wrong, the error names it, and nothing changes.
func (s *Server) Load(list []byte) error {
	items, version, err := parseList(list)
	if err == nil {
		err = s.loadItems(items, version)
	}
	if err != nil {
		return fmt.Errorf("testserver: load: %w", err)
	}
	s.watches.end(func(disturb.Target) (ending, bool) { return ending{abrupt: true}, true })
	return nil
}

// loadItems makes items the present state, at a version after a given one.
func (s *Server) loadItems(items []object.Tree, version uint64) error {
	s.store.Lock()
	loading := s.writer.NewLoading(func(d *registry.Definition, key api.Key) bool {
		return d.IsNamespace() && slices.Contains(firstNamespaces, key.Name) ||
			s.extension.Keep != nil && s.extension.Keep(d.GroupResource(), key)
	})
	s.store.Unlock()
	created, err := addItems(loading, items)
	if err != nil {
		return err
	}
	if err := loading.Place(version); err != nil {
		return err
	}
	staged := &Server{options: s.options, store: loading.Store(), writer: loading.Writer()} // serves nothing
	for _, i := range created {
		name := nameOf(items[i]) // createItem changes the item
		if err := staged.createItem(loading, items[i]); err != nil {
			return fmt.Errorf("items[%d], %s: %w", i, name, err)
		}
	}
	s.store.Lock()
	defer s.store.Unlock()
	return loading.Finish()
}

// parseList returns the items of a list and the version of the list.
func parseList(list []byte) ([]object.Tree, uint64, error) {
	tree, err := wire.DecodeText(list)
	if err != nil {
		return nil, 0, err
	}
	if kind := object.StringAt(tree, "kind"); kind != "List" {
		return nil, 0, fmt.Errorf("the state is a List, and not a %q", kind)
	}
	version := uint64(0)
	if text := object.TextAt(tree, "metadata", "resourceVersion"); text != "" {
		if version, err = strconv.ParseUint(text, 10, 63); err != nil {
			return nil, 0, fmt.Errorf("metadata.resourceVersion %q is not a number", text)
		}
	}
	all, ok := tree["items"].([]any)
	if !ok && tree["items"] != nil {
		return nil, 0, errors.New("items is not a list")
	}
	var items []object.Tree
	for i, item := range all {
		o, ok := item.(object.Tree)
		if !ok {
			return nil, 0, fmt.Errorf("items[%d] is not an object", i)
		}
		items = append(items, o)
	}
	return items, version, nil
}

// addItems adds the items with a resource version to a state: first the definitions, then the objects that they may
// define. It returns the indexes of the others in the same order.
func addItems(l *writer.Loading, items []object.Tree) (others []int, err error) {
	for _, definitions := range []bool{true, false} {
		for i, item := range items {
			if (object.StringAt(item, "kind") == "CustomResourceDefinition") != definitions {
				continue
			}
			if object.TextAt(item, "metadata", "resourceVersion") == "" {
				others = append(others, i)
				continue
			}
			name := nameOf(item) // Add changes the item
			if err := l.Add(item); err != nil {
				return nil, fmt.Errorf("items[%d], %s: %w", i, name, err)
			}
		}
	}
	return others, nil
}

// createItem creates an object without a resource version. It replaces a kept object of the same name. On a strict
// server, its namespace must exist or stand earlier in the list.
func (s *Server) createItem(l *writer.Loading, tree object.Tree) error {
	for _, d := range s.store.Definitions() {
		if r, ok := d.Describes(tree); ok && !d.Virtual() {
			c, err := s.collection(r)
			if err == nil {
				l.Release(c, keyOf(tree))
				_, err = s.createDirectly(c, tree, writer.Write{Served: r.Version, Direct: true})
			}
			return err
		}
	}
	return writer.ErrNotServed
}

// nameOf describes an item in an error.
func nameOf(tree object.Tree) string {
	return fmt.Sprintf("%s %s", object.TextAt(tree, "kind"), api.FormatKey(keyOf(tree)))
}

func keyOf(tree object.Tree) api.Key {
	return api.Key{Namespace: object.TextAt(tree, "metadata", "namespace"), Name: object.TextAt(tree, "metadata", "name")}
}

// Fork returns a new server with the state of this one at one version: the objects, their versions and UIDs, the
// resources, and the logs of containers. The servers share the memory of what has not changed, and neither sees later
// writes to the other one. The fork has the options of this server, its certificate, and nothing that belongs to its
// clients: no faults, no log of requests, no watches and no history. So a watch, a list or a continue token of an
// earlier version gets 410, as after a restart of etcd that compacts. Equal requests to both give equal objects.
//
// A write of several steps that is in progress stays as it is in the fork: a pod that this server has marked and not
// yet removed stays marked.
//
// Fork panics if the server belongs to a Cluster, which has a Fork of its own.
func (s *Server) Fork() *Server {
	if s.extension.Connect != nil {
		panic("testserver: Server.Fork: the server belongs to a cluster; call Cluster.Fork")
	}
	return s.ForkExtended(s.extension)
}

// ForkExtended is Fork with another extension. Its resources replace those of this server. Only modules below
// testserver can use it.
func (s *Server) ForkExtended(e extension.Extension) *Server {
	s.store.Lock()
	defer s.store.Unlock()
	o := s.options
	o.Middleware = nil // it is for the listener of the parent
	out := newServer(o, e, s.store.Fork(e.Resources))
	out.cert = s.cert
	if e.Connect != nil {
		e.Connect(out.store)
	}
	out.writer = s.writer.Fork(out.store, out.writerOptions())
	out.writer.PauseDeletions(s.options.DeletionPause)
	return out
}

// Snapshot is the state of the whole server at one version. It never changes, and the server's history need not reach
// back to it. It is cheap because it shares its memory with the server.
type Snapshot struct{ state *store.State }

// Snapshot returns the present state.
func (s *Server) Snapshot() *Snapshot { return &Snapshot{s.store.State()} }

// ResourceVersion returns the version of the state.
func (s *Snapshot) ResourceVersion() string { return strconv.FormatUint(s.state.Version(), 10) }

// Len returns the number of objects of a resource.
func (s *Snapshot) Len(r api.Resource) int { return s.state.View(r.GroupResource()).Len() }

// Get returns one object; ok is false if it does not exist.
func (s *Snapshot) Get(r api.Resource, key api.Key) (*unstructured.Unstructured, bool) {
	rec := s.state.View(r.GroupResource()).Get(key)
	if rec == nil {
		return nil, false
	}
	return toUnstructured(rec, r), true
}

// All yields the objects of a resource in the order of lists.
func (s *Snapshot) All(r api.Resource) iter.Seq[*unstructured.Unstructured] {
	return func(yield func(*unstructured.Unstructured) bool) {
		for rec := range s.state.View(r.GroupResource()).All() {
			if !yield(toUnstructured(rec, r)) {
				return
			}
		}
	}
}

// Versions returns the resource version of every object of a resource.
func (s *Snapshot) Versions(r api.Resource) map[api.Key]string {
	out := map[api.Key]string{}
	for rec := range s.state.View(r.GroupResource()).All() {
		out[rec.Key] = rec.ResourceVersion()
	}
	return out
}

// toUnstructured decodes a record as an object of a resource, in the version of the resource.
func toUnstructured(rec *store.Record, as api.Resource) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: rec.TreeIn(as.Version)}
	u.SetGroupVersionKind(as.GroupVersionKind())
	return u
}
