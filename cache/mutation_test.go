package cache_test

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/internal/fixture/must"
)

func corePod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, Labels: map[string]string{"app": "web"},
			CreationTimestamp: metav1.Time{Time: time.Unix(1, 0).UTC()},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-1",
			Containers: []corev1.Container{{
				Name: "c", Image: "nginx:1",
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("100m")}},
			}},
		},
	}
}

func TestMutationDetector(t *testing.T) {
	var d cache.MutationDetector[*corev1.Pod]
	a, b := corePod("a"), corePod("b")
	d.Observe(b)
	d.Observe(a)
	require.Equal(t, 2, d.Len())
	require.Empty(t, d.Check())

	b.Labels["app"] = "db"
	b.Labels["tier"] = "back"
	b.Spec.NodeName = ""
	a.Spec.Containers[0].Image = "nginx:2"
	a.Spec.Containers = append(a.Spec.Containers, corev1.Container{Name: "sidecar"})
	a.Annotations = map[string]string{}
	a.Name = "renamed"
	d.Observe(a) // a relist observes it again; the changed state must not become the recorded state

	found := d.Check()
	require.Equal(t, []cache.Mutation{
		{
			Key: api.Key{Namespace: "ns", Name: "a"},
			Diff: `.ObjectMeta.Name: "a" → "renamed"
.ObjectMeta.Annotations: nil → map[string]string of 0
.Spec.Containers[0].Image: "nginx:1" → "nginx:2"
.Spec.Containers[1]: nothing → v1.Container`,
		},
		{
			Key: api.Key{Namespace: "ns", Name: "b"},
			Diff: `.ObjectMeta.Labels["app"]: "web" → "db"
.ObjectMeta.Labels["tier"]: nothing → "back"
.Spec.NodeName: "node-1" → ""`,
		},
	}, found)
	require.Equal(t, "ns/b was changed after it was shared:\n"+found[1].Diff, found[1].String())

	require.Empty(t, d.Check(), "each change is reported once")
	b.Labels["app"] = "cache"
	require.Len(t, d.Check(), 1)
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
}

func TestReadingIsNoMutation(t *testing.T) {
	var d cache.MutationDetector[*corev1.Pod]
	p := corePod("a")
	d.Observe(p)
	cpu := p.Spec.Containers[0].Resources.Limits["cpu"]
	require.Equal(t, "100m", cpu.String())
	must.Get(p.Marshal())(t)
	_ = p.DeepCopy()
	_ = p.CreationTimestamp.String()
	require.Empty(t, d.Check())
	runtime.KeepAlive(p)
}

func TestDetectorForgetsTheDead(t *testing.T) {
	var d cache.MutationDetector[*pod]
	const n = 20_000
	var held []*pod
	most := 0
	for i := range n {
		p := newPod(i)
		if i%1000 == 0 {
			held = append(held, p)
			runtime.GC()
		}
		d.Observe(p)
		most = max(most, d.Len())
	}
	require.Less(t, most, n/2, "also without a Check")
	runtime.GC()
	require.Empty(t, d.Check())
	require.Less(t, d.Len(), len(held)+10)
	require.GreaterOrEqual(t, d.Len(), len(held))
	for _, p := range held {
		p.node = "changed"
	}
	require.Len(t, d.Check(), len(held))
}

func TestDetectorWatchesPointersOnly(t *testing.T) {
	require.PanicsWithValue(t, "cache: MutationDetector.Observe needs a non-nil pointer; it got cache_test.flat",
		func() { new(cache.MutationDetector[flat]).Observe(flat{}) })
	require.Panics(t, func() { new(cache.MutationDetector[*pod]).Observe(nil) })
}

// flat is an object whose type is not a pointer.
type flat struct{ metav1.ObjectMeta }

func (f flat) GetNamespace() string       { return f.Namespace }
func (f flat) GetName() string            { return f.Name }
func (f flat) GetUID() types.UID          { return f.UID }
func (f flat) GetResourceVersion() string { return f.ResourceVersion }

func TestDetectorOfInterfaces(t *testing.T) {
	var d cache.MutationDetector[metav1.Object]
	p := corePod("a")
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "u"},
		"spec":     map[string]any{"list": []any{int64(1), "two", nil}, "gone": true},
	}}
	d.Observe(p)
	d.Observe(u)
	require.Empty(t, d.Check())
	p.Spec.NodeName = "node-2"
	spec := u.Object["spec"].(map[string]any)
	spec["list"].([]any)[0] = 1.5
	spec["list"].([]any)[2] = "three"
	delete(spec, "gone")
	found := d.Check()
	require.Len(t, found, 2)
	require.Equal(t, `.Object["spec"]["gone"]: true → nothing
.Object["spec"]["list"][0]: 1 → 1.5
.Object["spec"]["list"][2]: nil → "three"`, found[0].Diff)
	require.Equal(t, `.Spec.NodeName: "node-1" → "node-2"`, found[1].Diff)
	runtime.KeepAlive(p)
	runtime.KeepAlive(u)
}

