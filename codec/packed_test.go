package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

// managedPod is a pod with managedFields, and with a generation, so that fields follow them.
func managedPod(i int) *corev1.Pod {
	p := newPod(i)
	p.Generation = int64(i)
	p.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)},
		{Manager: "scheduler"},
	}
	return p
}

// requireSamePacked decodes a list both ways and requires the same objects, reports and error.
func requireSamePacked[T api.Object](t testing.TB, body, media string, resource api.Resource, drop bool) {
	t.Helper()
	requireSamePackedBy(t, codec.New[T](codec.Options{}), codec.NewPacker[T](codec.Options{}), body, media, resource, drop)
}

func requireSamePackedBy[T api.Object](t testing.TB, c *codec.Codec[T], k *codec.Packer[T], body, media string, resource api.Resource, drop bool) {
	t.Helper()
	var wholeBad, packedBad []string
	note := func(to *[]string) func(*api.UndecodableError) error {
		return func(e *api.UndecodableError) error {
			*to = append(*to, fmt.Sprint(e.Key, e.UID, e.ResourceVersion, e.Err))
			return nil
		}
	}
	whole, wholeMeta, wholeErr := collect(c, body, media, resource,
		api.Options[T]{DropManagedFields: drop, OnUndecodable: note(&wholeBad)})
	packed, packedMeta, packedErr := collect(k.Codec(nil), body, media, resource,
		api.Options[*codec.Packed]{DropManagedFields: drop, OnUndecodable: note(&packedBad)})
	require.Equal(t, wholeMeta, packedMeta)
	require.Equal(t, fmt.Sprint(wholeErr), fmt.Sprint(packedErr))
	require.Equal(t, wholeBad, packedBad)
	require.Len(t, packed, len(whole))
	identities, last := k.Identities(), (*codec.Packed)(nil)
	var lastStub T
	for i, p := range packed {
		object := must.Get(k.Unpack(p))(t)
		requireSame(t, whole[i], object)
		requireIdentity(t, whole[i], p)
		stub := must.Get(identities(p))(t)
		requireIdentity(t, stub, p)
		if last != nil {
			requireIdentity(t, lastStub, last) // it is valid until the next call
		}
		last, lastStub = p, stub
	}
}

func requireIdentity(t testing.TB, want, got api.Object) {
	t.Helper()
	require.Equal(t, api.KeyOf(want), api.KeyOf(got))
	require.Equal(t, want.GetUID(), got.GetUID())
	require.Equal(t, want.GetResourceVersion(), got.GetResourceVersion())
}

// TestPackedObjectsAreThoseOfTheCodec reads the same answers whole and packed, in both formats and as several types.
func TestPackedObjectsAreThoseOfTheCodec(t *testing.T) {
	for _, media := range []string{codec.MediaTypeJSON, codec.MediaTypeProtobuf} {
		for _, drop := range []bool{false, true} {
			t.Run(fmt.Sprint(media, drop), func(t *testing.T) {
				body := string(listOf(media, managedPod(1), newPod(2), managedPod(3)))
				requireSamePacked[*corev1.Pod](t, body, media, pods, drop)
				requireSamePacked[*small](t, body, media, pods, drop)
				if media == codec.MediaTypeJSON {
					requireSamePacked[*unstructured.Unstructured](t, body, media, pods, drop)
				}
			})
		}
	}
}

// TestPackedDropsManagedFields looks into the bytes.
func TestPackedDropsManagedFields(t *testing.T) {
	for _, media := range []string{codec.MediaTypeJSON, codec.MediaTypeProtobuf} {
		k := codec.NewPacker[*corev1.Pod](codec.Options{})
		packed, _, err := collect(k.Codec(nil), string(listOf(media, managedPod(1))), media, pods, api.Options[*codec.Packed]{DropManagedFields: true})
		require.NoError(t, err)
		data, plain := packed[0].Data()
		require.True(t, plain)
		require.NotContains(t, data, "kubelet")
		require.NotContains(t, data, "f:status")
	}
}

