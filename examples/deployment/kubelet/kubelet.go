package kubelet

import (
	"context"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/scale/shard"
)

// Options are the options of the simulation. Client and Pods are required.
type Options struct {
	Client *apiclient.Client
	Pods   *cachedclient.Partial[*workload.Pod]

	// Nodes is the number of nodes. Zero means 3.
	Nodes int
	// Start is the time from the creation of a Pod until it is ready. Stop is the time that a Pod takes to terminate.
	// Both are rounded up to whole seconds, because an API server stores times in seconds.
	Start, Stop time.Duration
	// Shards divides the Pods among replicas of the program. Nil means that this one works on all.
	Shards *shard.Kind[*workload.Pod]
	// Controller are the options of the controller.
	Controller controller.Options
}

// New returns a controller of Pods.
func New(o Options) *controller.Controller[api.Key] {
	if o.Nodes == 0 {
		o.Nodes = 3
	}
	k := &kubelet{o: o, client: o.Pods.Live()}
	if o.Shards != nil {
		c := controller.New("kubelet", o.Shards.Reconciler(k), o.Controller)
		c.Watch(o.Shards.Source())
		return c
	}
	c := controller.New("kubelet", k, o.Controller)
	c.Watch(controller.For(o.Pods.Informer()))
	return c
}

// kubelet is the reconciler.
type kubelet struct {
	o      Options
	client *apiclient.PartialClient[*workload.Pod]
}

// Reconcile takes the next step in the life of one Pod.
func (k *kubelet) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	p, found := k.o.Pods.Informer().Cache().Get(key)
	if !found {
		return controller.Result{}, nil
	}
	do, after := k.o.next(p, time.Now())
	if after > 0 {
		return controller.Result{RequeueAfter: after}, nil
	}
	err := k.take(ctx, key, p, do)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil // the Pod is gone or was replaced; a replacement has its own event
	}
	return controller.Result{}, err
}

// step is a step in the life of a Pod.
type step int

const (
	nothing step = iota
	bind
	start
	fail // the image cannot be pulled
	end
)

// next returns the next step, and the time until it is due.
func (o Options) next(p *workload.Pod, now time.Time) (step, time.Duration) {
	_, ready := workload.Ready(p)
	switch {
	case p.DeletionTimestamp != nil && p.Spec.NodeName == "":
		return nothing, 0 // the API server deletes a Pod without a node
	case p.DeletionTimestamp != nil:
		requested := p.DeletionTimestamp.Add(-grace(p))
		return end, max(requested.Add(o.Stop).Sub(now), 0)
	case workload.Finished(p) || ready:
		return nothing, 0
	case p.Spec.NodeName == "":
		return bind, 0
	case broken(p):
		if len(p.Status.ContainerStatuses) > 0 {
			return nothing, 0
		}
		return fail, 0
	}
	return start, max(p.CreationTimestamp.Add(o.Start).Sub(now), 0)
}

func grace(p *workload.Pod) time.Duration {
	if p.DeletionGracePeriodSeconds == nil {
		return 0
	}
	return time.Duration(*p.DeletionGracePeriodSeconds) * time.Second
}

// broken reports whether an image of the Pod cannot be pulled, because its tag is "broken".
func broken(p *workload.Pod) bool {
	for _, c := range p.Spec.Containers {
		if strings.HasSuffix(c.Image, ":broken") {
			return true
		}
	}
	return false
}

func (k *kubelet) take(ctx context.Context, key api.Key, p *workload.Pod, do step) error {
	switch do {
	case bind:
		endpoint := apiclient.Subresource[*corev1.Binding, *metav1.Status](k.o.Client, workload.Pods, key, "binding")
		_, err := endpoint.Create(ctx, &corev1.Binding{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: p.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: k.nodeOf(p.UID)},
		}, metav1.CreateOptions{})
		return err
	case start, fail:
		patch, err := apiclient.MergePatch(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": statusAt(p, do, metav1.Now())})
		if err == nil {
			_, err = k.client.Patch(ctx, key, patch, apiclient.PatchOptions{Subresource: "status"})
		}
		return err
	case end:
		now := int64(0)
		return k.client.Delete(ctx, key, metav1.DeleteOptions{
			GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(p.UID)),
		})
	}
	return nil
}

// nodeOf returns the node of a Pod. It spreads Pods over the nodes.
func (k *kubelet) nodeOf(uid types.UID) string {
	h := fnv.New32a()
	h.Write([]byte(uid))
	return "node-" + strconv.Itoa(int(h.Sum32()%uint32(k.o.Nodes)))
}

// statusAt returns the status of a Pod that has started, or that could not start.
func statusAt(p *workload.Pod, did step, now metav1.Time) corev1.PodStatus {
	status := corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now}
	ready := corev1.ConditionTrue
	if did == fail {
		status.Phase, ready = corev1.PodPending, corev1.ConditionFalse
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: ready, LastTransitionTime: now})
	}
	for _, c := range p.Spec.Containers {
		s := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: did == start}
		if did == start {
			s.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
		} else {
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image: " + c.Image}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, s)
	}
	return status
}
