package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/bench/load"
	"github.com/leatproject/leat/testserver"
)

// others is the number of nodes and of jobs in a full server: as many as the pods name nodes.
const others = load.Nodes

var (
	pods  = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	nodes = api.Resource{Version: "v1", Kind: "Node", Plural: "nodes"}
	jobs  = api.Resource{Group: "batch", Version: "v1", Kind: "Job", Plural: "jobs", Namespaced: true}
)

// serve starts a server in this process. It has the project's objects and, unless n is 0, n pods, the nodes and jobs.
func (p Project) serve(n int) (host string, stop func(), err error) {
	s := testserver.New(testserver.Options{})
	defined := p.define(s)
	for _, o := range p.Objects {
		if _, err := s.Create(defined[reflect.TypeOf(o).Elem().Name()], o); err != nil {
			return "", nil, fmt.Errorf("rig: create %T: %w", o, err)
		}
	}
	set := load.NewSet(load.Seed, load.Workloads)
	for i := range n {
		pod, err := podOf(set, i)
		if err != nil {
			return "", nil, err
		}
		if _, err := s.Create(pods, pod); err != nil {
			return "", nil, fmt.Errorf("rig: create a pod: %w", err)
		}
		if i >= others {
			continue
		}
		if _, err := s.Create(nodes, node(fmt.Sprintf("node-%04d", i))); err != nil { // a node that pods name
			return "", nil, fmt.Errorf("rig: create a node: %w", err)
		}
		if _, err := s.Create(jobs, job(pod, i)); err != nil {
			return "", nil, fmt.Errorf("rig: create a job: %w", err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	return "http://" + l.Addr().String(), func() { cancel(); <-ended }, nil
}

// define defines the resources of the project, as its CustomResourceDefinitions would, and those of Kubernetes that
// the server lacks.
func (p Project) define(s *testserver.Server) map[string]api.Resource {
	defined := map[string]api.Resource{}
	cluster := append([]string{"CSINode", "StorageClass", "VolumeAttachment", "DeviceClass", "ResourceSlice"}, p.Cluster...)
	for _, group := range append([]schema.GroupVersion{appsv1.SchemeGroupVersion, storagev1.SchemeGroupVersion, resourcev1.SchemeGroupVersion}, p.Groups...) {
		known := scheme.Scheme.KnownTypes(group)
		for kind := range known {
			if _, ok := known[kind+"List"]; !ok {
				continue
			}
			plural, _ := meta.UnsafeGuessKindToResource(group.WithKind(kind))
			r := api.Resource{
				Group: group.Group, Version: group.Version, Kind: kind, Plural: plural.Resource,
				Namespaced: !slices.Contains(cluster, kind),
			}
			if _, err := s.List(r, ""); err == nil {
				continue // it is built in
			}
			s.Define(testserver.Definition{Resource: r})
			defined[kind] = r
		}
	}
	return defined
}

// podOf returns a pod of the set, with its managedFields.
func podOf(set *load.Set, i int) (*unstructured.Unstructured, error) {
	pod := &unstructured.Unstructured{}
	err := json.Unmarshal(set.Append(nil, load.JSON, i, load.State{Version: load.FirstVersion}), &pod.Object)
	pod.SetUID("")
	return pod, err
}

// job returns a Job with the template of a pod.
func job(pod *unstructured.Unstructured, i int) *unstructured.Unstructured {
	spec, _, _ := unstructured.NestedMap(pod.Object, "spec")
	delete(spec, "nodeName")
	spec["restartPolicy"] = "Never"
	j := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "job"}}, "spec": spec},
	}, "status": map[string]any{"active": int64(1)}}}
	j.SetNamespace(pod.GetNamespace())
	j.SetName(fmt.Sprint("job-", i))
	j.SetManagedFields(pod.GetManagedFields())
	return j
}

// node returns a node with the conditions, the labels and the images of a usual one.
func node(name string) client.Object {
	size := corev1.ResourceList{
		"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110"),
		"ephemeral-storage": resource.MustParse("200Gi"),
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
			corev1.LabelTopologyZone: "zone-a", corev1.LabelTopologyRegion: "region", corev1.LabelInstanceTypeStable: "large",
		}},
		Spec: corev1.NodeSpec{ProviderID: "provider://" + name, PodCIDR: "10.0.0.0/24", PodCIDRs: []string{"10.0.0.0/24"}},
		Status: corev1.NodeStatus{Capacity: size, Allocatable: size, NodeInfo: corev1.NodeSystemInfo{
			KubeletVersion: "v1.37.2", OSImage: "Debian", KernelVersion: "6.12", ContainerRuntimeVersion: "containerd://2.2",
		}},
	}
	at := metav1.NewTime(time.Unix(1_790_000_000, 0))
	for _, t := range []corev1.NodeConditionType{"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"} {
		status := corev1.ConditionFalse
		if t == "Ready" {
			status = corev1.ConditionTrue
		}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: t, Status: status, Reason: "Kubelet", Message: "as the kubelet says", LastHeartbeatTime: at, LastTransitionTime: at,
		})
	}
	for i := range 30 {
		image := fmt.Sprintf("registry.example.com/team/image-%d", i)
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{
			Names: []string{image + "@sha256:" + strings.Repeat("0123456789abcdef", 4), image + ":v1.2.3"}, SizeBytes: 123_456_789,
		})
	}
	return n
}