func listOf(media string, items ...*corev1.Pod) []byte {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
	for _, p := range items {
		list.Items = append(list.Items, *p)
	}
	if media == codec.MediaTypeProtobuf {
		return sealed("v1", "PodList", list)
	}
	list.APIVersion, list.Kind = "v1", "PodList"
	return mustJSON(list)
}

// FuzzPacked compares whole and packed objects for any list.
func FuzzPacked(f *testing.F) {
	for _, media := range []string{codec.MediaTypeJSON, codec.MediaTypeProtobuf} {
		f.Add(listOf(media, managedPod(1), newPod(2)), media == codec.MediaTypeProtobuf)
	}
	addPacked := func(cases []malformedCase, protobuf bool) {
		for _, c := range cases {
			if len(c.body) < 8<<10 {
				f.Add([]byte(c.body), protobuf)
			}
		}
	}
	addPacked(malformedJSONObjects, false)
	whole, packer := codec.New[*corev1.Pod](codec.Options{}), codec.NewPacker[*corev1.Pod](codec.Options{})
	generic, genericPacker := codec.New[*unstructured.Unstructured](codec.Options{}), codec.NewPacker[*unstructured.Unstructured](codec.Options{})
	f.Fuzz(func(t *testing.T, b []byte, protobuf bool) {
		if len(b) > fuzzLimit {
			return
		}
		media := codec.MediaTypeJSON
		if protobuf {
			media = codec.MediaTypeProtobuf
		} else {
			requireSamePackedBy(t, generic, genericPacker, string(b), media, pods, true)
		}
		requireSamePackedBy(t, whole, packer, string(b), media, pods, true)
		requireSamePackedBy(t, whole, packer, string(b), media, pods, false)
	})
}

// TestPackerPacksObjects packs objects that were changed after they were decoded.
func TestPackerPacksObjects(t *testing.T) {
	k := codec.NewPacker[*corev1.Pod](codec.Options{})
	pod := newPod(1)
	pod.Labels = map[string]string{"changed": "yes"}
	p := must.Get(k.Pack(pod))(t)
	back := must.Get(k.Unpack(p))(t)
	requireSame(t, pod, back)
	other := must.Get(codec.NewPacker[*unstructured.Unstructured](codec.Options{}).Pack(&unstructured.Unstructured{Object: map[string]any{"spec": int64(1)}}))(t)
	data, _ := other.Data()
	require.Equal(t, `{"spec":1}`, data)
}

// TestUnpackReturnsItsOwnObject changes an unpacked object, and unpacks on many goroutines.
func TestUnpackReturnsItsOwnObject(t *testing.T) {
	k := codec.NewPacker[*corev1.Pod](codec.Options{})
	p := must.Get(k.Pack(newPod(1)))(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				object, err := k.Unpack(p)
				if err != nil || object.Labels["mine"] != "" {
					panic(fmt.Sprint(object, err))
				}
				object.Labels["mine"] = "yes"
				object.Spec.Containers[0].Name = "mine"
			}
		})
	}
	all.Wait()
	object := must.Get(k.Unpack(p))(t)
	requireSame(t, newPod(1), object)
}

