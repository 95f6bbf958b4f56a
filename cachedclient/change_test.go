package cachedclient_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/faults"
)

// sent returns a function that returns the verbs of all requests since its last call, without those of the informer.
func (r *rig) sent() func() []string {
	seen := len(r.Server.Requests())
	return func() (verbs []string) {
		for _, request := range r.Server.Requests()[seen:] {
			if request.Verb != "list" && request.Verb != "watch" {
				verbs = append(verbs, request.Verb)
			}
		}
		seen = len(r.Server.Requests())
		return verbs
	}
}

// resize returns a mutate function that sets the size.
func resize(size int64) func(*widget) error {
	return func(w *widget) error {
		w.Spec.Size = size
		return nil
	}
}

// creators are CreateOrUpdate and CreateOrPatch, with the verb that changes an existing object.
var creators = []struct {
	verb string
	call func(r *rig, w *widget, mutate func(*widget) error) (*widget, cachedclient.OperationResult, error)
}{
	{"update", func(r *rig, w *widget, mutate func(*widget) error) (*widget, cachedclient.OperationResult, error) {
		return r.widgets.CreateOrUpdate(r.Context(), w, mutate)
	}},
	{"patch", func(r *rig, w *widget, mutate func(*widget) error) (*widget, cachedclient.OperationResult, error) {
		return r.widgets.CreateOrPatch(r.Context(), w, mutate)
	}},
}

func TestCreateOrUpdateSendsWhatIsNeeded(t *testing.T) {
	for _, how := range creators {
		t.Run(how.verb, func(t *testing.T) {
			bubble(t, setting{client: overlaid}, func(r *rig) {
				sent := r.sent()
				expect := func(size int64, outcome cachedclient.OperationResult, verbs ...string) {
					given := named("alpha", 0)
					w, got, err := how.call(r, given, resize(size))
					require.NoError(r, err)
					require.Equal(r, outcome, got)
					require.Equal(r, size, w.Spec.Size)
					require.Equal(r, verbs, sent())
					require.Equal(r, must.Get(r.Server.Get(widgets, alpha))(r).GetResourceVersion(), w.ResourceVersion)
					require.Equal(r, named("alpha", 0), given, "the argument does not change")
				}
				expect(1, cachedclient.Created, "create")
				expect(1, cachedclient.Unchanged)
				expect(2, cachedclient.Updated, how.verb)
				expect(2, cachedclient.Unchanged)
				expect(math.MaxInt64, cachedclient.Updated, how.verb)
			})
		})
	}
}

// TestCreateOrUpdateOverAStaleCache begins with a stale cache. The second attempt reads from the server.
func TestCreateOrUpdateOverAStaleCache(t *testing.T) {
	foreign := func(r *rig) {
		r.Edit(widgets, alpha, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"foreign": "yes"}) })
	}
	for _, tc := range []struct {
		name    string
		how     int
		have    []*widget
		before  func(r *rig)
		outcome cachedclient.OperationResult
		verbs   []string
	}{
		{"another client created it", 0, nil, func(r *rig) { _, _ = r.Server.Create(widgets, named("alpha", 1)); foreign(r) }, cachedclient.Updated, []string{"create", "get", "update"}},
		{"another client changed it", 0, []*widget{named("alpha", 1)}, foreign, cachedclient.Updated, []string{"update", "get", "update"}},
		{"another client deleted it", 0, []*widget{named("alpha", 1)}, func(r *rig) { _ = r.Server.Delete(widgets, alpha) }, cachedclient.Created, []string{"update", "get", "create"}},
		{"another client created it, with a patch", 1, nil, func(r *rig) { _, _ = r.Server.Create(widgets, named("alpha", 1)); foreign(r) }, cachedclient.Updated, []string{"create", "get", "patch"}},
		{"another client changed another field, with a patch", 1, []*widget{named("alpha", 1)}, foreign, cachedclient.Updated, []string{"patch"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, setting{have: tc.have}, func(r *rig) {
				r.stallEvents()
				tc.before(r)
				sent := r.sent()
				w, outcome, err := creators[tc.how].call(r, named("alpha", 0), resize(2))
				require.NoError(r, err)
				require.Equal(r, tc.outcome, outcome)
				require.Equal(r, tc.verbs, sent())
				require.EqualValues(r, 2, w.Spec.Size)
				require.Equal(r, outcome == cachedclient.Updated, w.Labels["foreign"] == "yes")
			})
		})
	}
}

// TestPatchesOfListsCarryTheVersion changes a list that another client has extended since.
func TestPatchesOfListsCarryTheVersion(t *testing.T) {
	add := func(w *widget) error {
		w.Spec.Tags = append(w.Spec.Tags, "mine")
		return nil
	}
	for name, c := range map[string]struct {
		have   []string // without tags, the widget has no spec
		mutate func(*widget) error
		want   []string
	}{
		"add":                          {[]string{"a"}, add, []string{"a", "foreign", "mine"}},
		"add the object with the list": {nil, add, []string{"foreign", "mine"}},
		"remove": {[]string{"a"}, func(w *widget) error {
			w.Spec.Tags = slices.DeleteFunc(w.Spec.Tags, func(tag string) bool { return tag == "a" })
			return nil
		}, []string{"foreign"}},
		"remove the object with the list": {[]string{"a"}, func(w *widget) error {
			if !slices.Contains(w.Spec.Tags, "foreign") {
				w.Spec = fixture.WidgetSpec{}
			}
			return nil
		}, []string{"a", "foreign"}},
	} {
		t.Run(name, func(t *testing.T) {
			tagged := named("alpha", 0)
			tagged.Spec.Tags = c.have
			bubble(t, setting{have: []*widget{tagged}}, func(r *rig) {
				r.stallEvents()
				must.Get(r.Server.Edit(widgets, alpha, func(u *unstructured.Unstructured) {
					require.NoError(r, unstructured.SetNestedStringSlice(u.Object, append(c.have, "foreign"), "spec", "tags"))
				}))(r)
				sent := r.sent()
				w, _, err := r.widgets.CreateOrPatch(r.Context(), named("alpha", 0), c.mutate)
				require.NoError(r, err)
				require.Equal(r, c.want, w.Spec.Tags)
				requests := []string{"patch", "get"}
				if !slices.Equal(c.want, append(c.have, "foreign")) {
					requests = append(requests, "patch")
				}
				require.Equal(r, requests, sent())
			})
		})
	}
}

