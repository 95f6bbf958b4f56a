package testserver

import (
	"net/http"

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
