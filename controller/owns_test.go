package controller_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/predicate"
)

func TestOwnerMatrix(t *testing.T) {
	yes, no := true, false
	ref := func(change func(*metav1.OwnerReference)) metav1.OwnerReference {
		r := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Owner", Name: "o", UID: "uid-1", Controller: &yes}
		if change != nil {
			change(&r)
		}
		return r
	}
	for name, test := range map[string]struct {
		refs  []metav1.OwnerReference
		found bool
	}{
		"none":              {},
		"controller":        {[]metav1.OwnerReference{ref(nil)}, true},
		"owner":             {[]metav1.OwnerReference{ref(func(r *metav1.OwnerReference) { r.Controller = nil })}, false},
		"explicitly none":   {[]metav1.OwnerReference{ref(func(r *metav1.OwnerReference) { r.Controller = &no })}, false},
		"other version":     {[]metav1.OwnerReference{ref(func(r *metav1.OwnerReference) { r.APIVersion = "apps/v1beta2" })}, true},
		"other group":       {[]metav1.OwnerReference{ref(func(r *metav1.OwnerReference) { r.APIVersion = "batch/v1" })}, false},
		"core group":        {[]metav1.OwnerReference{ref(func(r *metav1.OwnerReference) { r.APIVersion = "v1" })}, false},
		"malformed group":   {[]metav1.OwnerReference{ref(func(r *metav1.OwnerReference) { r.APIVersion = "apps/v1/x" })}, false},
		"other kind":        {[]metav1.OwnerReference{ref(func(r *metav1.OwnerReference) { r.Kind = "Other" })}, false},
		"other incarnation": {[]metav1.OwnerReference{ref(func(r *metav1.OwnerReference) { r.UID = "uid-0" })}, false},
		"without a UID":     {[]metav1.OwnerReference{ref(func(r *metav1.OwnerReference) { r.UID = "" })}, true},
		"second of two":     {[]metav1.OwnerReference{ref(func(r *metav1.OwnerReference) { r.Kind = "Other" }), ref(nil)}, true},
		"twice":             {[]metav1.OwnerReference{ref(nil), ref(nil)}, true},
	} {
		fixture.Bubble(t, name, func(t *testing.T) {
			c := new(cluster)
			above, below := c.collection(owners), c.collection(things)
			above.apply(named("o"))
			r := &recorder{}
			ctl := controller.New("test", r, controller.Options{})
			ctl.Watch(controller.Owns(above.running(t), below.running(t)))
			start(t, ctl.Run)
			synctest.Wait()
			object := named("p")
			object.OwnerReferences = test.refs
			below.apply(object)
			require.Equal(t, test.found, len(r.names()) == 1)
			below.delete("p")
			require.Equal(t, test.found, len(r.names()) == 1)
		})
	}
}

func TestOwnerScope(t *testing.T) {
	for name, test := range map[string]struct {
		namespaced bool   // the owners
		namespace  string // of the owned object
		want       []api.Key
	}{
		"namespaced":                 {true, "default", []api.Key{{Namespace: "default", Name: "o"}}},
		"cluster-scoped owner":       {false, "default", []api.Key{{Name: "o"}}},
		"cluster-scoped":             {false, "", []api.Key{{Name: "o"}}},
		"owner in no namespace":      {true, "", nil},
		"owner of another namespace": {true, "kube-system", []api.Key{{Namespace: "kube-system", Name: "o"}}},
	} {
		fixture.Bubble(t, name, func(t *testing.T) {
			c := new(cluster)
			r := owners
			r.Namespaced = test.namespaced
			owned := things
			owned.Namespaced = test.namespace != ""
			above, below := c.collection(r), c.collection(owned)
			seen := &recorder{}
			ctl := controller.New("test", seen, controller.Options{})
			ctl.Watch(controller.Owns(above.running(t), below.running(t)))
			start(t, ctl.Run)
			synctest.Wait()
			object := ownedBy("p", &thing{ObjectMeta: metav1.ObjectMeta{Name: "o", UID: "uid-o"}})
			object.Namespace = test.namespace
			below.apply(object)
			synctest.Wait()
			require.Equal(t, test.want, seen.calls)
		})
	}
}

