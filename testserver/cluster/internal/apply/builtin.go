package apply

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/testserver/cluster/internal/builtin"
	"github.com/leatproject/leat/testserver/cluster/internal/openapi"
	"github.com/leatproject/leat/testserver/internal/fieldmanager"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// Builtin returns the managers of a built-in kind.
func Builtin(k fieldmanager.Kind) registry.Managers {
	return fieldmanager.New(k, fieldmanager.Types{Of: openapi.TypeOf, Empty: emptyBuiltin(), Convert: convertBuiltin})
}

// Scaling returns the managers of the Scales of a resource; see [fieldmanager.Scaling].
func Scaling(group string, replicas map[string][]string) registry.Scaling {
	return fieldmanager.Scaling(group, replicas, Builtin(fieldmanager.Kind{Group: "autoscaling", Kind: "Scale"}), Strategic("autoscaling", "Scale"))
}

// emptyBuiltin returns the empty objects of built-in kinds. Their structs have fields that are always written, like the
// containers of a pod.
func emptyBuiltin() func(schema.GroupVersionKind) object.Tree {
	var known sync.Map // of trees, by the kind
	return func(gvk schema.GroupVersionKind) object.Tree {
		if tree, ok := known.Load(gvk); ok {
			return tree.(object.Tree)
		}
		tree := object.Tree{}
		if sample, err := openapi.NewObject(gvk); err == nil {
			if tree, err = runtime.DefaultUnstructuredConverter.ToUnstructured(sample); err != nil {
				tree = object.Tree{}
			}
		}
		tree["apiVersion"], tree["kind"] = gvk.GroupVersion().String(), gvk.Kind
		known.Store(gvk, tree)
		return tree
	}
}

// convertBuiltin converts a tree with the conversions of the Go types.
func convertBuiltin(tree object.Tree, to schema.GroupVersion) (object.Tree, error) {
	from := schema.FromAPIVersionAndKind(object.StringAt(tree, "apiVersion"), object.StringAt(tree, "kind"))
	scheme := builtin.Scheme()
	in, err := scheme.New(from)
	if err != nil {
		return nil, err // of a missing kind, as managedfields expects it
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, in); err != nil {
		return nil, fmt.Errorf("testserver: read a %v: %w", from, err)
	}
	internal, err := scheme.UnsafeConvertToVersion(in, schema.GroupVersion{Group: from.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		return nil, err
	}
	out, err := scheme.UnsafeConvertToVersion(internal, to)
	if err != nil {
		return nil, err
	}
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(out)
	if err != nil {
		return nil, fmt.Errorf("testserver: convert a %v to %v: %w", from, to, err)
	}
	return converted, nil
}
