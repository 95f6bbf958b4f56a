package testserver

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/writer"
)

// directly runs do under the lock with the collection of a resource. Methods that use state without HTTP use it.
func (s *Server) directly(r api.Resource, do func(*store.Collection) error) error {
	s.store.Lock()
	defer s.store.Unlock()
	c := s.store.Collection(r.GroupResource())
	if c == nil {
		return fmt.Errorf("testserver: %s is not served", r)
	}
	return do(c)
}

// collection returns the collection of a resource.
func (s *Server) collection(r api.Resource) (c *store.Collection, err error) {
	err = s.directly(r, func(found *store.Collection) error {
		c = found
		return nil
	})
	return c, err
}

// Create stores a new object and returns it as stored. obj is any value that encodes to a JSON object; unlike in a
// request, it may have a status. The errors are those of a request.
func (s *Server) Create(r api.Resource, obj any) (*unstructured.Unstructured, error) {
	c, err := s.collection(r)
	if err != nil {
		return nil, err
	}
	tree, err := object.From(obj)
	if err != nil {
		return nil, err
	}
	delete(object.Metadata(tree), "resourceVersion")
	rec, err := s.createDirectly(c, tree, writer.Write{Served: r.Version, Direct: true})
	if err != nil {
		return nil, err
	}
	return toUnstructured(rec, r), nil
}

func (s *Server) createDirectly(c *store.Collection, tree object.Tree, w writer.Write) (*store.Record, error) {
	namespace := object.StringAt(object.Metadata(tree), "namespace")
	submission := direct(c, w, "create", func(object.Tree) (object.Tree, error) { return s.decoded(c.Definition(), w, tree) })
	submission.Key.Namespace = namespace
	rec, _, err := s.writer.Submit(context.Background(), submission)
	return rec, err
}

// direct returns a write by a method.
func direct(c *store.Collection, w writer.Write, verb string, change func(object.Tree) (object.Tree, error)) *writer.Submission {
	return &writer.Submission{Write: w, Collection: c, Verb: verb, Change: change}
}

// decoded gives an object its kind, version and defaults.
func (s *Server) decoded(d *registry.Definition, w writer.Write, tree object.Tree) (object.Tree, error) {
	as := d.In(w.Served)
	for name, value := range map[string]string{"kind": as.Kind, "apiVersion": as.GroupVersion().String()} {
		if object.StringAt(tree, name) == "" {
			tree[name] = value
		}
	}
	out, _, err := writer.DecodeTree(d, registry.Target{Served: w.Served}, tree)
	return out, err
}

// Update replaces a whole object with its status, and returns it as stored. Without a resource version, it does not
// check for conflicts. An update that removes the last finalizer of an object that is being deleted removes the object.
func (s *Server) Update(r api.Resource, obj any) (*unstructured.Unstructured, error) {
	tree, err := object.From(obj)
	if err != nil {
		return nil, err
	}
	meta := object.Metadata(tree)
	key := api.Key{Namespace: object.StringAt(meta, "namespace"), Name: object.StringAt(meta, "name")}
	return s.change(r, key, func(object.Tree) (object.Tree, error) { return runtime.DeepCopyJSON(tree), nil })
}

// Edit changes an object in one step: no other write can come between. change receives the present state and may make
// any change that Update may make. It must not use the server, and runs again if the object changes meanwhile.
func (s *Server) Edit(r api.Resource, key api.Key, change func(*unstructured.Unstructured)) (*unstructured.Unstructured, error) {
	return s.change(r, key, func(before object.Tree) (object.Tree, error) {
		if before == nil {
			return nil, apierrors.NewNotFound(r.GroupResource(), key.Name)
		}
		u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(before)}
		u.SetGroupVersionKind(r.GroupVersionKind())
		change(u)
		return object.From(u)
	})
}

// change replaces an object by what after returns for its present state. It gets nil if the object does not exist.
func (s *Server) change(r api.Resource, key api.Key, after func(object.Tree) (object.Tree, error)) (*unstructured.Unstructured, error) {
	c, err := s.collection(r)
	if err != nil {
		return nil, err
	}
	w := writer.Write{Served: r.Version, Direct: true}
	submission := direct(c, w, "update", func(before object.Tree) (object.Tree, error) {
		tree, err := after(before)
		if err != nil {
			return nil, err
		}
		return s.decoded(c.Definition(), w, tree)
	})
	submission.Key = key
	rec, _, err := s.writer.Submit(context.Background(), submission)
	if err != nil {
		return nil, err
	}
	return toUnstructured(rec, r), nil
}

// Delete removes an object at once, unless it has finalizers. Only the first of options counts; it may have
// preconditions, a propagation policy, or a grace period for a pod.
func (s *Server) Delete(r api.Resource, key api.Key, options ...metav1.DeleteOptions) error {
	var o metav1.DeleteOptions
	if len(options) > 0 {
		o = options[0]
	}
	c, err := s.collection(r)
	if err == nil {
		_, err = s.writer.Delete(c, key, o, writer.Write{Direct: true})
	}
	return err
}

// Get returns the present state of an object. It fails with NotFound as a request does.
func (s *Server) Get(r api.Resource, key api.Key) (*unstructured.Unstructured, error) {
	var out *unstructured.Unstructured
	err := s.directly(r, func(c *store.Collection) error {
		rec := c.Get(key)
		if rec == nil {
			return apierrors.NewNotFound(r.GroupResource(), key.Name)
		}
		out = toUnstructured(rec, r)
		return nil
	})
	return out, err
}

// List returns the objects of a resource in a namespace, or in all namespaces if it is empty, in the order of lists.
func (s *Server) List(r api.Resource, namespace string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	err := s.directly(r, func(c *store.Collection) error {
		for rec := range c.All(namespace) {
			out = append(out, toUnstructured(rec, r))
		}
		return nil
	})
	return out, err
}

// ResourceVersion returns the present version of the server.
func (s *Server) ResourceVersion() string {
	s.store.Lock()
	defer s.store.Unlock()
	return strconv.FormatUint(s.store.Version(), 10)
}
