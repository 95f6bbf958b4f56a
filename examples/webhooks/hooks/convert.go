package hooks

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/examples/webhooks/job"
)

// oldJob is version v1alpha1 of a TrainingJob. Its replicas have the names of a TFJob, and the policies stand in a
// structure of their own. It has no successPolicy.
type oldJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   oldSpec    `json:"spec"`
	Status job.Status `json:"status,omitzero"`
}

type oldSpec struct {
	TFReplicaSpecs map[string]job.ReplicaSpec `json:"tfReplicaSpecs"`
	RunPolicy      struct {
		Suspend      bool   `json:"suspend,omitempty"`
		BackoffLimit *int32 `json:"backoffLimit,omitempty"`
	} `json:"runPolicy,omitzero"`
}

// keptSpec is the annotation with the fields of v1 that v1alpha1 lacks.
const keptSpec = "training.leat.example/v1-spec"

var oldNames = map[string]job.ReplicaType{
	"Chief": job.Chief, "Master": job.Master, "PS": job.PS, "Worker": job.Worker, "Evaluator": job.Evaluator,
}

func toV1(old *oldJob) (*job.TrainingJob, error) {
	j := &job.TrainingJob{ObjectMeta: old.ObjectMeta, Status: old.Status}
	if kept, ok := j.Annotations[keptSpec]; ok {
		if err := json.Unmarshal([]byte(kept), &j.Spec); err != nil {
			return nil, fmt.Errorf("the annotation %s is damaged: %w", keptSpec, err)
		}
		delete(j.Annotations, keptSpec)
	}
	j.Spec.Suspend, j.Spec.BackoffLimit = old.Spec.RunPolicy.Suspend, old.Spec.RunPolicy.BackoffLimit
	j.Spec.Replicas = map[job.ReplicaType]job.ReplicaSpec{}
	for name, r := range old.Spec.TFReplicaSpecs {
		t, known := oldNames[name]
		if !known {
			return nil, fmt.Errorf("spec.tfReplicaSpecs: %s is not the type of a replica", name)
		}
		j.Spec.Replicas[t] = r
	}
	return j, nil
}

func toV1alpha1(j *job.TrainingJob) (*oldJob, error) {
	old := &oldJob{ObjectMeta: j.ObjectMeta, Status: j.Status}
	old.Spec.RunPolicy.Suspend, old.Spec.RunPolicy.BackoffLimit = j.Spec.Suspend, j.Spec.BackoffLimit
	old.Spec.TFReplicaSpecs = map[string]job.ReplicaSpec{}
	for name, t := range oldNames {
		if r, ok := j.Spec.Replicas[t]; ok {
			old.Spec.TFReplicaSpecs[name] = r
		}
	}
	kept := j.Spec
	kept.Replicas, kept.Suspend, kept.BackoffLimit = nil, false, nil
	text, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	metav1.SetMetaDataAnnotation(&old.ObjectMeta, keptSpec, string(text))
	return old, nil
}
