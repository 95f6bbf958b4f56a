package api

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Key names an object within its resource: a namespace, empty for a cluster-scoped object, and a name.
// It is comparable, so it serves as a map key without being formatted; String gives "namespace/name".
// It corresponds to cache.ObjectName, and to the "namespace/name" strings, of client-go.
type Key = types.NamespacedName

// Object is all that leat asks of a type: where an object lives, which incarnation it is, and which version.
// It is narrower than metav1.Object and runtime.Object, so that *corev1.Pod satisfies it unchanged and so does
// a struct of five fields; what a type does not declare is never stored.
type Object interface {
	GetNamespace() string
	GetName() string
	GetUID() types.UID
	GetResourceVersion() string
}

// KeyOf returns the key of an object.
// It corresponds to cache.MetaNamespaceKeyFunc of client-go, and cannot fail.
func KeyOf(o Object) Key {
	return Key{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// FormatKey writes a key the way people do: "namespace/name", or "name" alone where there is no namespace.
// (Key.String writes "/name" for the latter.)
func FormatKey(k Key) string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// ParseKey reads what FormatKey writes. It fails for an empty name and for more than one slash.
// It corresponds to cache.SplitMetaNamespaceKey of client-go.
func ParseKey(s string) (Key, error) {
	namespace, name, found := strings.Cut(s, "/")
	if !found {
		namespace, name = "", s
	}
	if name == "" || strings.Contains(name, "/") || found && namespace == "" {
		return Key{}, fmt.Errorf("api: %q is not a key of the form name or namespace/name", s)
	}
	return Key{Namespace: namespace, Name: name}, nil
}
