package api_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

// widget is a user's type without DeepCopy that has every kind of field.
type widget struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	inner

	Text     string
	Bytes    []byte
	Names    []string
	Limits   map[string]resource.Quantity
	Nested   map[string][]map[string]*int
	Parts    []part
	Table    [2][]int
	Any      any
	Object   runtime.Object
	Next     *widget
	Children []*widget
	ByName   map[string]widget
	At       time.Time
	Until    *metav1.Time
	Func     func() int
	Chan     chan int
	Pointers **string
	private  string
}

type inner struct{ Tags []string }

type part struct {
	Name  string
	Extra map[string]string
}

// plainPod is a Pod without its DeepCopy.
type plainPod corev1.Pod

func TestCloneSharesNothing(t *testing.T) {
	for seed := range uint64(50) {
		f := filler{rand.New(rand.NewPCG(seed, 2))}

		w := fill[widget](f)
		w.private = "kept"
		copied := api.Clone(w)
		requireSame(t, w, copied)
		requireDisjoint(t, w, copied)
		requireDisjoint(t, &w, api.Clone(&w))

		p := fill[corev1.Pod](f)
		deep := p.DeepCopy()
		require.Equal(t, plainPod(*deep), api.Clone(plainPod(p)))
		require.Equal(t, deep, api.Clone(&p))
		require.Equal(t, *deep, api.Clone(p))
		requireDisjoint(t, p, api.Clone(p))
		requireDisjoint(t, plainPod(p), api.Clone(plainPod(p)))

		d := fill[metav1.PartialObjectMetadata](f)
		require.Equal(t, d.DeepCopy(), api.Clone(&d))
		requireDisjoint(t, d, api.Clone(d))
	}
}

func TestCloneUnstructured(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"x": "y"}},
		"list":     []any{int64(1), 2.5, true, nil, map[string]any{}},
	}}
	copied := api.Clone(u)
	require.Equal(t, u, copied)
	requireDisjoint(t, u, copied)
	require.Equal(t, u.Object, api.Clone(u.Object))
	requireDisjoint(t, u.Object, api.Clone(u.Object))
}

func TestCloneKeepsNilAndEmpty(t *testing.T) {
	type holder struct {
		Slice   []string
		Map     map[string]int
		Pointer *part
		Time    *metav1.Time
		Any     any
		Pod     *corev1.Pod
		List    corev1.ResourceList
	}
	require.Equal(t, holder{}, api.Clone(holder{}))
	empty := holder{
		Slice: []string{}, Map: map[string]int{}, Pointer: &part{}, Time: &metav1.Time{}, Any: []int{}, Pod: &corev1.Pod{},
		List: corev1.ResourceList{},
	}
	require.Equal(t, empty, api.Clone(empty))

	require.Nil(t, api.Clone[*corev1.Pod](nil))
	require.Nil(t, api.Clone[*widget](nil))
	require.Nil(t, api.Clone[any](nil))
	require.Nil(t, api.Clone[runtime.Object](nil))
	require.Nil(t, api.Clone[map[string]int](nil))
	require.Nil(t, api.Clone[*careless](nil))
	require.Nil(t, api.Clone(struct{ C *careless }{}).C)
}

// careless has a DeepCopy that panics for nil.
type careless struct{ calls *int }

func (c *careless) DeepCopy() *careless {
	*c.calls++
	return &careless{calls: c.calls}
}

// byValue has a DeepCopy with a value receiver.
type byValue struct{ calls *int }

func (b byValue) DeepCopy() byValue {
	*b.calls++
	return b
}

// misnamed has a DeepCopy with another signature.
type misnamed struct{ Slice []int }

func (m *misnamed) DeepCopy(int) *misnamed { return m }

func TestCloneCallsOwnDeepCopy(t *testing.T) {
	calls := 0
	c := careless{&calls}
	api.Clone(&c)
	require.Equal(t, 1, calls)
	api.Clone(c)
	require.Equal(t, 2, calls)
	api.Clone(struct {
		A careless
		B *careless
		C []careless
		D map[string]careless
		E any
	}{A: c, B: &c, C: []careless{c, c}, D: map[string]careless{"d": c}, E: &c})
	require.Equal(t, 8, calls)

	calls = 0
	b := byValue{&calls}
	api.Clone(b)
	api.Clone(&b)
	api.Clone(struct{ B *byValue }{&b})
	api.Clone([]any{b, &b})
	require.Equal(t, 5, calls)

	m := &misnamed{Slice: []int{1}}
	requireDisjoint(t, m, api.Clone(m))
}

