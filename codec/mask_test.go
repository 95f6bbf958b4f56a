package codec_test

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

// eachField calls f with the fields of a struct as JSON shows them.
func eachField(t reflect.Type, f func(name string, index []int, typ reflect.Type)) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			eachField(field.Type, func(name string, index []int, typ reflect.Type) { f(name, append([]int{i}, index...), typ) })
		} else if field.IsExported() && name != "-" {
			f(name, []int{i}, field.Type)
		}
	}
}

// hasFields reports whether a path may continue below t.
func hasFields(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() != "time" && !reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ UnmarshalJSON([]byte) error }]())
}

// path returns a random path below t.
func (f filler) path(t reflect.Type, at string) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch {
	case at != "" && f.IntN(4) == 0:
	case t.Kind() == reflect.Map:
		if f.IntN(2) == 0 {
			return f.path(t.Elem(), at+"[*]")
		}
		return f.path(t.Elem(), at+"["+strconv.Quote(f.word())+"]")
	case hasFields(t):
		var names []string
		var types []reflect.Type
		eachField(t, func(name string, _ []int, typ reflect.Type) { names, types = append(names, name), append(types, typ) })
		i := f.IntN(len(names))
		return f.path(types[i], strings.TrimPrefix(at+"."+names[i], "."))
	}
	return at
}

// keepOnly sets everything in v to zero that no path keeps. A path in paths is the rest of one behind v.
func keepOnly(v reflect.Value, paths []string) {
	for _, p := range paths {
		if p == "" {
			return
		}
	}
	behind := func(sign string) (rest []string) {
		for _, p := range paths {
			if after, ok := strings.CutPrefix(p, sign); ok && (after == "" || after[0] == '.' || after[0] == '[') {
				rest = append(rest, after)
			}
		}
		return rest
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			keepOnly(v.Elem(), paths)
		}
	case reflect.Slice:
		for i := range v.Len() {
			keepOnly(v.Index(i), paths)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			rest := append(behind("["+strconv.Quote(key.String())+"]"), behind("[*]")...)
			value := reflect.New(v.Type().Elem()).Elem()
			if len(rest) > 0 {
				value.Set(v.MapIndex(key))
				keepOnly(value, rest)
				v.SetMapIndex(key, value)
			} else {
				v.SetMapIndex(key, reflect.Value{})
			}
		}
	case reflect.Struct:
		eachField(v.Type(), func(name string, index []int, _ reflect.Type) {
			if rest := behind("." + name); len(rest) > 0 {
				keepOnly(v.FieldByIndex(index), rest)
			} else {
				v.FieldByIndex(index).SetZero()
			}
		})
	}
}

var alwaysKept = strings.Fields(".apiVersion .kind .metadata.name .metadata.namespace .metadata.uid .metadata.resourceVersion " +
	".metadata.generation .metadata.creationTimestamp .metadata.deletionTimestamp .metadata.deletionGracePeriodSeconds " +
	".metadata.ownerReferences .metadata.finalizers")