func TestOldOwnerIsReconciled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster)
		above, below := c.collection(owners), c.collection(things)
		a, b := above.apply(named("a")), above.apply(named("b"))
		r := &recorder{}
		ctl := controller.New("test", r, controller.Options{})
		ctl.Watch(controller.Owns(above.running(t), below.running(t)))
		start(t, ctl.Run)
		synctest.Wait()
		below.apply(ownedBy("p", a))
		require.Equal(t, []string{"a"}, r.names())
		below.apply(ownedBy("p", b))
		require.ElementsMatch(t, []string{"a", "b"}, r.names())
		stranger := named("b")
		stranger.UID = "another"
		below.apply(ownedBy("p", stranger))
		require.Equal(t, []string{"b"}, r.names(), "another owner of that name has taken it")
		below.apply(ownedBy("p", stranger))
		require.Empty(t, r.names())
		below.apply(ownedBy("p", b))
		require.Equal(t, []string{"b"}, r.names())
		below.apply(named("p"))
		require.Equal(t, []string{"b"}, r.names())
		below.apply(named("p"))
		require.Empty(t, r.names())

		below.apply(ownedBy("p", named("a")))
		require.Equal(t, []string{"a"}, r.names())
		below.apply(ownedBy("p", named("b")))
		require.ElementsMatch(t, []string{"a", "b"}, r.names(), "no UIDs, but different names")
		former := ownedBy("p", named("b"))
		former.OwnerReferences[0].Controller = nil
		below.apply(former)
		require.Equal(t, []string{"b"}, r.names(), "the object still names it, but not as its controller")
	})
}

// TestOwnerOfTheCoreGroup has an owner in the group "". A malformed API version also has no group.
func TestOwnerOfTheCoreGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster)
		above := owners
		above.Group = ""
		r, below := &recorder{}, c.collection(things)
		ctl := controller.New("test", r, controller.Options{})
		ctl.Watch(controller.Owns(c.collection(above).running(t), below.running(t)))
		start(t, ctl.Run)
		synctest.Wait()
		object := ownedBy("p", named("o"))
		object.OwnerReferences[0].APIVersion = "v1"
		below.apply(object)
		require.Equal(t, []string{"o"}, r.names())
		object = ownedBy("q", named("o"))
		object.OwnerReferences[0].APIVersion = "apps/v1/x"
		below.apply(object)
		require.Empty(t, r.names())
	})
}

// TestOwnerNotInCache covers an owner that has not arrived yet, and one that was deleted.
func TestOwnerNotInCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster)
		above, below := c.collection(owners), c.collection(things)
		r := &recorder{}
		ctl := controller.New("test", r, controller.Options{})
		ctl.Watch(controller.Owns(above.running(t), below.running(t)))
		start(t, ctl.Run)
		synctest.Wait()
		to := named("o")
		to.UID = "uid-o"
		below.apply(ownedBy("p", to))
		require.Equal(t, []string{"o"}, r.names())
		above.apply(to)
		below.apply(ownedBy("p", to))
		require.Equal(t, []string{"o"}, r.names())
		above.delete("o")
		below.delete("p")
		require.Equal(t, []string{"o"}, r.names())
	})
}

