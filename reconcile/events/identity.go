package events

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

// The limits of the API server for fields of an event, in bytes.
const (
	maxNote = 1024
	maxWord = 128 // of a reason, an action, a reporting controller and instance
	maxName = 253
)

// reference names an object in an event. It is comparable.
type reference struct {
	APIVersion      string    `json:"apiVersion,omitempty"`
	Kind            string    `json:"kind,omitempty"`
	Namespace       string    `json:"namespace,omitempty"`
	Name            string    `json:"name,omitempty"`
	UID             types.UID `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
}

// referenceTo returns a reference to an object, or an empty one for nil or a nil pointer.
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

// ofAnyVersion returns the reference without the object's version, which does not distinguish events.
func (r reference) ofAnyVersion() reference {
	r.ResourceVersion = ""
	return r
}

// identity has all fields of an event except the note. It is comparable.
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
		reason:    shorten(e.Reason, maxWord),
		action:    shorten(e.Action, maxWord),
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

func (t queuedEvent) fields() []zap.Field {
	key := api.Key{Namespace: t.regarding.Namespace, Name: t.regarding.Name}
	return []zap.Field{
		zap.String("kind", t.regarding.Kind), zap.String("key", api.FormatKey(key)), zap.String("type", string(t.kind)),
		zap.String("reason", t.reason), zap.String("note", t.note),
	}
}

// shorten shortens a text to a number of bytes, at the end of a character. Bytes that are not UTF-8 become U+FFFD
// before the text is measured. The encoding in JSON would replace them later, and the text would be longer.
func shorten(text string, most int) string {
	const dots = "…"
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(dots)], "") + dots
}

// newName returns a name for an Event: the object's name and a random suffix. A name that is not valid for an Event,
// such as that of a role, is replaced by "event".
func newName(object string) string {
	suffix := fmt.Sprintf(".%016x", rand.Uint64())
	object = strings.TrimRight(object[:min(len(object), maxName-len(suffix))], ".-")
	if len(validation.IsDNS1123Subdomain(object)) > 0 {
		object = "event"
	}
	return object + suffix
}