// TestCoding encodes an object, and one that would not get smaller.
func TestCoding(t *testing.T) {
	halves := codec.NewCoding(
		func(dst, src []byte) []byte { return append(dst, src[:len(src)/2]...) },
		func(dst, src []byte) ([]byte, error) { return append(append(dst, src...), src...), nil },
	)
	k := codec.NewPacker[*unstructured.Unstructured](codec.Options{})
	pack := func(value string) *codec.Packed {
		return must.Get(k.Pack(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "b": value}}))(t)
	}
	p := pack("x")
	before := p.Len()
	same := must.Get(p.MarshalJSON())(t)
	data, plain := p.Data()
	require.True(t, plain)
	halves.Encode(p, []byte(data))
	require.Equal(t, before/2, p.Len())
	_, plain = p.Data()
	require.False(t, plain)
	halves.Encode(p, []byte(data))
	require.Equal(t, before/2, p.Len(), "encoded twice")
	require.Equal(t, "a", p.GetName())
	require.Error(t, must.Err(k.Unpack(p)), "two halves are no JSON")
	require.Equal(t, "a", must.Get(k.Identities()(p))(t).GetName())

	growing := codec.NewCoding(
		func(dst, src []byte) []byte { return append(append(dst, src...), '!') },
		func([]byte, []byte) ([]byte, error) { return nil, errors.New("unused") },
	)
	p = pack("x")
	growing.Encode(p, []byte(data))
	require.Equal(t, before, p.Len())
	require.Equal(t, same, must.Get(p.MarshalJSON())(t))
}

// TestEncodeBesideReaders encodes an object that was delayed, while others read it. The one that would not get smaller
// stays plain.
func TestEncodeBesideReaders(t *testing.T) {
	for _, part := range []int{1, 2} {
		coding := codec.NewCoding(
			func(dst, src []byte) []byte { return append(dst, src[:len(src)/part]...) },
			func(dst, src []byte) ([]byte, error) {
				object, err := json.Marshal(managedPod(1))
				return append(dst, object...), err
			},
		)
		k := codec.NewPacker[*corev1.Pod](codec.Options{})
		c := k.Codec((*codec.Packed).Delay)
		packed, _, err := collect(c, string(listOf(codec.MediaTypeJSON, managedPod(1))), codec.MediaTypeJSON, pods, api.Options[*codec.Packed]{})
		require.NoError(t, err)
		p := packed[0]
		data, plain := p.Data()
		require.True(t, plain)
		require.Equal(t, len(data), p.Len())
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 50 {
					object, err := k.Unpack(p)
					if err != nil || object.Name != managedPod(1).Name || p.Len() == 0 {
						panic(fmt.Sprint(object, err))
					}
				}
			})
		}
		coding.Encode(p, []byte(data))
		all.Wait()
		require.Equal(t, len(data)/part, p.Len())
		_, plain = p.Data()
		require.Equal(t, part == 1, plain)
	}
}

// TestPackedReusesKnownObjects returns the very object that Known has, and packs only the others.
func TestPackedReusesKnownObjects(t *testing.T) {
	k := codec.NewPacker[*corev1.Pod](codec.Options{})
	added := 0
	c := k.Codec(func(p *codec.Packed, plain []byte) { added++; p.Keep(plain) })
	read := func(o api.Options[*codec.Packed]) []*codec.Packed {
		items, _, err := collect(c, string(podList(3, codec.MediaTypeProtobuf)), codec.MediaTypeProtobuf, pods, o)
		require.NoError(t, err)
		return items
	}
	first := read(api.Options[*codec.Packed]{})
	require.Equal(t, 3, added)
	second := read(api.Options[*codec.Packed]{Known: func(_, name []byte) (*codec.Packed, bool) {
		for _, p := range first[:2] {
			if p.GetName() == string(name) {
				return p, true
			}
		}
		return nil, false
	}})
	require.Equal(t, 4, added)
	require.Same(t, first[0], second[0])
	require.Same(t, first[1], second[1])
	require.NotSame(t, first[2], second[2])
}

// TestPackedRefusesLongIdentities has a UID that Packed has no room for.
func TestPackedRefusesLongIdentities(t *testing.T) {
	body := fmt.Sprintf(`{"kind":"PodList","items":[{"metadata":{"name":"a","uid":%q}}]}`, bytes.Repeat([]byte("u"), 1<<16))
	_, _, err := collect(codec.NewPacker[*corev1.Pod](codec.Options{}).Codec(nil), body, codec.MediaTypeJSON, pods, api.Options[*codec.Packed]{})
	var undecodable *api.UndecodableError
	require.ErrorAs(t, err, &undecodable)
	require.Equal(t, "a", undecodable.Key.Name)
}