// TestOwnerRecreated replaces an owner by another one with the same name. Either cache may learn of it first.
func TestOwnerRecreated(t *testing.T) {
	for _, first := range []string{"owners first", "owned first"} {
		fixture.Bubble(t, first, func(t *testing.T) {
			c := new(cluster)
			above, below := c.collection(owners), c.collection(things)
			before := above.apply(named("o"))
			below.apply(ownedBy("old", before))

			r := &recorder{}
			ctl := controller.New("test", r, controller.Options{})
			o, i := above.running(t), below.running(t)
			ctl.Watch(controller.For(o).When(predicate.GenerationChanged))
			ctl.Watch(controller.Owns(o, i))
			start(t, ctl.Run)
			require.Equal(t, []string{"o"}, r.names())

			if first == "owned first" {
				above.fail(errors.New("nobody gets through"))
			}
			above.delete("o")
			after := above.apply(named("o"))
			require.NotEqual(t, before.UID, after.UID)
			if first == "owners first" {
				require.NotEmpty(t, r.names())
				below.delete("old")
				require.Empty(t, r.names(), "the remains of the old owner do not concern the new one")
				below.apply(ownedBy("new", after))
				require.Equal(t, []string{"o"}, r.names())
				return
			}
			below.apply(ownedBy("new", after))
			require.Empty(t, r.names(), "the owners' cache has another owner")
			below.delete("old")
			require.Equal(t, []string{"o"}, r.names(), "the owner of its own UID")
			above.fail(nil)
			pass(time.Hour)
			// Once or twice: the delete of the old owner and the addition of the new one may coalesce.
			require.Contains(t, r.names(), "o", "the addition of the owner adds its key")
			below.delete("new")
			require.Equal(t, []string{"o"}, r.names())
		})
	}
}

// TestDeleteInWatchGapTriggersOwner deletes an owned object while no watch runs, and drops the history.
func TestDeleteInWatchGapTriggersOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster)
		above, below := c.collection(owners), c.collection(things)
		a, b := above.apply(named("a")), above.apply(named("b"))
		below.apply(ownedBy("gone", a))
		below.apply(ownedBy("stays", b))
		r := &recorder{}
		ctl := controller.New("test", r, controller.Options{})
		var missed atomic.Int32
		ctl.Watch(controller.Owns(above.running(t), below.running(t)).When(func(n api.Change[*thing]) bool {
			if n.FinalStateUnknown {
				missed.Add(1)
			}
			return true
		}))
		start(t, ctl.Run)
		require.ElementsMatch(t, []string{"a", "b"}, r.names())

		below.fail(errors.New("nobody gets through"))
		pass(time.Second)
		below.delete("gone")
		below.forgetHistory()
		below.fail(nil)
		pass(time.Hour)
		require.Equal(t, []string{"a"}, r.names())
		require.EqualValues(t, 1, missed.Load())
	})
}

// TestDeleteBeforeDelivery creates and deletes an owned object while the source is busy with another one.
func TestDeleteBeforeDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster)
		above, below := c.collection(owners), c.collection(things)
		a, b := above.apply(named("a")), above.apply(named("b"))
		unblock, r := make(chan struct{}), &recorder{}
		ctl := controller.New("test", r, controller.Options{})
		ctl.Watch(controller.Owns(above.running(t), below.running(t)).When(func(api.Change[*thing]) bool {
			<-unblock
			return true
		}))
		start(t, ctl.Run)
		synctest.Wait()
		below.apply(ownedBy("first", a))
		synctest.Wait()
		below.apply(ownedBy("brief", b))
		synctest.Wait()
		below.delete("brief")
		require.Empty(t, r.names())
		close(unblock)
		require.Contains(t, r.names(), "b") // once or twice: its creation and its delete may coalesce
	})
}

// TestReferenceThatChangedUnseen changes the owner of an object to the owner's successor while no watch runs, and then
// removes the object or the reference.
func TestReferenceThatChangedUnseen(t *testing.T) {
	for name, take := range map[string]func(below *collection){
		"deleted":  func(below *collection) { below.delete("p") },
		"orphaned": func(below *collection) { below.apply(named("p")) },
	} {
		fixture.Bubble(t, name, func(t *testing.T) {
			c := new(cluster)
			above, below := c.collection(owners), c.collection(things)
			below.apply(ownedBy("p", above.apply(named("o"))))
			r := &recorder{}
			ctl := controller.New("test", r, controller.Options{})
			ctl.Watch(controller.Owns(above.running(t), below.running(t)))
			start(t, ctl.Run)
			require.Equal(t, []string{"o"}, r.names())

			below.fail(errors.New("nobody gets through"))
			above.delete("o")
			below.apply(ownedBy("p", above.apply(named("o"))))
			take(below)
			below.forgetHistory()
			require.Empty(t, r.names())
			below.fail(nil)
			pass(time.Hour)
			require.Equal(t, []string{"o"}, r.names())
		})
	}
}