// odd has a field of every kind that a diff must handle.
type odd struct {
	flat
	Data   map[string][]byte
	Raw    []byte
	Float  float64
	Table  [2]int
	Func   func()
	Chan   chan int
	Any    any
	Text   string
	At     time.Time
	Ptr    *int
	Named  map[[1]int]string
	number int
}

func TestDiffs(t *testing.T) {
	one, two := 1, 2
	for _, c := range []struct {
		name   string
		change func(*odd)
		want   string
	}{
		{"nothing", func(o *odd) {}, ""},
		{"a secret", func(o *odd) { o.Data["password"] = []byte("hunter3") }, `.Data["password"]: 7 bytes → 7 bytes that differ`},
		{"a secret in place", func(o *odd) { o.Data["password"][0] = 'H' }, `.Data["password"]: 7 bytes → 7 bytes that differ`},
		{"a new secret", func(o *odd) { o.Data["token"] = []byte("t") }, `.Data["token"]: nothing → 1 bytes`},
		{"no secrets", func(o *odd) { o.Data = nil }, `.Data: map[string][]uint8 of 1 → nil`},
		{"raw", func(o *odd) { o.Raw = []byte("x") }, `.Raw: nil → 1 bytes`},
		{"not a number", func(o *odd) { o.Float = math.NaN() }, ""},
		{"a number", func(o *odd) { o.Float = 1 }, `.Float: NaN → 1`},
		{"an array", func(o *odd) { o.Table[1] = 5 }, `.Table[1]: 0 → 5`},
		{"a function", func(o *odd) { o.Func = func() { _ = o } }, `.Func: a function → another`},
		{"a channel", func(o *odd) { o.Chan = nil }, `.Chan: chan int → chan int`},
		{"a dynamic type", func(o *odd) { o.Any = "1" }, `.Any: 1 → "1"`},
		{"a dynamic value", func(o *odd) { o.Any = 2 }, `.Any: 1 → 2`},
		{"no value", func(o *odd) { o.Any = nil }, `.Any: 1 → nil`},
		{"a long text", func(o *odd) { o.Text = strings.Repeat("é", 100) }, `.Text: "" → "` + strings.Repeat("é", 40) + `…"`},
		{"a time", func(o *odd) { o.At = o.At.Add(time.Second) }, `.At: 1970-01-01 00:00:01 +0000 UTC → 1970-01-01 00:00:02 +0000 UTC`},
		{"a pointer", func(o *odd) { o.Ptr = &two }, `.Ptr: 1 → 2`},
		{"an equal pointer", func(o *odd) { other := 1; o.Ptr = &other }, ""},
		{"no pointer", func(o *odd) { o.Ptr = nil }, `.Ptr: 1 → nil`},
		{"a key", func(o *odd) { o.Named[[1]int{2}] = "x" }, `.Named[[1]int]: nothing → "x"`},
		{"unexported", func(o *odd) { o.number = 9 }, `.number: 0 → 9`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &odd{
				Data: map[string][]byte{"password": []byte("hunter2")}, Float: math.NaN(), Func: func() {}, Chan: make(chan int),
				Any: 1, At: time.Unix(1, 0).UTC(), Ptr: &one, Named: map[[1]int]string{},
			}
			var d cache.MutationDetector[*odd]
			d.Observe(o)
			c.change(o)
			var got string
			for _, m := range d.Check() {
				got += m.Diff
			}
			require.Equal(t, c.want, got)
			runtime.KeepAlive(o)
		})
	}
}

func TestLongDiffsAreCut(t *testing.T) {
	var d cache.MutationDetector[*corev1.Pod]
	p := corePod("a")
	d.Observe(p)
	p.Name = "b"
	for i := range 100 {
		p.Labels[fmt.Sprint(i)] = "x"
	}
	lines := strings.Split(d.Check()[0].Diff, "\n")
	require.Len(t, lines, 21)
	require.Equal(t, `.ObjectMeta.Name: "a" → "b"`, lines[0])
	require.Equal(t, "and 81 more", lines[20])
	runtime.KeepAlive(p)
}