func TestCloneSharesFunctionsAndChannels(t *testing.T) {
	ch := make(chan int)
	w := widget{Func: func() int { return 42 }, Chan: ch, private: "kept", Names: []string{"a"}}
	copied := api.Clone(&w)
	require.Equal(t, 42, copied.Func())
	require.Equal(t, ch, copied.Chan)
	require.Equal(t, "kept", copied.private)
}

func TestCloneIsSafeForConcurrentUse(t *testing.T) {
	type fresh struct { // a type of this test only, so that its copier is made here
		Next *fresh
		Map  map[string]*fresh
	}
	v := &fresh{Next: &fresh{Map: map[string]*fresh{"a": {}}}}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if copied := api.Clone(v); !reflect.DeepEqual(v, copied) {
				t.Errorf("a clone differs: %v", copied)
			}
		})
	}
	wg.Wait()
}

// filler fills values with random content, as a fuzzer would.
type filler struct{ r *rand.Rand }

func fill[T any](f filler) T {
	var v T
	f.fill(reflect.ValueOf(&v).Elem(), 0)
	return v
}

func (f filler) fill(v reflect.Value, depth int) {
	if !v.CanSet() || depth > 9 {
		return
	}
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(f.r.Int64N(1e9), 0)))
		return
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse([]string{"1", "250m", "1Gi", "123456789012345678901234567890"}[f.r.IntN(4)])))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", f.r.IntN(1000)))
	case reflect.Bool:
		v.SetBool(f.r.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(f.r.Int64N(100))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(f.r.Uint64N(100))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(f.r.Float64())
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i), depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Pointer:
		if f.r.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if n := f.r.IntN(4); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n-1, n+2))
			for i := range v.Len() {
				f.fill(v.Index(i), depth+1)
			}
		}
	case reflect.Map:
		f.fillMap(v, depth)
	case reflect.Interface:
		f.fillInterface(v, depth)
	}
}

func (f filler) fillMap(v reflect.Value, depth int) {
	n := f.r.IntN(4)
	if n == 0 {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for range n - 1 {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key, depth+1)
		f.fill(value, depth+1)
		v.SetMapIndex(key, value)
	}
}

func (f filler) fillInterface(v reflect.Value, depth int) {
	switch v.Type() {
	case reflect.TypeFor[any]():
		v.Set(reflect.ValueOf([]any{1, "x", []string{"a"}, map[string]any{"k": []int{1}}, part{Extra: map[string]string{"a": "b"}}}[f.r.IntN(5)]))
	case reflect.TypeFor[runtime.Object]():
		if depth < 3 {
			v.Set(reflect.ValueOf(&metav1.Status{Message: "m", Details: &metav1.StatusDetails{UID: types.UID("u")}}))
		}
	}
}

// requireSame is require.Equal for values with functions, which are equal if they are the same function.
func requireSame(t *testing.T, want, got widget) {
	t.Helper()
	require.Nil(t, want.Func)
	require.Equal(t, want, got)
}

// requireDisjoint fails if both values can change the same memory.
func requireDisjoint(t *testing.T, a, b any) {
	t.Helper()
	mine, theirs := memory{}, memory{}
	mine.collect(reflect.ValueOf(a), "a")
	theirs.collect(reflect.ValueOf(b), "b")
	for address, path := range mine {
		if other, shared := theirs[address]; shared {
			t.Fatalf("%s and %s share memory", path, other)
		}
	}
}

// memory maps the addresses that a value refers to, including those in unexported fields, to the path of each.
type memory map[uintptr]string

func (m memory) collect(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || v.Type() == reflect.TypeFor[*time.Location]() {
			return
		}
		if v.Type().Elem().Size() > 0 {
			m[v.Pointer()] = path
		}
		m.collect(v.Elem(), path)
	case reflect.Interface:
		if !v.IsNil() {
			m.collect(v.Elem(), path)
		}
	case reflect.Slice:
		if v.Cap() > 0 && v.Type().Elem().Size() > 0 {
			m[v.Pointer()] = path
		}
		for i := range v.Len() {
			m.collect(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Array:
		for i := range v.Len() {
			m.collect(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Map:
		if !v.IsNil() {
			m[v.Pointer()] = path
		}
		for entries := v.MapRange(); entries.Next(); {
			m.collect(entries.Value(), fmt.Sprintf("%s[%v]", path, entries.Key()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			m.collect(v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	}
}

func BenchmarkClone(b *testing.B) {
	f := filler{rand.New(rand.NewPCG(1, 2))}
	pod := fill[corev1.Pod](f)
	own := fill[widget](f)
	small := &part{Name: "a", Extra: map[string]string{"a": "b"}}
	b.Run("type=pod", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			api.Clone(&pod)
		}
	})
	b.Run("type=widget", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			api.Clone(&own)
		}
	})
	b.Run("type=small", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			api.Clone(small)
		}
	})
}
