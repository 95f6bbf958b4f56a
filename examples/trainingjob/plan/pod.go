package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/examples/trainingjob/job"
)

// Pod is what is looked at in a Pod. Everything else is skipped while it is read, and never stored.
type Pod struct {
	metav1.ObjectMeta `json:"metadata"`

	Status PodStatus `json:"status"`
}

// PodStatus is what is looked at in the status of a Pod.
type PodStatus struct {
	Phase             corev1.PodPhase   `json:"phase"`
	Conditions        []PodCondition    `json:"conditions"`
	ContainerStatuses []ContainerStatus `json:"containerStatuses"`
}

// PodCondition is what is looked at in a condition of a Pod.
type PodCondition struct {
	Type   corev1.PodConditionType `json:"type"`
	Status corev1.ConditionStatus  `json:"status"`
}

// ContainerStatus is what is looked at in the status of a container.
type ContainerStatus struct {
	Name         string         `json:"name"`
	RestartCount int32          `json:"restartCount"`
	State        ContainerState `json:"state"`
}

// ContainerState says how a container ended.
type ContainerState struct {
	Terminated *Termination `json:"terminated"`
}

// Termination is how a container ended.
type Termination struct {
	ExitCode int32 `json:"exitCode"`
}

// Service is all that is looked at in a Service.
type Service = metav1.PartialObjectMetadata

// over tells whether a Pod has ended.
func over(p *Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// active tells whether a Pod runs or is about to, and was not told to end.
func active(p *Pod) bool { return p.DeletionTimestamp == nil && !over(p) }

// failed tells whether a Pod has ended badly by itself. One that was told to end may well do so with a signal: that says
// nothing about the job.
func failed(p *Pod) bool { return p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodFailed }

// exitCode is what the container that trains ended with. There is none where it was never started, or its node does not
// tell any more.
func exitCode(p *Pod) (code int32, known bool) {
	at := slices.IndexFunc(p.Status.ContainerStatuses, func(c ContainerStatus) bool { return c.Name == job.ContainerName })
	if at < 0 || p.Status.ContainerStatuses[at].State.Terminated == nil {
		return 0, false
	}
	return p.Status.ContainerStatuses[at].State.Terminated.ExitCode, true
}

// restarts counts how often the kubelet has restarted containers of a Pod.
func restarts(p *Pod) (n int32) {
	for _, c := range p.Status.ContainerStatuses {
		n += c.RestartCount
	}
	return n
}

// Retryable tells whether a container that ended with a code may do better when it is run again: it was ended by SIGINT,
// SIGKILL or SIGTERM, as happens when its node is drained or memory is short, or says so itself by SIGUSR1. Everything else
// is a fault of the program or of its command line, and would come again.
// It corresponds to IsRetryableExitCode of kubeflow's training-operator.
func Retryable(code int32) bool { return slices.Contains([]int32{130, 137, 138, 143}, code) }

// disrupted tells whether a Pod was ended because of its node or for the sake of others (KEP-3329). What its containers
// ended with when they were told to go says nothing then.
func disrupted(p *Pod) bool {
	return slices.Contains(p.Status.Conditions, PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue})
}

// mayRestart tells whether a Pod that failed is to be replaced.
func mayRestart(p *Pod, policy job.RestartPolicy) bool {
	switch policy {
	case job.Always, job.OnFailure:
		return true
	case job.ExitCode:
		code, known := exitCode(p)
		return !known || Retryable(code) || disrupted(p)
	}
	return false
}
