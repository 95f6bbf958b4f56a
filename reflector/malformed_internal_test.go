package reflector

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
)

func TestScope(t *testing.T) {
	cluster, all, confined := scope{clusterScoped: true}, scope{namespaced: true}, scope{namespaced: true, namespace: "default"}
	unknown := scope{}
	for _, c := range []struct {
		of   scope
		key  api.Key
		want error
	}{
		{cluster, api.Key{Name: "a"}, nil},
		{cluster, api.Key{}, errNoName},
		{cluster, api.Key{Namespace: "default", Name: "a"}, errClusterScoped},
		{cluster, api.Key{Name: "system:a"}, nil},
		{all, api.Key{Namespace: "default", Name: "a"}, nil},
		{all, api.Key{Namespace: "kube-system", Name: "a.b-c"}, nil},
		{all, api.Key{Name: "a"}, errNoNamespace},
		{all, api.Key{Namespace: "default"}, errNoName},
		{all, api.Key{Namespace: "a/b", Name: "a"}, errBadNamespace},
		{all, api.Key{Namespace: "a\xff", Name: "a"}, errBadNamespace},
		{all, api.Key{Namespace: "a", Name: "a/b"}, errBadName},
		{all, api.Key{Namespace: "a", Name: "/"}, errBadName},
		{all, api.Key{Namespace: "a", Name: "a\xc3"}, errBadName},
		{all, api.Key{Namespace: "a", Name: "a\uFFFD"}, errBadName},
		{all, api.Key{Namespace: "a", Name: "käse"}, nil},
		{confined, api.Key{Namespace: "default", Name: "a"}, nil},
		{confined, api.Key{Namespace: "kube-system", Name: "a"}, errForeign},
		{confined, api.Key{Namespace: "default/x", Name: "a"}, errBadNamespace},
		{confined, api.Key{Name: "a"}, errNoNamespace},
		{confined, api.Key{Namespace: "default"}, errNoName},
		{unknown, api.Key{Name: "a"}, nil},
		{unknown, api.Key{Namespace: "default", Name: "a"}, nil},
		{unknown, api.Key{Namespace: "a/b", Name: "a"}, errBadNamespace},
		{unknown, api.Key{Namespace: "default"}, errNoName},
	} {
		require.Equal(t, c.want, c.of.check(c.key), "%+v %+v", c.of, c.key)
		require.Zero(t, testing.AllocsPerRun(10, func() { _ = c.of.check(c.key) }), "%+v", c.key)
		if c.want != nil {
			require.ErrorIs(t, c.want, ErrMalformed)
		}
	}
}

func TestExcerpt(t *testing.T) {
	for _, c := range []struct{ of, want string }{
		{"", ""},
		{"web-0", "web-0"},
		{strings.Repeat("x", 253), strings.Repeat("x", 253)},
		{strings.Repeat("x", 254), strings.Repeat("x", 253) + "…"},
		{strings.Repeat("x", 252) + "é", strings.Repeat("x", 252) + "\uFFFD…"},
		{"a\xff", "a\uFFFD"},
	} {
		require.Equal(t, c.want, excerpt(c.of))
	}
}

func BenchmarkScope(b *testing.B) {
	all, key := scope{namespaced: true}, api.Key{Namespace: "kube-system", Name: "coredns-7db6d8ff4d-x8zwq"}
	b.ReportAllocs()
	for b.Loop() {
		_ = all.check(key)
	}
}
