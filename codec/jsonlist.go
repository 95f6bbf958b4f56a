package codec

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/codec/internal/scan"
)

// maxHeadBytes limits the part of an answer that is kept besides its items: its metadata, or the members of a Status.
const maxHeadBytes = maxStatusBytes

func (c *jsonCodec) list(a *answer) (metav1.ListMeta, error) {
	l := jsonList{a: a, codec: c, s: *scan.NewScanner(a.ended, &a.window), object: c.newObjects(a)}
	return l.read()
}

// jsonList reads a list of JSON.
type jsonList struct {
	a      *answer
	codec  *jsonCodec
	s      scan.Scanner
	object jsonObject // the current item, or a small member

	listAPIVersion, listKind string
	meta                     metav1.ListMeta
	hasItems                 bool
	head                     []byte // the small members of an answer that may be a Status
}

func (l *jsonList) read() (metav1.ListMeta, error) {
	i, err := l.s.Object(0, l.member)
	if err == nil {
		err = l.verdict()
	}
	if err == nil {
		err = l.s.End(i)
	}
	return l.meta, err
}

// member reads one member of the list, whose value begins at or after i.
func (l *jsonList) member(name []byte, i int) (int, error) {
	switch string(name) {
	case "items":
		l.hasItems = true
		return l.items(i)
	case "apiVersion", "kind", "metadata", "status", "message", "reason", "details", "code":
		return l.small(string(name), i)
	default:
		if isTable(l.listAPIVersion, l.listKind) {
			return i, l.a.unexpected(l.listAPIVersion, l.listKind) // without reading its rows
		}
		return l.s.Value(i, nil)
	}
}

// small reads a member that is kept.
func (l *jsonList) small(name string, i int) (int, error) {
	i, err := l.s.Next(i)
	if err != nil {
		return i, err
	}
	i = l.s.Hold(i)
	defer l.s.Release()
	l.object.outline.Reset()
	end, err := l.s.Value(i, &l.object.outline)
	if err != nil {
		return end, err
	}
	value := l.s.B[i:end]
	switch name {
	case "kind":
		l.listKind = string(scan.TextOf(value))
	case "apiVersion":
		l.listAPIVersion = string(scan.TextOf(value))
	case "metadata":
		l.meta = metav1.ListMeta{}
		c := l.object.outline.At(l.s.B)
		metadata := listMetaPlan()
		if err := metadata.Into(&l.object.r, c, reflect.ValueOf(&l.meta).Elem()); err != nil {
			return end, malformed(l.a.window.Offset(), "metadata of a list: %w", err)
		}
		return end, nil
	}
	if len(l.head)+len(value) <= maxHeadBytes {
		l.head = append(append(append(append(l.head, `,"`...), name...), `":`...), value...)
	}
	return end, nil
}

// verdict decides at the end of the answer whether it was the requested list. The list of a custom resource may have
// any kind, so an answer with items is a list. Without items, its kind must end in List.
func (l *jsonList) verdict() error {
	switch {
	case isTable(l.listAPIVersion, l.listKind):
	case l.hasItems, strings.HasSuffix(l.listKind, "List"):
		return l.a.checkList(l.listAPIVersion, l.listKind)
	case isStatusKind([]byte(l.listAPIVersion), []byte(l.listKind)):
		return l.status()
	}
	return l.a.unexpected(l.listAPIVersion, l.listKind)
}

// status returns the error of a Status. Its members are in head.
func (l *jsonList) status() error {
	head := append(l.head, '}') // it begins with a comma
	head[0] = '{'
	if err := l.object.outline.Scan(head); err != nil {
		return err
	}
	l.object.set(head)
	return l.a.statusError(&l.object)
}

// items reads the items of the list. If the list has named another kind already, it reads none. The kind of a list of
// custom resources comes behind the items.
func (l *jsonList) items(i int) (int, error) {
	if l.listKind != "" {
		if err := l.a.checkList(l.listAPIVersion, l.listKind); err != nil {
			return i, err
		}
	}
	if kind, ok := strings.CutSuffix(l.listKind, "List"); ok && l.a.kind == "" {
		l.a.apiVersion, l.a.kind = l.listAPIVersion, kind
	}
	i, err := l.s.Next(i)
	if err != nil {
		return i, err
	}
	if l.s.B[i] == 'n' {
		return l.s.Scalar(i) // null, which Go writes for a nil slice of items
	}
	return l.s.Array(i, l.element)
}

// element reads one item, which begins at or after i. The scanner holds it from its first byte.
func (l *jsonList) element(i int) (int, error) {
	i, err := l.s.Next(i)
	if err != nil {
		return i, err
	}
	i = l.s.Hold(i)
	defer l.s.Release()
	l.object.outline.Reset()
	end, err := l.s.Value(i, &l.object.outline)
	if err != nil {
		return end, err
	}
	l.object.set(l.s.B)
	obj, _, ok, err := l.a.item(&l.object, "")
	if err == nil && ok {
		err = l.a.each(obj)
	}
	return end, err
}
