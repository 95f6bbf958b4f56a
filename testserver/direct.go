package testserver

import (
	"encoding/json"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
)

// directly runs do under the lock with the collection of a resource. Methods that change state without HTTP use it.
func (s *Server) directly(r api.Resource, do func(*collection) error) error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	c := s.store.collections[r.GroupResource()]
	if c == nil || c.retired {
		return fmt.Errorf("testserver: %s is not served", r)
	}
	return do(c)
}

// toObject converts a value that encodes to a JSON object.
func toObject(v any) (object, error) {
	encoded, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("testserver: encode %T: %w", v, err)
	}
	tree, err := decodeObject(encoded)
	if err != nil {
		return nil, fmt.Errorf("testserver: %T does not encode to a JSON object: %w", v, err)
	}
	return tree, nil
}

// Create stores a new object and returns it as stored. obj is any value that encodes to a JSON object; unlike in a
// request, it may have a status. The errors are those of a request.
func (s *Server) Create(r api.Resource, obj any) (*unstructured.Unstructured, error) {
	tree, err := toObject(obj)
	if err != nil {
		return nil, err
	}
	var out *unstructured.Unstructured
	err = s.directly(r, func(c *collection) error {
		delete(metadataOf(tree), "resourceVersion")
		rec, err := s.store.create(c, stringAt(metadataOf(tree), "namespace"), tree, write{served: r.Version, direct: true})
		if err == nil {
			out = rec.unstructured(r)
		}
		return err
	})
	return out, err
}

// Update replaces a whole object with its status, and returns it as stored. Without a resource version, it does not
// check for conflicts. An update that removes the last finalizer of an object that is being deleted removes the object.
func (s *Server) Update(r api.Resource, obj any) (*unstructured.Unstructured, error) {
	tree, err := toObject(obj)
	if err != nil {
		return nil, err
	}
	var out *unstructured.Unstructured
	err = s.directly(r, func(c *collection) error {
		meta := metadataOf(tree)
		key := api.Key{Namespace: stringAt(meta, "namespace"), Name: stringAt(meta, "name")}
		rec, _, err := s.store.update(c, key, tree, write{served: r.Version, direct: true})
		if err == nil {
			out = rec.unstructured(r)
		}
		return err
	})
	return out, err
}

// Edit changes an object in one step: no other write can come between. change receives the present state and may make
// any change that Update may make. It must not use the server.
func (s *Server) Edit(r api.Resource, key api.Key, change func(*unstructured.Unstructured)) (*unstructured.Unstructured, error) {
	var out *unstructured.Unstructured
	err := s.directly(r, func(c *collection) error {
		old := c.root.get(pathOf(key))
		if old == nil {
			return apierrors.NewNotFound(r.GroupResource(), key.Name)
		}
		u := old.unstructured(r)
		change(u)
		tree, err := toObject(u)
		if err != nil {
			return err
		}
		rec, _, err := s.store.update(c, key, tree, write{served: r.Version, direct: true})
		if err == nil {
			out = rec.unstructured(r)
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
	return s.directly(r, func(c *collection) error {
		_, err := s.store.delete(c, key, o, write{direct: true})
		return err
	})
}

// Get returns the present state of an object. It fails with NotFound as a request does.
func (s *Server) Get(r api.Resource, key api.Key) (*unstructured.Unstructured, error) {
	var out *unstructured.Unstructured
	err := s.directly(r, func(c *collection) error {
		rec := c.root.get(pathOf(key))
		if rec == nil {
			return apierrors.NewNotFound(r.GroupResource(), key.Name)
		}
		out = rec.unstructured(r)
		return nil
	})
	return out, err
}

// List returns the objects of a resource in a namespace, or in all namespaces if it is empty, in the order of lists.
func (s *Server) List(r api.Resource, namespace string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	err := s.directly(r, func(c *collection) error {
		sel, err := newSelection(c.def, namespace, "", "")
		for rec := range sel.scan(c.root, "") {
			out = append(out, rec.unstructured(r))
		}
		return err
	})
	return out, err
}

// ResourceVersion returns the present version of the server.
func (s *Server) ResourceVersion() string {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	return strconv.FormatUint(s.store.version, 10)
}
