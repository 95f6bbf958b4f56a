package api_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
)

func TestCompareVersions(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		order int
		ok    bool
	}{
		{"1", "2", -1, true},
		{"2", "1", 1, true},
		{"7", "7", 0, true},
		{"9", "10", -1, true},
		{"99999999999999999999999999", "100000000000000000000000000", -1, true},
		{"18446744073709551616", "18446744073709551615", 1, true},
		{"", "", 0, true},
		{"", "1", 0, false},
		{"1", "", 0, false},
		{"abc", "abc", 0, true},
		{"abc", "abd", 0, false},
		{"1", "abc", 0, false},
		{"01", "1", 0, false},
		{"1", "01", 0, false},
		{"-1", "1", 0, false},
		{"1.0", "1", 0, false},
		{" 1", "1", 0, false},
		{"1e3", "1000", 0, false},
	} {
		t.Run(fmt.Sprintf("%q,%q", c.a, c.b), func(t *testing.T) {
			order, ok := api.CompareVersions(c.a, c.b)
			require.Equal(t, c.ok, ok)
			if ok {
				require.Equal(t, c.order, sign(order))
			}
			back, okBack := api.CompareVersions(c.b, c.a)
			require.Equal(t, ok, okBack)
			if ok {
				require.Equal(t, -sign(order), sign(back))
			}
		})
	}
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	default:
		return 0
	}
}

func TestSameVersion(t *testing.T) {
	object := func(uid, version string) api.Object {
		return &metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}
	}
	require.True(t, api.SameVersion(object("u", "1"), object("u", "1")))
	require.False(t, api.SameVersion(object("u", "1"), object("u", "2")))
	require.False(t, api.SameVersion(object("u", "1"), object("v", "1")))
	require.False(t, api.SameVersion(object("", "1"), object("", "1")))
	require.False(t, api.SameVersion(object("u", ""), object("u", "")))
}

func TestKeyRoundTrip(t *testing.T) {
	for _, c := range []struct {
		text string
		key  api.Key
	}{
		{"name", api.Key{Name: "name"}},
		{"ns/name", api.Key{Namespace: "ns", Name: "name"}},
		{"ns/name.with:odd@signs", api.Key{Namespace: "ns", Name: "name.with:odd@signs"}},
	} {
		key := must.Get(api.ParseKey(c.text))(t)
		require.Equal(t, c.key, key)
		require.Equal(t, c.text, api.FormatKey(key))
	}
	for _, text := range []string{"", "/", "ns/", "/name", "a/b/c", "//"} {
		require.ErrorContains(t, must.Err(api.ParseKey(text)), fmt.Sprintf("api: %q is not a key", text))
	}
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{"", "name", "ns/name", "/name", "ns/", "a/b/c", "ns/\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := api.ParseKey(text)
		if err != nil {
			require.Zero(t, key)
			return
		}
		require.Equal(t, text, api.FormatKey(key))
		require.NotEmpty(t, key.Name)
		require.False(t, strings.Contains(key.Namespace+key.Name, "/"))
	})
}

func TestKeyOf(t *testing.T) {
	require.Equal(t, api.Key{Namespace: "ns", Name: "a"}, api.KeyOf(&metav1.ObjectMeta{Namespace: "ns", Name: "a"}))
	require.Equal(t, api.Key{Name: "a"}, api.KeyOf(&metav1.ObjectMeta{Name: "a"}))
}

func TestResourceNames(t *testing.T) {
	r := api.Resource{Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Namespaced: true}
	require.Equal(t, "deployments.apps", r.String())
	require.Equal(t, "apps/v1", r.GroupVersion().String())
	require.Equal(t, "apps/v1, Kind=Deployment", r.GroupVersionKind().String())
	require.Equal(t, "apps/v1, Resource=deployments", r.GroupVersionResource().String())
	require.Equal(t, "pods", api.Resource{Version: "v1", Kind: "Pod", Plural: "pods"}.String())
}

func TestUndecodableErrorWraps(t *testing.T) {
	cause := errors.New("a number where a string belongs")
	err := error(&api.UndecodableError{
		Resource: api.Resource{Group: "apps", Plural: "deployments"}, Key: api.Key{Namespace: "ns", Name: "a"}, Err: cause,
	})
	require.ErrorIs(t, err, cause)
	require.EqualError(t, err, "decode deployments.apps ns/a: a number where a string belongs")
}

func ExampleFormatKey() {
	fmt.Println(api.FormatKey(api.Key{Namespace: "kube-system", Name: "coredns"}))
	fmt.Println(api.FormatKey(api.Key{Name: "node-1"}))
	// Output:
	// kube-system/coredns
	// node-1
}

func ExampleClone() {
	type Deployment struct {
		metav1.ObjectMeta
		Replicas *int32
	}
	replicas := int32(1)
	cached := &Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Replicas: &replicas}

	mine := api.Clone(cached) // objects of a cache are shared and must not be changed
	*mine.Replicas = 3
	fmt.Println(*cached.Replicas, *mine.Replicas)
	// Output: 1 3
}
