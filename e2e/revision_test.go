package e2e_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/internal/fixture/must"
)

const revisionAnnotation = "deployment.kubernetes.io/revision"

// TestRevisions checks the revisions, a rollback and the adoption of orphans of one Deployment, as in Kubernetes.
func TestRevisions(t *testing.T) {
	f := newFleet(t)
	f.start(t)
	f.observer.limit(fleetReplicas+3, 0)
	rolledOut := func(image string) *appsv1.Deployment {
		f.wait(t, 1, func() int { return f.complete(t, fleetReplicas, image) })
		return &f.deployments(t)[0]
	}
	require.NoError(t, f.create(t.Context(), "one", "app:1"))
	d := rolledOut("app:1")
	require.Equal(t, "1", d.Annotations[revisionAnnotation])
	require.EqualValues(t, 1, d.Generation, "the revision is no new generation")
	f.change(t, image("app:2").patch())
	d = rolledOut("app:2")
	require.Equal(t, "2", d.Annotations[revisionAnnotation])
	require.EqualValues(t, 2, d.Generation)

	// An orphan that lists the Deployment as an owner is adopted with that reference.
	f.orphan(t, d)
	listed := []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	f.wait(t, 1, func() int {
		if metav1.IsControlledBy(f.set(t, "app:orphan"), d) {
			return 1
		}
		return 0
	})
	require.Equal(t, listed, f.set(t, "app:orphan").OwnerReferences)

	// A template that was changed while the Deployment was paused gets a revision before the rollback. The rollback
	// goes to the one before.
	f.change(t, spec{"paused": true}.patch())
	f.change(t, image("app:3").patch())
	rollback := spec{"paused": false}.patch()
	rollback["metadata"] = map[string]any{"annotations": labelSet{appsv1.DeprecatedRollbackTo: "0"}}
	f.change(t, rollback)
	d = rolledOut("app:2")
	require.Equal(t, "4", d.Annotations[revisionAnnotation])
	require.EqualValues(t, 6, d.Generation, "five changes by its user, and the rollback")
	kept := f.set(t, "app:3")
	require.Equal(t, "3", kept.Annotations[revisionAnnotation])
	require.Zero(t, *kept.Spec.Replicas)
	f.observer.check(t)
}

// change patches the Deployment.
func (f *fleet) change(t *testing.T, patch map[string]any) {
	t.Helper()
	must.Get(f.patch(t.Context(), "one", patch))(t)
}

// set returns the ReplicaSet with an image.
func (f *fleet) set(t *testing.T, image string) *appsv1.ReplicaSet {
	t.Helper()
	answer := must.Get(server.Must(t.Context(), http.MethodGet, "/apis/apps/v1/namespaces/"+f.namespace+"/replicasets", nil))(t)
	var list appsv1.ReplicaSetList
	require.NoError(t, json.Unmarshal(answer, &list))
	for i, s := range list.Items {
		if s.Spec.Template.Spec.Containers[0].Image == image {
			return &list.Items[i]
		}
	}
	require.Failf(t, "there is no such set", "of %s in %d", image, len(list.Items))
	return nil
}

// orphan creates a ReplicaSet without Pods that matches the Deployment's selector and lists it as an owner, but not as
// its controller.
func (f *fleet) orphan(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	template := d.Spec.Template.DeepCopy()
	template.Spec.Containers[0].Image = "app:orphan"
	must.Get(f.write(t.Context(), http.MethodPost, "/apis/apps/v1/namespaces/"+f.namespace+"/replicasets", &appsv1.ReplicaSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "orphan", Labels: template.Labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name, UID: d.UID}},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32), Selector: d.Spec.Selector, Template: *template},
	}))(t)
}