// TestMask reads random pods with random masks, in both formats, as three types and packed, and compares them with
// whole pods in which the other fields were set to zero.
func TestMask(t *testing.T) {
	for seed := range uint64(80) {
		f := newFiller(seed, float64(seed%4)/4)
		var paths []string
		want, labels := alwaysKept, " .metadata.labels"
		for range 1 + f.IntN(6) {
			path := f.path(reflect.TypeFor[corev1.Pod](), "")
			switch {
			case path == "metadata":
				paths, labels = append(paths, path), ""
				eachField(reflect.TypeFor[metav1.ObjectMeta](), func(name string, _ []int, _ reflect.Type) {
					if name != "managedFields" {
						want = append(want[:len(want):len(want)], ".metadata."+name)
					}
				})
			case !strings.HasPrefix(path, "metadata.managedFields"):
				paths, want = append(paths, path), append(want[:len(want):len(want)], "."+path)
			}
			if strings.HasPrefix(path, "metadata.labels") {
				labels = ""
			}
		}
		want = append(want, strings.Fields(labels)...)
		if len(paths) == 0 {
			continue
		}
		pod := &corev1.Pod{}
		f.fill(reflect.ValueOf(pod).Elem(), 0)
		pod.APIVersion, pod.Kind, pod.Name, pod.ResourceVersion = "v1", "Pod", "p", "7"
		kept := pod.DeepCopy()
		keepOnly(reflect.ValueOf(kept).Elem(), want)
		note := fmt.Sprint(seed, paths)

		mask, err := codec.NewMask[*corev1.Pod](paths...)
		require.NoError(t, err, note)
		masked, packer := codec.NewMasked[*corev1.Pod](mask, codec.Options{}), codec.NewMaskedPacker[*corev1.Pod](mask, codec.Options{})
		for _, media := range []string{asJSON, asProtobuf} {
			body := string(listOf(media, pod, pod))
			whole, _, err := collect(podCodec, body, media, pods, podOptions{})
			require.NoError(t, err, note)
			keepOnly(reflect.ValueOf(whole[0]).Elem(), want)
			got, _, err := collect(masked, body, media, pods, podOptions{ShareParts: seed%2 == 0})
			require.NoError(t, err, note)
			packed, _, err := collect(packer.Codec(nil), body, media, pods, api.Options[*codec.Packed]{})
			require.NoError(t, err, note)
			for _, pod := range append(got, must.Get(packer.Unpack(packed[1]))(t)) {
				fields, ok := codec.MaskOf(pod)
				require.True(t, ok, note)
				require.Equal(t, mask.String(), fields)
				pod.ManagedFields = nil
				requireSame(t, whole[0], pod)
			}
		}

		generic := must.Get(codec.NewMask[*unstructured.Unstructured](paths...))(t)
		got := must.Get(codec.NewMasked[*unstructured.Unstructured](generic, codec.Options{}).
			DecodeObject(t.Context(), strings.NewReader(string(mustJSON(pod))), asJSON, pods))(t)
		fields, ok := codec.MaskOf(got)
		require.True(t, ok)
		require.Equal(t, generic.String(), fields)
		delete(got.Object["metadata"].(map[string]any), "managedFields")
		typed := &corev1.Pod{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, typed))
		back := must.Get(podCodec.DecodeObject(t.Context(), strings.NewReader(string(mustJSON(kept))), asJSON, pods))(t)
		requireSame(t, back, typed)
	}
}

// TestMaskPaths checks which paths are accepted, how they are written, and what an error names.
func TestMaskPaths(t *testing.T) {
	for paths, want := range map[string]string{
		`spec.nodeName`:                       `spec.nodeName`,
		`status.conditions[type,status]`:      `status.conditions.status,status.conditions.type`,
		`spec[nodeName,containers[name,env]]`: `spec.containers.env,spec.containers.name,spec.nodeName`,
		`metadata.labels["a.b/c]d"]`:          `metadata.labels["a.b/c]d"]`,
		`metadata.labels[*]`:                  `metadata.labels[*]`,
		`spec.volumes.configMap.name`:         `spec.volumes.configMap.name`,
		`metadata`:                            `metadata`,
	} {
		m, err := codec.NewMask[*corev1.Pod](paths, paths)
		require.NoError(t, err, paths)
		require.Equal(t, want, m.String())
	}
	for path, cause := range map[string]string{
		``: "ends too early", `spec.`: "ends too early", `spec..x`: `unexpected ".x"`, `spec[nodeName`: "ends too early",
		`spec.nodeName]`: `unexpected "]"`, `metadata.labels["a`: `unexpected`, `spec.*`: `unexpected "*"`,
		`spec.nodName`:                   `v1.PodSpec has no field "nodName"`,
		`spec.nodeName.x`:                `string has no field "x"`,
		`metadata.labels.app`:            `write metadata.labels["key"]`,
		`spec.containers["x"]`:           "spec.containers is no map",
		`spec.containers[0]`:             "0 is an index",
		`metadata.creationTimestamp.x`:   `Time has no field "x"`,
		`metadata.managedFields`:         "mark masked objects",
		`metadata.managedFields.manager`: "mark masked objects",
	} {
		_, err := codec.NewMask[*corev1.Pod]("spec.nodeName", path)
		require.ErrorContains(t, err, cause, path)
		require.ErrorContains(t, err, fmt.Sprintf("the path %q in the mask of *v1.Pod", path))
	}
	_, err := codec.NewMask[*corev1.Pod]()
	require.ErrorContains(t, err, "has no path")
	_, err = codec.NewMask[corev1.Pod]("spec")
	require.ErrorContains(t, err, "needs a pointer to a struct")
	mask := must.Get(codec.NewMask[*corev1.Pod]("spec.nodeName"))(t)
	require.PanicsWithValue(t, "codec: the mask is for *v1.Pod, and the objects are *v1.Node", func() {
		codec.NewMasked[*corev1.Node](mask, codec.Options{})
	})
}

