package job

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TrainingJob trains one model with several processes that talk to each other.
// It corresponds to TFJob of kubeflow's training-operator.
type TrainingJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitzero"`
}

// ReplicaType is what the processes of a job are told apart by.
type ReplicaType string

// The types of replicas. A chief leads and writes the trained model; without a chief, worker 0 does. Master is the
// older name of a chief: a job has one of either, or neither. Parameter servers hold the model while it is trained, and
// do not end by themselves. Evaluators measure the model beside the training: they are not part of its
// cluster, and the job does not wait for them.
const (
	Chief     ReplicaType = "chief"
	Master    ReplicaType = "master"
	PS        ReplicaType = "ps"
	Worker    ReplicaType = "worker"
	Evaluator ReplicaType = "evaluator"
)

// ReplicaTypes are all there are, in the order in which their replicas are made.
var ReplicaTypes = []ReplicaType{Chief, Master, PS, Worker, Evaluator}

// Trains reports whether the replicas of a type train, and so can succeed and run for their job.
func (t ReplicaType) Trains() bool { return t != PS && t != Evaluator }

// Spec is what a job consists of, and what becomes of it.
type Spec struct {
	Replicas map[ReplicaType]ReplicaSpec `json:"replicas"`

	// EnableDynamicWorker lets the number of workers change while the job runs. What a replica knows of the others then
	// does not name the workers.
	EnableDynamicWorker bool `json:"enableDynamicWorker,omitempty"`
	// Suspend has no Pods run, as long as it is true.
	Suspend bool `json:"suspend,omitempty"`
	// SuccessPolicy says whose success is the job's.
	SuccessPolicy SuccessPolicy `json:"successPolicy,omitempty"`
	// BackoffLimit is how many restarts of all replicas together the job survives. Nil is any number.
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
	// ActiveDeadlineSeconds is how long the job may take, from when it was started or last resumed. Nil is for ever.
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// CleanPodPolicy says which Pods are deleted when the job has finished.
	CleanPodPolicy CleanPodPolicy `json:"cleanPodPolicy,omitempty"`
	// TTLSecondsAfterFinished is how long the job itself is kept after that. Nil is for ever.
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ReplicaSpec is how many replicas of a type there are, and what they run.
type ReplicaSpec struct {
	// Replicas is one where it is nil.
	Replicas *int32 `json:"replicas,omitempty"`
	// RestartPolicy takes the place of the template's own.
	RestartPolicy RestartPolicy          `json:"restartPolicy,omitempty"`
	Template      corev1.PodTemplateSpec `json:"template"`
}

// RestartPolicy says what becomes of a replica that failed.
type RestartPolicy string

// The restart policies. Under Always and OnFailure the kubelet restarts containers within their Pod, and a Pod that fails
// as a whole is replaced. Under ExitCode what the container ended with decides; see Retryable of package plan.
const (
	Never     RestartPolicy = "Never"
	OnFailure RestartPolicy = "OnFailure"
	Always    RestartPolicy = "Always"
	ExitCode  RestartPolicy = "ExitCode"
)

// SuccessPolicy says whose success is the job's.
type SuccessPolicy string

// The success policies. Leader is the success of the chief or master or, where there is neither, of worker 0. AllWorkers
// is that of the chief or master and of every worker.
const (
	Leader     SuccessPolicy = "Leader"
	AllWorkers SuccessPolicy = "AllWorkers"
)

// CleanPodPolicy says which Pods are deleted when a job has finished.
type CleanPodPolicy string

// The policies for cleaning up. Services go with CleanRunning and CleanAll: nobody is left whom they could lead to.
const (
	CleanNone    CleanPodPolicy = "None"
	CleanRunning CleanPodPolicy = "Running"
	CleanAll     CleanPodPolicy = "All"
)

// Status is how a job fares. The controller alone writes it.
type Status struct {
	// ObservedGeneration is of the spec that the rest of the status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// StartTime is when the job was started or last resumed, and nil while it is suspended.
	StartTime      *metav1.Time `json:"startTime,omitempty"`
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Replicas counts Pods.
	Replicas map[ReplicaType]ReplicaStatus `json:"replicas,omitempty"`
	// Restarts counts restarts of replicas that were replaced, by the kubelet and by the controller. Restarting are the Pods
	// that are counted already and have not gone yet: they are written down before the first of them is deleted, so that
	// nobody who takes over in between counts them once more.
	Restarts   int32       `json:"restarts,omitempty"`
	Restarting []types.UID `json:"restarting,omitempty"`

	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ReplicaStatus counts the Pods of one type. Those that have not ended, and are not told to, are active.
type ReplicaStatus struct {
	Active    int32 `json:"active,omitempty"`
	Succeeded int32 `json:"succeeded,omitempty"`
	Failed    int32 `json:"failed,omitempty"`
}
