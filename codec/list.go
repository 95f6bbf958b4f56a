package codec

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
)

// maxHeadBytes limits the part of an answer that is kept besides its items: its metadata, or the members of a Status.
const maxHeadBytes = maxStatusBytes

// DecodeList decodes the only list in r, and reads r to its end. It passes each item to each as soon as the item's last
// byte has arrived. At most one item is in memory, wherever the list's metadata is in the answer. mediaType is the
// Content-Type of the answer. DecodeList blocks as r and each do, and returns the first error of each unchanged. If ctx
// ends while a large item is being decoded, the error is that of ctx.
//
// An item that cannot be decoded into T is passed to o.OnUndecodable; if that returns nil, the list continues. If the
// answer is a Status, the error is a *apierrors.StatusError; if it is a Table or anything else, a *KindError. After any
// error, each has received only a part of the list. DecodeList corresponds to decoding a PodList and meta.EachListItem
// of client-go, but never holds a PodList.
func (c *Codec[T]) DecodeList(
	ctx context.Context, r io.Reader, mediaType string, resource api.Resource, o api.Options[T], each func(T) error,
) (metav1.ListMeta, error) {
	m, err := c.media(mediaType)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	d := c.decoder(ctx, &window{r: r, limit: c.limit}, resource, o)
	d.remember(m)
	if m == mediaProtobuf {
		l := protobufList[T]{decoder: d, each: each}
		return l.read()
	}
	l := jsonList[T]{decoder: d, s: newScanner(d.ended, d.window), each: each}
	return l.read()
}

// jsonList reads a list of JSON.
type jsonList[T any] struct {
	decoder[T]
	s       *scanner
	each    func(T) error
	outline outline // of the current item

	listAPIVersion, listKind string
	meta                     metav1.ListMeta
	hasItems                 bool
	head                     bytes.Buffer // the small members of an answer that may be a Status
}

func (l *jsonList[T]) read() (metav1.ListMeta, error) {
	i, err := l.s.object(0, l.member)
	if err == nil {
		err = l.verdict()
	}
	if err == nil {
		err = l.s.end(i)
	}
	return l.meta, err
}

// member reads one member of the list, whose value begins at or after i.
func (l *jsonList[T]) member(name []byte, i int) (int, error) {
	switch string(name) {
	case "items":
		l.hasItems = true
		return l.items(i)
	case "apiVersion", "kind", "metadata", "status", "message", "reason", "details", "code":
		return l.small(string(name), i)
	default:
		if isTable(l.listAPIVersion, l.listKind) {
			return i, l.unexpected(l.listAPIVersion, l.listKind) // without reading its rows
		}
		return l.s.value(i, nil)
	}
}

// small reads a member that is kept.
func (l *jsonList[T]) small(name string, i int) (int, error) {
	i, err := l.s.next(i)
	if err != nil {
		return i, err
	}
	defer l.s.hold(&i)()
	l.outline.reset()
	end, err := l.s.value(i, &l.outline)
	if err != nil {
		return end, err
	}
	value := l.s.b[i:end]
	switch name {
	case "kind":
		l.listKind = string(textOf(value))
	case "apiVersion":
		l.listAPIVersion = string(textOf(value))
	case "metadata":
		l.meta = metav1.ListMeta{}
		r := jsonReader{cursor: l.outline.at(l.s.b)}
		if err := l.plan.listMeta(&r, reflect.ValueOf(&l.meta).Elem()); err != nil {
			return end, malformed(l.s.w.off, "metadata of a list: %w", err)
		}
		return end, nil
	}
	if l.head.Len()+len(value) <= maxHeadBytes {
		fmt.Fprintf(&l.head, ",%q:%s", name, value)
	}
	return end, nil
}

// verdict decides at the end of the answer whether it was a list. The list of a custom resource may have any kind, so
// an answer with items is a list. Without items, its kind must end in List.
func (l *jsonList[T]) verdict() error {
	switch {
	case isTable(l.listAPIVersion, l.listKind):
	case l.hasItems, strings.HasSuffix(l.listKind, "List"):
		return nil
	case isStatusKind([]byte(l.listAPIVersion), []byte(l.listKind)):
		head := append([]byte{'{'}, bytes.TrimPrefix(l.head.Bytes(), []byte{','})...)
		c, err := outlined(append(head, '}'))
		if err != nil {
			return err
		}
		return l.statusError(jsonStatus(c), l.listAPIVersion)
	}
	return l.unexpected(l.listAPIVersion, l.listKind)
}

// isTable reports whether the server answered with a printed Table instead of objects.
func isTable(apiVersion, kind string) bool {
	return strings.HasPrefix(apiVersion, metaGroup) && (kind == "Table" || kind == "TableList")
}

// items reads the items of the list.
func (l *jsonList[T]) items(i int) (int, error) {
	if kind, ok := strings.CutSuffix(l.listKind, "List"); ok && l.kind == "" {
		l.apiVersion, l.kind = l.listAPIVersion, kind
	}
	i, err := l.s.next(i)
	if err != nil {
		return i, err
	}
	if l.s.b[i] == 'n' {
		return l.s.scalar(i) // null, which Go writes for a nil slice of items
	}
	return l.s.array(i, l.item)
}

// item reads one item, which begins at or after i. The scanner holds it from its first byte.
func (l *jsonList[T]) item(i int) (int, error) {
	i, err := l.s.next(i)
	if err != nil {
		return i, err
	}
	defer l.s.hold(&i)()
	l.outline.reset()
	end, err := l.s.value(i, &l.outline)
	if err != nil {
		return end, err
	}
	obj, _, ok, err := l.jsonItem(l.s.b, &l.outline, "")
	if err == nil && ok {
		err = l.each(obj)
	}
	return end, err
}
