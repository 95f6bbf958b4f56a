package recorder

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/leatproject/leat/api"
)

// What the API server demands of the fields of an event, in bytes.
const (
	maxNote = 1024
	maxWord = 128 // of a reason, an action, a reporting controller and instance
	maxName = 253
)

// reference names an object as events do. It is comparable.
type reference struct {
	APIVersion      string    `json:"apiVersion,omitempty"`
	Kind            string    `json:"kind,omitempty"`
	Namespace       string    `json:"namespace,omitempty"`
	Name            string    `json:"name,omitempty"`
	UID             types.UID `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
}

// referenceTo is empty where there is no object, which a pointer that is nil is not.
func referenceTo(r api.Resource, o api.Object) reference {
	if isNil(o) {
		return reference{}
	}
	return reference{
		APIVersion: r.GroupVersion().String(), Kind: r.Kind,
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
	}
}

func isNil(o api.Object) bool {
	v := reflect.ValueOf(o)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// ofAnyVersion is the reference without the version of the object, which does not tell one event from another.
func (r reference) ofAnyVersion() reference {
	r.ResourceVersion = ""
	return r
}

// identity is what an event says but for its note. It is comparable.
type identity struct {
	regarding reference
	related   reference
	kind      Type
	reason    string
	action    string
}

func identityOf(e Event) identity {
	i := identity{
		regarding: referenceTo(e.Resource, e.Object),
		related:   referenceTo(e.RelatedResource, e.Related),
		kind:      e.Type,
		reason:    cut(e.Reason, maxWord),
		action:    cut(e.Action, maxWord),
	}
	if i.kind == "" {
		i.kind = Normal
	}
	if i.action == "" {
		i.action = i.reason
	}
	return i
}

func (i identity) ofAnyVersion() identity {
	i.regarding, i.related = i.regarding.ofAnyVersion(), i.related.ofAnyVersion()
	return i
}

func (t told) fields() []zap.Field {
	key := api.Key{Namespace: t.regarding.Namespace, Name: t.regarding.Name}
	return []zap.Field{
		zap.String("kind", t.regarding.Kind), zap.String("key", api.FormatKey(key)), zap.String("type", string(t.kind)),
		zap.String("reason", t.reason), zap.String("note", t.note),
	}
}

// cut shortens a text to a number of bytes, at the end of a letter.
func cut(text string, most int) string {
	const dots = "…"
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(dots)], "") + dots
}

// newName makes a name for an Event: the object's, as far as it can be part of one (that of a role cannot), and something
// random.
func newName(object string) string {
	suffix := fmt.Sprintf(".%016x", rand.Uint64())
	object = strings.TrimRight(object[:min(len(object), maxName-len(suffix))], ".-")
	if len(validation.IsDNS1123Subdomain(object)) > 0 {
		object = "event"
	}
	return object + suffix
}
