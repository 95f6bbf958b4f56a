package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/examples/trainingjob/job"
)

// Pod has the fields of a Pod that this package reads. The decoder skips all others, so they use no memory.
type Pod struct {
	metav1.ObjectMeta `json:"metadata"`

	Status PodStatus `json:"status"`
}

// PodStatus has the fields of the status of a Pod.
type PodStatus struct {
	Phase             corev1.PodPhase   `json:"phase"`
	Conditions        []PodCondition    `json:"conditions"`
	ContainerStatuses []ContainerStatus `json:"containerStatuses"`
}

// PodCondition has the fields of a condition of a Pod.
type PodCondition struct {
	Type   corev1.PodConditionType `json:"type"`
	Status corev1.ConditionStatus  `json:"status"`
}

// ContainerStatus has the fields of the status of a container.
type ContainerStatus struct {
	Name         string         `json:"name"`
	RestartCount int32          `json:"restartCount"`
	State        ContainerState `json:"state"`
}

// ContainerState has the state of a container that has ended.
type ContainerState struct {
	Terminated *Termination `json:"terminated"`
}

// Termination has the exit code of a container.
type Termination struct {
	ExitCode int32 `json:"exitCode"`
}

// Service has only the metadata of a Service.
type Service = metav1.PartialObjectMetadata

// over reports whether a Pod has ended.
func over(p *Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// active reports whether a Pod runs or will run, and is not being deleted.
func active(p *Pod) bool { return p.DeletionTimestamp == nil && !over(p) }

// failed reports whether a Pod has failed by itself. A deleted Pod may also end with an error or a signal. That says
// nothing about the job.
func failed(p *Pod) bool { return p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodFailed }

// exitCode returns the exit code of the training container. It is unknown if the container never started, or if its
// node no longer reports it.
func exitCode(p *Pod) (code int32, known bool) {
	at := slices.IndexFunc(p.Status.ContainerStatuses, func(c ContainerStatus) bool { return c.Name == job.ContainerName })
	if at < 0 || p.Status.ContainerStatuses[at].State.Terminated == nil {
		return 0, false
	}
	return p.Status.ContainerStatuses[at].State.Terminated.ExitCode, true
}

// restarts returns how often the kubelet has restarted containers of a Pod.
func restarts(p *Pod) (n int32) {
	for _, c := range p.Status.ContainerStatuses {
		n += c.RestartCount
	}
	return n
}

// Retryable reports whether another run may succeed after an exit code. It is true for SIGINT, SIGKILL and SIGTERM,
// which follow from a drained node or a lack of memory, and for SIGUSR1, with which a program can request it. All other
// codes mean an error of the program or its command line, which would occur again. It corresponds to
// IsRetryableExitCode of kubeflow's training-operator.
func Retryable(code int32) bool { return slices.Contains([]int32{130, 137, 138, 143}, code) }

// disrupted reports whether a Pod was ended because of its node or for other Pods (KEP-3329). Its exit codes then say
// nothing about the program.
func disrupted(p *Pod) bool {
	return slices.Contains(p.Status.Conditions, PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue})
}

// mayRestart reports whether a failed Pod is to be replaced.
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
