package owner_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/reconcile/owner"
)

type claimer = owner.Claimer[*metav1.ObjectMeta, *metav1.ObjectMeta]

// rig is a Claimer of "shop/web" that selects objects by a label, with a record of its requests.
type rig struct {
	claimer
	lives   int
	patched map[string]string // patches by object name
	refuse  map[string]error
}

func newRig() *rig {
	r := &rig{patched: map[string]string{}, refuse: map[string]error{}}
	r.Owner, r.Resource = object("shop", "web", "u1"), sets
	r.Selects = func(o *metav1.ObjectMeta) bool { return o.Labels["app"] == "web" }
	r.Live = func(context.Context) (*metav1.ObjectMeta, error) {
		r.lives++
		return r.Owner, nil
	}
	r.Patch = func(_ context.Context, o *metav1.ObjectMeta, patch []byte) (*metav1.ObjectMeta, error) {
		r.patched[o.Name] = string(patch)
		if err := r.refuse[o.Name]; err != nil {
			return nil, err
		}
		stored := o.DeepCopy()
		stored.OwnerReferences = nil
		if err := json.Unmarshal(patch, &struct{ Metadata *metav1.ObjectMeta }{stored}); err != nil {
			return nil, err
		}
		stored.ResourceVersion = "8"
		return stored, nil
	}
	return r
}

// child returns an object with or without the label, and with a controller or nil.
func child(name string, selected bool, controller *metav1.ObjectMeta) *metav1.ObjectMeta {
	o := object("shop", name, "uid-"+name)
	if selected {
		o.Labels = map[string]string{"app": "web"}
	}
	if controller != nil {
		if err := owner.SetController(controller, sets, o); err != nil {
			panic(err)
		}
	}
	return o
}

func names(objects []*metav1.ObjectMeta) []string {
	all := []string{}
	for _, o := range objects {
		all = append(all, o.Name)
	}
	return all
}

func TestClaimTable(t *testing.T) {
	web, other := object("shop", "web", "u1"), object("shop", "other", "u2")
	now := metav1.NewTime(time.Unix(1, 0))
	dying := func(o *metav1.ObjectMeta) *metav1.ObjectMeta {
		o.DeletionTimestamp = &now
		return o
	}
	far := child("p", true, nil)
	far.Namespace = "bar"
	for name, c := range map[string]struct {
		object        *metav1.ObjectMeta
		ownerDying    bool
		kept, patched bool
	}{
		"other controller, selected":             {object: child("p", true, other)},
		"other controller, not selected":         {object: child("p", false, other)},
		"own, selected":                          {object: child("p", true, web), kept: true},
		"own, selected, being deleted":           {object: dying(child("p", true, web)), kept: true},
		"own, selected, owner being deleted":     {object: child("p", true, web), ownerDying: true, kept: true},
		"own, not selected":                      {object: child("p", false, web), patched: true},
		"own, not selected, owner being deleted": {object: child("p", false, web), ownerDying: true},
		"orphan, not selected":                   {object: child("p", false, nil)},
		"orphan, selected":                       {object: child("p", true, nil), kept: true, patched: true},
		"orphan, selected, being deleted":        {object: dying(child("p", true, nil))},
		"orphan, selected, owner being deleted":  {object: child("p", true, nil), ownerDying: true},
		"orphan, selected, other namespace":      {object: far},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			if c.ownerDying {
				dying(r.Owner)
			}
			mine := must.Get(r.Claim(t.Context(), []*metav1.ObjectMeta{c.object}))(t)
			require.Equal(t, c.kept, len(mine) == 1)
			require.Equal(t, c.patched, len(r.patched) == 1)
			if c.kept {
				require.True(t, owner.Controls(r.Owner, mine[0]))
			}
		})
	}
}

func TestAdoptionReadsTheOwnerOnce(t *testing.T) {
	orphans := []*metav1.ObjectMeta{child("a", true, nil), child("b", true, nil), child("c", true, nil)}
	r := newRig()
	mine := must.Get(r.Claim(t.Context(), []*metav1.ObjectMeta{child("d", true, r.Owner), child("e", false, r.Owner)}))(t)
	require.Equal(t, []string{"d"}, names(mine))
	require.Zero(t, r.lives, "an unnecessary request")
	mine = must.Get(r.Claim(t.Context(), orphans))(t)
	require.Equal(t, []string{"a", "b", "c"}, names(mine))
	require.Equal(t, 1, r.lives)
	require.Equal(t, "8", mine[0].ResourceVersion, "the object must be as the server stored it")

	gone := errors.New("gone")
	for name, c := range map[string]struct {
		live func(context.Context) (*metav1.ObjectMeta, error)
		says string
	}{
		"unknown":             {func(context.Context) (*metav1.ObjectMeta, error) { return nil, gone }, "read ReplicaSet web: gone"},
		"another incarnation": {func(context.Context) (*metav1.ObjectMeta, error) { return object("shop", "web", "u9"), nil }, "another object has its name"},
		"being deleted": {func(context.Context) (*metav1.ObjectMeta, error) {
			o := object("shop", "web", "u1")
			o.DeletionTimestamp = &metav1.Time{}
			return o, nil
		}, "is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			r.Live = c.live
			mine, err := r.Claim(t.Context(), append(orphans, child("d", true, r.Owner)))
			require.ErrorContains(t, err, "adopt shop/a: ")
			require.ErrorContains(t, err, c.says)
			require.Equal(t, []string{"d"}, names(mine))
			require.Empty(t, r.patched)
		})
	}
}

