package rollout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRevisions(t *testing.T) {
	d := newDeployment(1, 1, 0)
	numbered := func(revisions ...string) []*appsv1.ReplicaSet {
		var all []*appsv1.ReplicaSet
		for _, r := range revisions {
			all = append(all, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{revisionAnnotation: r}}})
		}
		return all
	}
	require.EqualValues(t, 9, newestRevision(numbered("3", "9", "x", "", "5")))
	require.EqualValues(t, 5, lastRevision(numbered("3", "9", "x", "5")))
	require.EqualValues(t, 5, lastRevision(numbered("9", "5", "3")))
	require.Zero(t, lastRevision(numbered("9")))

	first := decide(at(d))
	require.Equal(t, "1", first.changes[0].to.Annotations[revisionAnnotation])
	require.Equal(t, "1", first.revision)

	old, next := set(d, "v1", 4, 1, 1), set(d, "new", 2, 0, 0)
	next.Annotations[historyAnnotation] = "1"
	again := decide(at(d, old, next))
	to := again.changes[0].to
	require.Equal(t, "5", to.Annotations[revisionAnnotation], "a set that is current again gets a new revision")
	require.Equal(t, "1,2", to.Annotations[historyAnnotation], "and lists the earlier ones")
	require.Equal(t, "5", again.revision)

	next.Annotations[revisionAnnotation] = "17"
	require.Equal(t, "17", decide(at(d, old, next)).revision, "a higher revision stays")
	next.Annotations[revisionAnnotation] = "soon"
	delete(next.Annotations, historyAnnotation)
	to = decide(at(d, old, next)).changes[0].to
	require.Equal(t, "5", to.Annotations[revisionAnnotation])
	require.NotContains(t, to.Annotations, historyAnnotation)
}

func TestHistoryIsCut(t *testing.T) {
	history := ""
	for i := range 1000 {
		history = remember(history, fmt.Sprint(10000+i))
		require.LessOrEqual(t, len(history), 2000)
	}
	all := strings.Split(history, ",")
	require.Len(t, all, 333)
	require.Equal(t, "10999", all[len(all)-1])
	require.Equal(t, "10667", all[0])
}

func TestAnnotationsAreCopied(t *testing.T) {
	d := newDeployment(1, 1, 0)
	d.Annotations = map[string]string{
		"note": "x", revisionAnnotation: "7", corev1.LastAppliedConfigAnnotation: "{}", desiredAnnotation: "5", maxAnnotation: "6",
		historyAnnotation: "1",
	}
	require.Equal(t, map[string]string{"note": "x", revisionAnnotation: "1", desiredAnnotation: "1", maxAnnotation: "2"},
		decide(at(d)).changes[0].to.Annotations)
	next := set(d, "new", 7, 1, 1)
	require.Equal(t, "x", decide(at(d, next)).changes[0].to.Annotations["note"])
}

func TestMinReadySecondsAreCopied(t *testing.T) {
	d := newDeployment(1, 1, 0)
	d.Annotations[revisionAnnotation] = "1"
	next := set(d, "new", 1, 1, 1)
	require.Empty(t, decide(at(d, next)).lines())
	d.Spec.MinReadySeconds = 5
	require.EqualValues(t, 5, decide(at(d, next)).changes[0].to.Spec.MinReadySeconds)
	require.EqualValues(t, 5, decide(at(d)).changes[0].to.Spec.MinReadySeconds)
}

func TestTheOldestOfTwoEqualSetsIsCurrent(t *testing.T) {
	d := newDeployment(2, 1, 0)
	a, b := set(d, "new", 1, 1, 1), set(d, "new", 2, 1, 1)
	b.Name, b.UID = "other", "other"
	require.Equal(t, "new", newDraft(at(d, b, a)).next.Name)
	b.CreationTimestamp = a.CreationTimestamp
	require.Equal(t, "new", newDraft(at(d, b, a)).next.Name)
}

func TestTemplatesAreComparedByMeaning(t *testing.T) {
	a, b := template("x"), template("x")
	b.Labels[hashLabel] = "1234"
	require.True(t, sameTemplate(&a, &b))
	require.Contains(t, b.Labels, hashLabel, "the templates are not changed")
	require.Equal(t, hashOf(&a, nil), hashOf(&b, nil))
	b.Annotations, b.Spec.Volumes = map[string]string{}, []corev1.Volume{}
	require.True(t, sameTemplate(&a, &b), "absent and empty are equal")
	require.Equal(t, hashOf(&a, nil), hashOf(&b, nil))
	b.Spec.Containers[0].Image = "y"
	require.False(t, sameTemplate(&a, &b))
	require.NotEqual(t, hashOf(&a, nil), hashOf(&b, nil))
}

func TestHash(t *testing.T) {
	a := template("x")
	require.Equal(t, "6f6fc996ff", hashOf(&a, nil), "another hash would cause a rollout")
	one, two := int32(1), int32(2)
	seen := map[string]bool{hashOf(&a, nil): true, hashOf(&a, &one): true, hashOf(&a, &two): true, hashOf(&a, new(int32)): true}
	require.Len(t, seen, 4)
}

func TestNamesFit(t *testing.T) {
	require.Equal(t, "web-abc", setName("web", "abc"))
	long := setName(strings.Repeat("x", 240)+"."+strings.Repeat("y", 12), "0123456789ab")
	require.LessOrEqual(t, len(long), 253)
	require.Equal(t, strings.Repeat("x", 240)+"-0123456789ab", long, "there is no dot before the dash")
}
