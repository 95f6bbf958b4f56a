package livepage

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
)

// TestLateTimer lets the timer of the viewer fire while a request comes.
func TestLateTimer(t *testing.T) {
	p := must.Get(New(Options{}))(t)
	p.look()
	p.viewer.leave() // the timer fired, and waited for the lock that look held
	require.True(t, p.viewer.looks)
}

// cachesOne is an informer whose cache has one object.
type cachesOne struct {
	informer.Any
	inspectable
	object api.Object
}

func (c cachesOne) Lookup(api.Key) (api.Object, bool) { return c.object, true }

// TestRefreshIgnoresOlderVersions refreshes after a hook has brought a newer state.
func TestRefreshIgnoresOlderVersions(t *testing.T) {
	p := must.Get(New(Options{}))(t)
	at := func(version string) api.Object {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "one", ResourceVersion: version}}
	}
	for _, c := range []struct {
		last, cached string
		states       int
	}{{"10", "9", 1}, {"10", "10", 1}, {"9", "10", 2}, {"b", "a", 2}, {"b", "b", 1}} {
		o := &followed{}
		o.seen(at(c.last))
		require.True(t, p.follower.refresh(o, &shownInformer{informer: cachesOne{object: at(c.cached)}}))
		require.Len(t, o.versions, c.states, "%s in the cache after %s", c.cached, c.last)
	}
}

// TestAStateBeforeItsChange reads a state from the cache before the hook brings it, and one that is older. Each state
// is there once, in order.
func TestAStateBeforeItsChange(t *testing.T) {
	o := &followed{resource: api.Resource{Version: "v1", Plural: "pods"}}
	pod := func(version string) api.Object {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: version}}
	}
	change := func(version string) { o.add(updated(version), pod(version)) }
	o.seen(pod("5"))
	change("6")
	o.seen(pod("8")) // the hooks of 7 and 8 have not run yet
	change("7")
	require.True(t, o.versions[2].Earlier)
	change("8")
	require.False(t, o.versions[3].Earlier)
	var versions []string
	size := 0
	for _, v := range o.versions {
		versions = append(versions, v.Type+" "+v.Version)
		size += len(v.Object)
	}
	require.Equal(t, []string{"Cached 5", "Updated 6", "Updated 7", "Updated 8"}, versions)
	require.Equal(t, size, o.bytes)
}

func updated(v string) version { return version{Type: "Updated", Version: v} }
