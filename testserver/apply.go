package testserver

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// apply is server-side apply (KEP-555). The manager becomes an owner of the fields in its configuration. Fields that it
// applied before and omits now are removed unless another manager owns them. A field that another manager owns with a
// different value is a conflict, unless the request sets force. Without types, a list has one owner.
func (x *call) apply() error {
	w, err := x.parameters()
	if err != nil {
		return err
	}
	q := x.request.Query
	if w.Manager = q.Get("fieldManager"); w.Manager == "" {
		return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("PatchOptions").GroupKind(), "",
			field.ErrorList{field.Required(field.NewPath("fieldManager"), "is required for apply patch")})
	}
	config, err := wire.ReadConfiguration(x.http)
	if err != nil {
		return err
	}
	meta, _ := config["metadata"].(object.Tree)
	if len(object.SliceAt(meta, "managedFields")) > 0 {
		return apierrors.NewBadRequest("metadata.managedFields must be nil")
	}
	if gvk := schema.FromAPIVersionAndKind(object.StringAt(config, "apiVersion"), object.StringAt(config, "kind")); gvk != x.kind() {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid object type: %v", gvk))
	}
	return x.submitApply(w, config, wire.BoolParam(q, "force"))
}

// kind returns the kind of what the request is about: an object, or a subresource of another kind.
func (x *call) kind() schema.GroupVersionKind {
	if kind, version := x.def.SubresourceKind(x.request.Version, x.request.Subresource); kind != "" {
		return schema.FromAPIVersionAndKind(version, kind)
	}
	return x.def.In(x.request.Version).GroupVersionKind()
}
