package testserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/wire"
	"github.com/leatproject/leat/testserver/internal/writer"
)

// acting returns the handler of a resource whose objects can only be created, or nil for other requests.
func (x *call) acting() func() error {
	if x.request.Verb != "create" || x.request.Name != "" || !x.whole() {
		return nil
	}
	return func() error { return x.act(x.def.Act) }
}

// binding returns the handler of the resource of bindings, or nil. An object of it is a binding of the pod of this
// name.
func (x *call) binding() func() error {
	if x.request.Verb != "create" || x.request.Name != "" || !x.whole() {
		return nil
	}
	return x.bind
}

// act answers a creation that stores nothing.
func (x *call) act(do registry.Action) error {
	w, err := x.parameters()
	if err != nil {
		return err
	}
	tree, err := wire.ReadObject(x.w, x.http, x.def, x.into())
	if err != nil {
		return err
	}
	if err := x.complete(tree); err != nil {
		return err
	}
	s := x.submission(w, nil)
	answer, err := x.writer.Act(x.http.Context(), s, tree, do)
	warn(x.w, s.Warnings)
	if err != nil {
		return err
	}
	return x.respondTree(http.StatusCreated, answer)
}

// complete gives the object of an action its kind and its namespace.
func (x *call) complete(tree object.Tree) error {
	as := x.def.In(x.request.Version)
	kind, version := as.Kind, as.GroupVersion().String()
	if k, v := x.def.SubresourceKind(x.request.Version, x.request.Subresource); k != "" {
		kind, version = k, v
	}
	object.SetDefault(tree, "kind", kind)
	object.SetDefault(tree, "apiVersion", version)
	if err := writer.CheckShape(tree); err != nil {
		return err
	}
	if meta := object.Metadata(tree); x.def.Namespaced && x.request.Subresource == "" {
		object.SetDefault(meta, "namespace", x.request.Namespace)
	}
	return nil
}

// bind assigns a pod to a node. A second bind is a conflict. The binding passes admission as an object of its own.
func (x *call) bind() error {
	w, err := x.parameters()
	if err != nil {
		return err
	}
	return x.actOn(w, func(ctx context.Context, act registry.Act) error {
		if name := object.StringAt(object.Metadata(act.Tree), "name"); x.request.Name != "" && name != x.request.Name {
			return errBindingName
		}
		if _, _, err := x.def.Schema.Create(act.Operation, act.Tree); err != nil {
			return err
		}
		if err := act.Validate(); err != nil {
			return err
		}
		return x.assign(ctx, w, act.Tree)
	})
}

// actOn reads the object of an action that changes a pod, and performs the action after mutating admission.
func (x *call) actOn(w writer.Write, do func(context.Context, registry.Act) error) error {
	tree, err := wire.ReadObject(x.w, x.http, x.def, x.into())
	if err == nil {
		err = x.complete(tree)
	}
	if err != nil {
		return err
	}
	s := x.submission(w, nil)
	_, err = x.writer.Act(x.http.Context(), s, tree, func(ctx context.Context, act registry.Act) (object.Tree, error) {
		return nil, do(ctx, act)
	})
	warn(x.w, s.Warnings)
	if err != nil {
		return err
	}
	return x.created()
}

// assign writes the target, the annotations and the labels of a binding into its pod. No rules of pods take part.
func (x *call) assign(ctx context.Context, w writer.Write, binding object.Tree) error {
	pods, _, _ := x.store.Find("", podResource.Version, podResource.Plural)
	sent := object.Metadata(binding)
	name := object.StringAt(sent, "name")
	w.Subresource = bindingSubresource
	_, _, err := x.writer.Submit(ctx, &writer.Submission{
		Write: w, Collection: pods, Key: api.Key{Namespace: x.request.Namespace, Name: name}, User: x.user, Verb: "update", Applied: true,
		Change: func(before object.Tree) (object.Tree, error) {
			if before == nil {
				return nil, apierrors.NewNotFound(podResource.GroupResource(), name)
			}
			if why := unassignable(before, name); why != "" {
				return nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, name, errors.New(why))
			}
			tree := runtime.DeepCopyJSON(before)
			object.SetDefault(tree, "spec", object.Tree{})
			object.MapAt(tree, "spec")["nodeName"] = object.StringAt(object.MapAt(binding, "target"), "name")
			meta := object.Metadata(tree)
			for _, precondition := range []string{"uid", "resourceVersion"} {
				if text := object.StringAt(sent, precondition); text != "" {
					meta[precondition] = text
				}
			}
			for _, field := range []string{"annotations", "labels"} {
				for key, value := range object.MapAt(sent, field) {
					object.SetDefault(meta, field, object.Tree{})
					object.MapAt(meta, field)[key] = value
				}
			}
			return tree, nil
		},
	})
	return err
}

// unassignable says why a pod cannot be assigned to a node.
func unassignable(pod object.Tree, name string) string {
	spec := object.MapAt(pod, "spec")
	switch {
	case object.StringAt(object.MapAt(pod, "metadata"), "deletionTimestamp") != "":
		return fmt.Sprintf("pod %s is being deleted, cannot be assigned to a host", name)
	case object.StringAt(spec, "nodeName") != "":
		return fmt.Sprintf("pod %s is already assigned to node %q", name, object.StringAt(spec, "nodeName"))
	case len(object.SliceAt(spec, "schedulingGates")) > 0:
		return fmt.Sprintf("pod %s has non-empty .spec.schedulingGates", name)
	}
	return ""
}
