package api

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Key identifies an object within its resource: a namespace, which is "" for a cluster-scoped object, and a name. It is
// comparable and can be a map key without formatting; String returns "namespace/name". It corresponds to
// cache.ObjectName and to the "namespace/name" strings of client-go.
type Key = types.NamespacedName

// Object is the interface that leat requires of a type: key, UID and resource version. It is narrower than
// metav1.Object and runtime.Object. So *corev1.Pod implements it, and so can a struct of five fields. The cache stores
// only the fields that the type declares.
type Object interface {
	GetNamespace() string
	GetName() string
	GetUID() types.UID
	GetResourceVersion() string
}

// KeyOf returns the key of an object. It corresponds to cache.MetaNamespaceKeyFunc of client-go, and cannot fail.
func KeyOf(o Object) Key {
	return Key{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// FormatKey formats a key for people: "namespace/name", or only "name" if there is no namespace. Key.String formats the
// latter as "/name".
func FormatKey(k Key) string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// ParseKey parses the output of FormatKey. It fails for an empty name and for more than one slash. It corresponds to
// cache.SplitMetaNamespaceKey of client-go.
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
