package job

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TrainingJob trains one model with several processes that communicate. It corresponds to TFJob of kubeflow's
// training-operator.
type TrainingJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitzero"`
}

// ReplicaType is the role of a process in a job.
type ReplicaType string

// The types of replicas.
//
//   - The chief leads and writes the trained model. Without a chief, worker 0 does. Master is the older name of a
//     chief. A job has a chief or a master, or neither.
//   - Parameter servers hold the model during the training. They do not end by themselves.
//   - Evaluators measure the model during the training. They are not part of its cluster, and the job does not wait for
//     them.
const (
	Chief     ReplicaType = "chief"
	Master    ReplicaType = "master"
	PS        ReplicaType = "ps"
	Worker    ReplicaType = "worker"
	Evaluator ReplicaType = "evaluator"
)

// ReplicaTypes are all types, in the order in which their replicas are created.
var ReplicaTypes = []ReplicaType{Chief, Master, PS, Worker, Evaluator}

// Spec is the desired state of a job.
type Spec struct {
	Replicas map[ReplicaType]ReplicaSpec `json:"replicas"`

	// EnableDynamicWorker allows the number of workers to change while the job runs. The TF_CONFIG of a replica then
	// does not name the other workers.
	EnableDynamicWorker bool `json:"enableDynamicWorker,omitempty"`
	// Suspend deletes the Pods while it is true.
	Suspend bool `json:"suspend,omitempty"`
	// SuccessPolicy defines which replicas must succeed.
	SuccessPolicy SuccessPolicy `json:"successPolicy,omitempty"`
	// BackoffLimit is the largest number of restarts of all replicas together. Nil means no limit.
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
	// ActiveDeadlineSeconds is the time that the job may take from its start or its last resumption. Nil means no
	// limit.
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// CleanPodPolicy defines which Pods are deleted after the job has finished.
	CleanPodPolicy CleanPodPolicy `json:"cleanPodPolicy,omitempty"`
	// TTLSecondsAfterFinished is the time after which a finished job is deleted. Nil means never.
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ReplicaSpec is the number of replicas of a type, and their template.
type ReplicaSpec struct {
	// Replicas is the number of replicas. Nil means one.
	Replicas *int32 `json:"replicas,omitempty"`
	// RestartPolicy replaces the policy of the template.
	RestartPolicy RestartPolicy          `json:"restartPolicy,omitempty"`
	Template      corev1.PodTemplateSpec `json:"template"`
}

// RestartPolicy defines what happens to a replica that failed.
type RestartPolicy string

// The restart policies. With ExitCode the exit code decides.
const (
	Never     RestartPolicy = "Never"
	OnFailure RestartPolicy = "OnFailure"
	Always    RestartPolicy = "Always"
	ExitCode  RestartPolicy = "ExitCode"
)

// SuccessPolicy defines which replicas must succeed for the job to succeed.
type SuccessPolicy string

// The success policies. With Leader the chief or master must succeed; without either, worker 0. With AllWorkers the
// chief or master and every worker must succeed.
const (
	Leader     SuccessPolicy = "Leader"
	AllWorkers SuccessPolicy = "AllWorkers"
)

// CleanPodPolicy defines which Pods are deleted after a job has finished.
type CleanPodPolicy string

// The policies for cleaning up. CleanRunning and CleanAll also delete the Services, because no Pod is left that needs
// them.
const (
	CleanNone    CleanPodPolicy = "None"
	CleanRunning CleanPodPolicy = "Running"
	CleanAll     CleanPodPolicy = "All"
)

// Status is the observed state of a job.
type Status struct {
	// ObservedGeneration is the generation of the spec to which the status refers.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// StartTime is the time of the start or of the last resumption. It is nil while the job is suspended.
	StartTime      *metav1.Time `json:"startTime,omitempty"`
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Replicas has the numbers of Pods of each type.
	Replicas map[ReplicaType]ReplicaStatus `json:"replicas,omitempty"`
	// Restarts counts restarts by the kubelet and by the controller. Restarting has the UIDs of Pods that are already
	// counted and still exist. Both are written before the first of these Pods is deleted, so that a new process does
	// not count a Pod again.
	Restarts   int32       `json:"restarts,omitempty"`
	Restarting []types.UID `json:"restarting,omitempty"`

	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ReplicaStatus counts the Pods of one type. Active Pods have not ended and are not being deleted.
type ReplicaStatus struct {
	Active    int32 `json:"active,omitempty"`
	Succeeded int32 `json:"succeeded,omitempty"`
	Failed    int32 `json:"failed,omitempty"`
}
