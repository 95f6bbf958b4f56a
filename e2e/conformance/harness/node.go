package harness

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
)

// NodeName is the node that Main starts.
const NodeName = "node-1"

// heartbeat is how often the node reports. The node lifecycle controller waits for 50 seconds.
const heartbeat = 10 * time.Second

// Node imitates a scheduler and a kubelet with one node: it binds every pod to itself, reports it as running and ready,
// and removes it when it is deleted. Pods that may end, those of Jobs, succeed. It starts no container.
type Node struct {
	Client kubernetes.Interface
	Name   string
}

// Run registers the node and runs pods until ctx ends.
func (n *Node) Run(ctx context.Context) error {
	if err := n.register(ctx); err != nil {
		return err
	}
	go wait.UntilWithContext(ctx, func(ctx context.Context) { _ = n.report(ctx) }, heartbeat) // the next report repeats it
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	factory := informers.NewSharedInformerFactory(n.Client, 0)
	pods := factory.Core().V1().Pods()
	add := func(o any) {
		if key, err := cache.DeletionHandlingObjectToName(o); err == nil {
			queue.Add(key)
		}
	}
	if _, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, o any) { add(o) },
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	go func() {
		<-ctx.Done()
		queue.ShutDown()
	}()
	for {
		key, done := queue.Get()
		if done {
			factory.Shutdown()
			return nil
		}
		pod, err := pods.Lister().Pods(key.Namespace).Get(key.Name)
		if err == nil {
			err = n.run(ctx, pod.DeepCopy())
		}
		if err == nil || apierrors.IsNotFound(err) {
			queue.Forget(key)
		} else {
			queue.AddRateLimited(key)
		}
		queue.Done(key)
	}
}

func (n *Node) register(ctx context.Context) error {
	quantities := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods: resource.MustParse("500"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{corev1.LabelHostname: n.Name}},
		Status:     corev1.NodeStatus{Capacity: quantities, Allocatable: quantities},
	}
	if _, err := n.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("harness: register %s: %w", n.Name, err)
	}
	return n.report(ctx)
}

// report writes the heartbeat.
func (n *Node) report(ctx context.Context) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := n.Client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: node.CreationTimestamp,
		}}
		_, err = n.Client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
}

// run brings a pod one step further.
func (n *Node) run(ctx context.Context, pod *corev1.Pod) error {
	pods := n.Client.CoreV1().Pods(pod.Namespace)
	switch {
	case pod.DeletionTimestamp != nil:
		now := int64(0)
		return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		})
	case pod.Spec.NodeName == "":
		return pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
			Target:     corev1.ObjectReference{Kind: "Node", Name: n.Name},
		}, metav1.CreateOptions{})
	case pod.Spec.NodeName != n.Name || pod.Status.Phase == corev1.PodSucceeded || isReady(pod):
		return nil
	}
	setStatus(pod)
	_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// setStatus makes the pod running and ready, or succeeded if it does not restart.
func setStatus(pod *corev1.Pod) {
	ends := pod.Spec.RestartPolicy != corev1.RestartPolicyAlways
	now, ready := metav1.Now(), corev1.ConditionTrue
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	pod.Status.Phase = corev1.PodRunning
	if ends {
		pod.Status.Phase, ready = corev1.PodSucceeded, corev1.ConditionFalse
		state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}}
	}
	pod.Status.PodIP = address(pod)
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	pod.Status.StartTime = &now
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady} {
		status := ready
		if kind == corev1.PodInitialized {
			status = corev1.ConditionTrue
		}
		setCondition(pod, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: now})
	}
	pod.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		started := !ends
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, State: state, Ready: !ends, Started: &started,
		})
	}
}

func setCondition(pod *corev1.Pod, condition corev1.PodCondition) {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == condition.Type {
			pod.Status.Conditions[i] = condition
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, condition)
}

// address derives an address from the UID, so that pods rarely share one.
func address(pod *corev1.Pod) string {
	hash := fnv.New32()
	_, _ = hash.Write([]byte(pod.UID)) // a hash never fails
	sum := hash.Sum32()
	return fmt.Sprintf("10.%d.%d.%d", 1+sum>>16%250, sum>>8%256, 1+sum%250)
}
