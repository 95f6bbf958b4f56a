package testserver

import (
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/writer"
)

// directly runs do under the lock with the collection of a resource. Methods that change state without HTTP use it.
func (s *Server) directly(r api.Resource, do func(*store.Collection) error) error {
	s.store.Lock()
	defer s.store.Unlock()
	c := s.store.Collection(r.GroupResource())
	if c == nil {
		return fmt.Errorf("testserver: %s is not served", r)
	}
	return do(c)
}

// Create stores a new object and returns it as stored. obj is any value that encodes to a JSON object; unlike in a
// request, it may have a status. The errors are those of a request.
func (s *Server) Create(r api.Resource, obj any) (*unstructured.Unstructured, error) {
	tree, err := object.From(obj)
	if err != nil {
		return nil, err
	}
	var out *unstructured.Unstructured
	err = s.directly(r, func(c *store.Collection) error {
		delete(object.Metadata(tree), "resourceVersion")
		rec, err := s.writer.Create(c, object.StringAt(object.Metadata(tree), "namespace"), tree, writer.Write{Served: r.Version, Direct: true})
		if err == nil {
			out = toUnstructured(rec, r)
		}
		return err
	})
	return out, err
}

// Update replaces a whole object with its status, and returns it as stored. Without a resource version, it does not
// check for conflicts. An update that removes the last finalizer of an object that is being deleted removes the object.
func (s *Server) Update(r api.Resource, obj any) (*unstructured.Unstructured, error) {
	tree, err := object.From(obj)
	if err != nil {
		return nil, err
	}
	var out *unstructured.Unstructured
	err = s.directly(r, func(c *store.Collection) error {
		meta := object.Metadata(tree)
		key := api.Key{Namespace: object.StringAt(meta, "namespace"), Name: object.StringAt(meta, "name")}
		rec, _, err := s.writer.Update(c, key, tree, writer.Write{Served: r.Version, Direct: true})
		if err == nil {
			out = toUnstructured(rec, r)
		}
		return err
	})
	return out, err
}

// Edit changes an object in one step: no other write can come between. change receives the present state and may make
// any change that Update may make. It must not use the server.
func (s *Server) Edit(r api.Resource, key api.Key, change func(*unstructured.Unstructured)) (*unstructured.Unstructured, error) {
	var out *unstructured.Unstructured
	err := s.directly(r, func(c *store.Collection) error {
		old := c.Get(key)
		if old == nil {
			return apierrors.NewNotFound(r.GroupResource(), key.Name)
		}
		u := toUnstructured(old, r)
		change(u)
		tree, err := object.From(u)
		if err != nil {
			return err
		}
		rec, _, err := s.writer.Update(c, key, tree, writer.Write{Served: r.Version, Direct: true})
		if err == nil {
			out = toUnstructured(rec, r)
		}
		return err
	})
	return out, err
}

// Delete removes an object at once, unless it has finalizers. Only the first of options counts; it may have
// preconditions, a propagation policy, or a grace period for a pod.
func (s *Server) Delete(r api.Resource, key api.Key, options ...metav1.DeleteOptions) error {
	var o metav1.DeleteOptions
	if len(options) > 0 {
		o = options[0]
	}
	return s.directly(r, func(c *store.Collection) error {
		_, err := s.writer.Delete(c, key, o, writer.Write{Direct: true})
		return err
	})
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