func TestClaimContinuesAfterAFailure(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	r := newRig()
	r.refuse = map[string]error{
		"adopted-gone":    apierrors.NewNotFound(pods, "adopted-gone"),
		"adopted-changed": apierrors.NewConflict(pods, "adopted-changed", errors.New("it changed")),
		"let-gone":        apierrors.NewNotFound(pods, "let-gone"),
		"let-other":       apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "let-other", nil),
		"let-forbidden":   apierrors.NewForbidden(pods, "let-forbidden", errors.New("no")),
	}
	mine, err := r.Claim(t.Context(), []*metav1.ObjectMeta{
		child("adopted-gone", true, nil), child("adopted-changed", true, nil),
		child("let-gone", false, r.Owner), child("let-other", false, r.Owner), child("let-forbidden", false, r.Owner),
		child("kept", true, r.Owner), child("adopted", true, nil),
	})
	require.Equal(t, []string{"kept", "adopted"}, names(mine))
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "adopt shop/adopted-changed: ")
	require.ErrorContains(t, err, "release shop/let-forbidden: ")
	require.NotContains(t, err.Error(), "gone")
	require.NotContains(t, err.Error(), "let-other")
	require.Len(t, r.patched, 6)
}

func TestPatches(t *testing.T) {
	r := newRig()
	orphan := child("orphan", true, nil)
	require.NoError(t, owner.Set(object("shop", "friend", "f"), sets, orphan))
	shared := child("shared", false, r.Owner)
	require.NoError(t, owner.Set(object("shop", "friend", "f"), sets, shared))
	must.Get(r.Claim(t.Context(), []*metav1.ObjectMeta{orphan, shared, child("only", false, r.Owner)}))(t)
	const friend = `{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"friend","uid":"f"}`
	require.JSONEq(t, `{"metadata":{"uid":"uid-orphan","resourceVersion":"7","ownerReferences":[`+friend+
		`,{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u1","controller":true,"blockOwnerDeletion":true}]}}`, r.patched["orphan"])
	require.JSONEq(t, `{"metadata":{"uid":"uid-shared","resourceVersion":"7","ownerReferences":[`+friend+`]}}`, r.patched["shared"])
	require.JSONEq(t, `{"metadata":{"uid":"uid-only","resourceVersion":"7","ownerReferences":null}}`, r.patched["only"])
	require.Len(t, orphan.OwnerReferences, 1, "the object of the cache was changed")
}

// TestAdoptionChangesAnExistingReference claims objects that list the owner without having it as their controller, as
// controllers of Kubernetes also write. The reference becomes the controller's. An object with two such references
// keeps one.
func TestAdoptionChangesAnExistingReference(t *testing.T) {
	web := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "u1"}
	denied, controls := web, web
	denied.Controller = new(bool)
	yes := true
	controls.Controller = &yes
	friend := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "friend", UID: "f"}
	const (
		promoted = `{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u1","controller":true,"blockOwnerDeletion":true}`
		friendly = `{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"friend","uid":"f"}`
	)
	for name, c := range map[string]struct {
		refs     []metav1.OwnerReference
		selected bool
		sent     string
	}{
		"listed":                {[]metav1.OwnerReference{web}, true, `[` + promoted + `]`},
		"listed, controller no": {[]metav1.OwnerReference{denied}, true, `[` + promoted + `]`},
		"listed first":          {[]metav1.OwnerReference{web, friend}, true, `[` + promoted + `,` + friendly + `]`},
		"listed last":           {[]metav1.OwnerReference{friend, web}, true, `[` + friendly + `,` + promoted + `]`},
		"listed twice":          {[]metav1.OwnerReference{web, friend, denied}, true, `[` + promoted + `,` + friendly + `]`},
		"released, listed more": {[]metav1.OwnerReference{web, friend, controls}, false, `[` + friendly + `]`},
	} {
		t.Run(name, func(t *testing.T) {
			r, o := newRig(), child("p", c.selected, nil)
			o.OwnerReferences = slices.Clone(c.refs)
			mine := must.Get(r.Claim(t.Context(), []*metav1.ObjectMeta{o}))(t)
			require.Equal(t, c.selected, len(mine) == 1)
			require.JSONEq(t, `{"metadata":{"uid":"uid-p","resourceVersion":"7","ownerReferences":`+c.sent+`}}`, r.patched["p"])
			require.Equal(t, c.refs, o.OwnerReferences, "the object of the cache was changed")
		})
	}
}