// TestMaskSurvives checks that a copy of a masked object is still refused, and a whole object is not.
func TestMaskSurvives(t *testing.T) {
	mask := must.Get(codec.NewMask[*corev1.Pod]("spec.nodeName", `metadata.labels["app"]`))(t)
	pod := must.Get(codec.NewMasked[*corev1.Pod](mask, codec.Options{}).
		DecodeObject(t.Context(), strings.NewReader(string(mustJSON(managedPod(1)))), asJSON, pods))(t)
	var refused *codec.MaskedError
	require.ErrorAs(t, codec.RefuseMasked(pod.DeepCopy()), &refused)
	require.Equal(t, mask.String(), refused.Fields)
	content := must.Get(runtime.DefaultUnstructuredConverter.ToUnstructured(pod))(t)
	require.ErrorAs(t, codec.RefuseMasked(&unstructured.Unstructured{Object: content}), &refused)
	require.NoError(t, codec.RefuseMasked(managedPod(1)))
	chosen := managedPod(1)
	chosen.ManagedFields[0].Manager, chosen.ManagedFields[0].Operation = codec.MaskPrefix+"x)", metav1.ManagedFieldsOperationUpdate
	require.NoError(t, codec.RefuseMasked(chosen), "a client chose this manager")
	require.True(t, mask.KeepsLabel("app"))
	require.False(t, mask.KeepsLabel("other"))
	require.True(t, must.Get(codec.NewMask[*corev1.Pod]("spec"))(t).KeepsLabel("other"))
	require.NoError(t, codec.RefuseMasked((*corev1.Pod)(nil)))
	require.NoError(t, codec.RefuseMasked("text"))
	require.NoError(t, codec.RefuseMasked(&metav1.ObjectMeta{}))
	s := mask.Stats()
	require.EqualValues(t, 1, s.Objects)
	require.Less(t, 8*s.Kept, s.Read)
}

// TestMaskOfBrokenObjects checks that a mask does not hide an object that cannot be decoded, and does not report one
// whose broken field it drops.
func TestMaskOfBrokenObjects(t *testing.T) {
	mask := must.Get(codec.NewMask[*corev1.Pod]("spec.nodeName"))(t)
	c := codec.NewMasked[*corev1.Pod](mask, codec.Options{})
	decode := func(media, body string) error {
		_, err := c.DecodeObject(t.Context(), strings.NewReader(body), media, pods)
		return err
	}
	require.NoError(t, decode(asJSON, `{"metadata":{"name":"p"},"spec":{"hostname":[]}}`))
	require.ErrorContains(t, decode(asJSON, `{"metadata":{"name":"p"},"spec":{"nodeName":[]}}`), "spec.nodeName")
	require.ErrorContains(t, decode(asJSON, `{"metadata":{"name":"p"},"spec":[]}`), "spec")
	require.ErrorContains(t, decode(asJSON, `{"metadata":{"name":"p"},"spec":{"hostname":}}`), "malformed")
	raw := must.Get((&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "n", Hostname: "h"}}).Marshal())(t)
	require.NoError(t, decode(asProtobuf, string(sealedBytes("v1", "Pod", raw))))
	require.Error(t, decode(asProtobuf, string(sealedBytes("v1", "Pod", raw[:len(raw)-3]))))

	// Packed objects have no identity in their bytes, but the report of a broken one names it.
	bad := append(must.Get((&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bad"}}).Marshal())(t), 3<<3|2, 3, 7<<3|2, 1, 0xff) // its startTime
	list := append(protowire.AppendBytes([]byte{2<<3 | 2}, bad), append([]byte{2<<3 | 2}, protowire.AppendBytes(nil, raw)...)...)
	started := must.Get(codec.NewMask[*corev1.Pod]("status.startTime"))(t)
	var reported []string
	got, _, err := collect(codec.NewMaskedPacker[*corev1.Pod](started, codec.Options{}).Codec(nil), string(sealedBytes("v1", "PodList", list)), asProtobuf, pods,
		api.Options[*codec.Packed]{OnUndecodable: func(e *api.UndecodableError) error {
			reported = append(reported, e.Key.Name)
			return nil
		}})
	require.NoError(t, err)
	require.Equal(t, []string{"bad"}, reported)
	require.Len(t, got, 1)
}

// TestMaskOfManySmallElements reads an object in JSON that a mask makes denser than the limit of tokens allows.
func TestMaskOfManySmallElements(t *testing.T) {
	mask := must.Get(codec.NewMask[*unstructured.Unstructured]("spec.list.image"))(t)
	body := `{"metadata":{"name":"p"},"spec":{"list":[` + strings.Repeat(`{"x":1},`, 40_000) + `{"image":"i"}]}}`
	o := must.Get(codec.NewMasked[*unstructured.Unstructured](mask, codec.Options{}).DecodeObject(t.Context(), strings.NewReader(body), asJSON, api.Resource{}))(t)
	require.Equal(t, "p", o.GetName())
	all, _, _ := unstructured.NestedSlice(o.Object, "spec", "list")
	require.Len(t, all, 40_001)
}
