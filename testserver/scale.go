package testserver

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// scalePaths returns where the Scale of a custom resource with a schema has its values, or nil for other resources.
func (x *call) scalePaths() *registry.ScalePaths { return x.def.PerVersion[x.request.Version].Scale }

// scale returns the Scale of an object in the version of the request. found is false if the object has no replicas.
func (x *call) scale(tree object.Tree) (scale object.Tree, found bool, err error) {
	scale = scaleOf(tree)
	paths := x.scalePaths()
	if paths == nil {
		return scale, true, nil
	}
	replicas, found, err := unstructured.NestedInt64(tree, paths.Replicas...)
	if err != nil {
		return nil, false, err
	}
	have, _, err := unstructured.NestedInt64(tree, paths.StatusReplicas...)
	if err != nil {
		return nil, false, err
	}
	scale["spec"], scale["status"] = object.Tree{"replicas": replicas}, object.Tree{"replicas": have}
	if len(paths.Selector) == 0 {
		return scale, found, nil
	}
	selector, _, err := unstructured.NestedString(tree, paths.Selector...)
	if selector != "" {
		object.MapAt(scale, "status")["selector"] = selector
	}
	return scale, found, err
}

// existingScale is scale for a read, which needs replicas.
func (x *call) existingScale(tree object.Tree) (object.Tree, error) {
	scale, found, err := x.scale(tree)
	if err == nil && !found {
		err = fmt.Errorf("the spec replicas field %q does not exist", "."+strings.Join(x.scalePaths().Replicas, "."))
	}
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return scale, nil
}

// respondScale answers with the Scale of a stored object.
func (x *call) respondScale(r *store.Record) error {
	if err := x.shape().Check(r); err != nil {
		return err
	}
	scale, err := x.existingScale(x.shape().Tree(r))
	if err != nil {
		return err
	}
	return x.respondTree(http.StatusOK, scale)
}

const scaleSubresource = "scale"

// scaleView shows an object as its Scale. It implements writer.View.
type scaleView struct{ *call }

// Show returns the Scale of an object, with the managers of its replicas. Without replicas, the Scale has none either.
func (x scaleView) Show(tree object.Tree) (object.Tree, error) {
	scale, found, err := x.scale(tree)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if !found {
		delete(object.MapAt(scale, "spec"), "replicas")
	}
	if x.def.Scaling == nil {
		return scale, nil
	}
	entries, err := x.def.Scaling.FromObject(x.request.Version, tree)
	object.SetOrDropList(object.Metadata(scale), "managedFields", entries)
	return scale, err
}

// Write returns a copy of an object with the replicas of a Scale, its version and its managers.
func (x scaleView) Write(tree, scale object.Tree) (object.Tree, error) {
	tree = runtime.DeepCopyJSON(tree)
	replicas, set := object.IntAt(object.MapAt(scale, "spec"), "replicas")
	path := []string{"spec", "replicas"}
	if paths := x.scalePaths(); paths != nil {
		path = paths.Replicas
		if _, found, err := x.scale(tree); err == nil && !found && !set {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the spec replicas field %q cannot be empty", "."+strings.Join(path, ".")))
		}
	}
	if err := unstructured.SetNestedField(tree, replicas, path...); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	object.SetOrDrop(object.Metadata(tree), "resourceVersion", object.Metadata(scale)["resourceVersion"])
	if x.def.Scaling == nil {
		return tree, nil
	}
	entries, err := x.def.Scaling.ToObject(x.request.Version, tree, scale)
	object.SetOrDropList(object.Metadata(tree), "managedFields", entries)
	return tree, err
}
