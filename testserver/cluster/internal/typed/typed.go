package typed

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/authentication/install"
	_ "k8s.io/kubernetes/pkg/apis/authorization/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"

	"github.com/leatproject/leat/testserver/internal/object"
)

// Versioned returns the Go value of a tree in the version that its apiVersion and kind name.
func Versioned(tree object.Tree) (runtime.Object, error) {
	kind := schema.FromAPIVersionAndKind(object.StringAt(tree, "apiVersion"), object.StringAt(tree, "kind"))
	out, err := legacyscheme.Scheme.New(kind)
	if err != nil {
		return nil, fmt.Errorf("typed: %w", err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, out); err != nil {
		return nil, fmt.Errorf("typed: decode a %s: %w", kind.Kind, err)
	}
	return out, nil
}

// Internal returns the internal value of a tree.
func Internal(tree object.Tree) (runtime.Object, error) {
	versioned, err := Versioned(tree)
	if err != nil {
		return nil, err
	}
	out, err := legacyscheme.Scheme.ConvertToVersion(versioned, runtime.InternalGroupVersioner)
	if err != nil {
		return nil, fmt.Errorf("typed: %w", err)
	}
	return out, nil
}

// Tree returns the tree of a value in a version, with kind and apiVersion.
func Tree(value runtime.Object, version schema.GroupVersion) (object.Tree, error) {
	versioned, err := legacyscheme.Scheme.ConvertToVersion(value, version)
	if err != nil {
		return nil, fmt.Errorf("typed: %w", err)
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(versioned)
}