func TestPatchRemovesWhatMutateRemoves(t *testing.T) {
	w := named("alpha", 1)
	w.Labels, w.Annotations = map[string]string{"a": "1", "b": "2"}, map[string]string{"c": "3"}
	w.Spec.Tags = []string{"x"}
	bubble(t, setting{have: []*widget{w}}, func(r *rig) {
		got, _, err := r.widgets.CreateOrPatch(r.Context(), named("alpha", 0), func(w *widget) error {
			delete(w.Labels, "a")
			w.Annotations, w.Spec.Tags, w.Spec.Node = nil, nil, "n1"
			return nil
		})
		require.NoError(r, err)
		require.Equal(r, map[string]string{"b": "2"}, got.Labels)
		require.Empty(r, got.Annotations)
		require.Equal(r, fixture.WidgetSpec{Size: 1, Node: "n1"}, got.Spec)
	})
}

func TestChangeNeedsTheObject(t *testing.T) {
	bubble(t, setting{have: []*widget{named("alpha", 1)}}, func(r *rig) {
		sent := r.sent()
		_, _, err := r.widgets.Change(r.Context(), api.Key{Namespace: "default", Name: "beta"}, resize(2))
		require.True(r, apierrors.IsNotFound(err))
		w, outcome, err := r.widgets.Change(r.Context(), alpha, resize(2))
		require.NoError(r, err)
		require.Equal(r, cachedclient.Updated, outcome)
		require.EqualValues(r, 2, w.Spec.Size)
		require.Equal(r, []string{"update"}, sent())
	})
}

func TestChangeStatusWritesNothingElse(t *testing.T) {
	bubble(t, setting{client: overlaid, have: []*widget{named("alpha", 1)}}, func(r *rig) {
		ready := func(w *widget) error {
			w.Status.Ready = 3
			return nil
		}
		sent := r.sent()
		w, outcome, err := r.widgets.ChangeStatus(r.Context(), alpha, ready)
		require.NoError(r, err)
		require.Equal(r, cachedclient.Updated, outcome)
		require.Equal(r, 3, w.Status.Ready)
		_, outcome, err = r.widgets.ChangeStatus(r.Context(), alpha, ready)
		require.NoError(r, err)
		require.Equal(r, cachedclient.Unchanged, outcome)
		require.Equal(r, []string{"update"}, sent())

		w, _, err = r.widgets.ChangeStatus(r.Context(), alpha, func(w *widget) error {
			w.Status.Ready, w.Spec.Size = 4, 9
			return nil
		})
		require.NoError(r, err)
		require.EqualValues(r, 1, w.Spec.Size)
	})
}

// TestMutateMayFail also checks a mutate function that changes the name.
func TestMutateMayFail(t *testing.T) {
	bubble(t, setting{have: []*widget{named("alpha", 1)}}, func(r *rig) {
		sent := r.sent()
		refusal := errors.New("too large")
		_, _, err := r.widgets.CreateOrUpdate(r.Context(), named("alpha", 0), func(*widget) error { return refusal })
		require.ErrorIs(r, err, refusal)
		require.EqualError(r, err, "change widgets.leat.test default/alpha: too large")
		for _, name := range []string{"alpha", "beta"} {
			_, _, err = r.widgets.CreateOrUpdate(r.Context(), named(name, 0), func(w *widget) error {
				w.Name = "gamma"
				return nil
			})
			require.ErrorContains(r, err, "must not change its name")
		}
		require.Empty(r, sent())
	})
}

// TestChangesBeginWithWholeObjects has an informer whose Transform drops a field. A change must not delete that field.
func TestChangesBeginWithWholeObjects(t *testing.T) {
	w := named("alpha", 1)
	w.Spec.Tags = []string{"kept"}
	drop := func(w *widget) (*widget, error) {
		w.Spec.Tags = nil
		return w, nil
	}
	bubble(t, setting{have: []*widget{w}, informer: informer.Options[*widget]{Transform: drop}}, func(r *rig) {
		require.Empty(r, r.get(alpha).Spec.Tags)
		got, _, err := r.widgets.Change(r.Context(), alpha, resize(2))
		require.NoError(r, err)
		require.Equal(r, []string{"kept"}, got.Spec.Tags)
	})
}

// TestConflictsWithoutEnd gets a conflict for each of five attempts, and returns it.
func TestConflictsWithoutEnd(t *testing.T) {
	bubble(t, setting{have: []*widget{named("alpha", 1)}}, func(r *rig) {
		r.Server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"update"}}, Effect: faults.Fail{Code: 409, Reason: metav1.StatusReasonConflict}})
		sent := r.sent()
		w, outcome, err := r.widgets.Change(r.Context(), alpha, resize(2))
		require.True(r, apierrors.IsConflict(err))
		require.Nil(r, w)
		require.Empty(r, outcome)
		require.Len(r, sent(), 9)
		synctest.Wait()
	})
}
