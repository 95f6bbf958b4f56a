package rollout

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
)

// hashLabel distinguishes the Pods of different templates.
const hashLabel = appsv1.DefaultDeploymentUniqueLabelKey

// hashOf returns the hash of a template: FNV-32a of its JSON and the collision count, in letters that form no words.
// The JSON of a struct is always the same, and a new field of the API changes nothing while it is not set. The hash
// differs from that of kube-controller-manager. This is harmless because templates are compared by their content.
func hashOf(template *corev1.PodTemplateSpec, collisions *int32) string {
	text, err := json.Marshal(withoutHash(template))
	if err != nil {
		panic(fmt.Sprintf("rollout: a template cannot be written as JSON: %v", err)) // it was read from JSON
	}
	h := fnv.New32a()
	h.Write(text)
	if collisions != nil {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(*collisions)))
	}
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}

// sameTemplate compares two templates by their meaning and ignores the hash label: empty equals absent, and quantities
// are compared by value.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	return equality.Semantic.DeepEqual(withoutHash(a), withoutHash(b))
}

// withoutHash returns a template without the label. The copy shares the rest.
func withoutHash(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	if _, marked := template.Labels[hashLabel]; !marked {
		return template
	}
	plain := *template
	plain.Labels = maps.Clone(template.Labels)
	delete(plain.Labels, hashLabel)
	return &plain
}

// setName returns the name of the ReplicaSet of a template. It depends only on the Deployment and the template, so a
// second try after a lost answer finds the set of the first.
func setName(deployment, hash string) string {
	most := validation.DNS1123SubdomainMaxLength - len(hash) - 1
	return strings.TrimRight(deployment[:min(len(deployment), most)], ".-") + "-" + hash
}

// newSet returns a ReplicaSet for the current template, with no owner and size zero.
func newSet(d *appsv1.Deployment) *appsv1.ReplicaSet {
	hash := hashOf(&d.Spec.Template, d.Status.CollisionCount)
	template := d.Spec.Template.DeepCopy()
	template.Labels = withLabel(template.Labels, hash)
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels = withLabel(selector.MatchLabels, hash)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: setName(d.Name, hash), Labels: maps.Clone(template.Labels),
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas:        new(int32),
			MinReadySeconds: d.Spec.MinReadySeconds,
			Selector:        selector,
			Template:        *template,
		},
	}
}

func withLabel(old map[string]string, hash string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, old)
	all[hashLabel] = hash
	return all
}
