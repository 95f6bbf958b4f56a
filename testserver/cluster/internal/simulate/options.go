package simulate

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/leatproject/leat/controller"
)

// leaseDuration is how long a node's Lease is valid, which is the kubelet's default.
const leaseDuration = 40 * time.Second

// Options are the options of the simulation. The zero value has three nodes, on which everything runs at once.
type Options struct {
	// Nodes is the number of nodes that Run creates: node-0, node-1, and so on. Zero means 3, and a negative value
	// none. Nodes that other clients create are simulated too.
	Nodes int
	// Capacity is what a node has. Nil means 8 CPUs, 32 GiB of memory and 110 pods.
	Capacity corev1.ResourceList
	// Node changes a node before it is created, for example its labels, taints or capacity.
	Node func(index int, node *corev1.Node)
	// Start is the time from the binding of a pod until its containers run. Stop is the time that a pod takes to
	// terminate.
	Start, Stop time.Duration
	// Complete is the time that a container runs if it may end by itself, because restartPolicy is not Always.
	Complete time.Duration
	// Heartbeat is the pause between two renewals of a node's Lease, without which kube-controller-manager would take
	// the node for lost. Zero means 10 seconds, and a negative value never.
	Heartbeat time.Duration
	// Image says what the containers of an image do. Nil means BrokenTag.
	Image func(image string) Outcome
	// Controller are the options of the controllers. The default is one worker each, so that pods start in order.
	Controller controller.Options
}

// Outcome is what a container does.
type Outcome struct {
	// PullError is the message of the registry if the image cannot be pulled.
	PullError string
	// Run is the time after which the container ends. Zero means Options.Complete if restartPolicy is not Always, and
	// otherwise that the container runs forever.
	Run time.Duration
	// ExitCode is the exit code of a container that ends.
	ExitCode int32
	// Unready means that the container never becomes ready.
	Unready bool
}

// BrokenTag is the default of Options.Image: an image with the tag "broken" cannot be pulled, and all others run.
func BrokenTag(image string) Outcome {
	if strings.HasSuffix(image, ":broken") {
		return Outcome{PullError: "not found"}
	}
	return Outcome{}
}

func (o Options) withDefaults() Options {
	if o.Nodes == 0 {
		o.Nodes = 3
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = leaseDuration / 4
	}
	if o.Capacity == nil {
		o.Capacity = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"),
			corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		}
	}
	if o.Image == nil {
		o.Image = BrokenTag
	}
	return o
}
