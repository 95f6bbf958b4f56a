package simulate_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver/cluster/internal/simulate"
)

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

func TestRunning(t *testing.T) {
	inWorld(t, simulate.Options{Start: 3 * time.Second, Heartbeat: -1}, func(w world) {
		created := time.Now()
		w.create("p")
		require.Equal(t, "Pending node-0 c:ContainerCreating", w.line("p"))
		p := w.pod("p")
		require.Equal(t, "172.18.0.2", p.Status.HostIP)
		require.Empty(t, p.Status.PodIP)
		require.Equal(t, corev1.ConditionFalse, condition(p, corev1.PodReadyToStartContainers).Status)
		require.Equal(t, "containers with unready status: [c]", condition(p, corev1.PodReady).Message)

		w.Pass(3*time.Second - 1)
		require.Equal(t, "Pending node-0 c:ContainerCreating", w.line("p"))
		w.Pass(1)
		require.Equal(t, "Running ready node-0 c:running", w.line("p"))
		p = w.pod("p")
		require.Equal(t, "10.64.0.2", p.Status.PodIP)
		require.Equal(t, []corev1.PodIP{{IP: "10.64.0.2"}}, p.Status.PodIPs)
		require.True(t, created.Equal(p.Status.StartTime.Time))
		require.Len(t, p.Status.Conditions, 5)
		for _, c := range p.Status.Conditions {
			require.Equal(t, corev1.ConditionTrue, c.Status, c.Type)
			require.Empty(t, c.Reason+c.Message)
			require.EqualValues(t, 1, c.ObservedGeneration)
		}
		s := p.Status.ContainerStatuses[0]
		require.True(t, *s.Started && s.Ready)
		require.True(t, created.Add(3*time.Second).Equal(s.State.Running.StartedAt.Time))
		require.Regexp(t, "^web:1@sha256:[0-9a-f]{64}$", s.ImageID)
		require.Regexp(t, "^containerd://[0-9a-f]{64}$", s.ContainerID)

		version := w.Server.ResourceVersion()
		w.Pass(time.Hour)
		require.Equal(t, version, w.Server.ResourceVersion(), "a running pod causes no writes")
	})
}

// TestHeartbeat reads the Lease of a node, which kube-controller-manager would take for lost without it.
func TestHeartbeat(t *testing.T) {
	leases := api.Resource{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease", Plural: "leases", Namespaced: true}
	inWorld(t, simulate.Options{Nodes: 1}, func(w world) {
		renewed := func() time.Time {
			lease := testkit.Get[*coordinationv1.Lease](w.Kit, leases, api.Key{Namespace: "kube-node-lease", Name: "node-0"})
			require.Equal(t, "node-0", *lease.Spec.HolderIdentity)
			require.EqualValues(t, 40, *lease.Spec.LeaseDurationSeconds)
			require.Equal(t, "Node", lease.OwnerReferences[0].Kind)
			return lease.Spec.RenewTime.Time
		}
		w.Idle()
		for range 5 {
			require.WithinDuration(t, time.Now(), renewed(), 0)
			w.Pass(10 * time.Second)
		}
		testkit.Edit(w.Kit, nodes, api.Key{Name: "node-0"}, func(n *corev1.Node) {
			for i := range n.Status.Conditions {
				n.Status.Conditions[i].Status = corev1.ConditionUnknown
			}
		})
		lost := renewed()
		w.Pass(time.Minute)
		require.Equal(t, lost, renewed(), "a lost node renews nothing")
	})
}

func TestPodsSpread(t *testing.T) {
	inWorld(t, simulate.Options{}, func(w world) {
		perNode, addresses := map[string]int{}, map[string]bool{}
		for i := range 9 {
			w.create(fmt.Sprint("p", i))
			p := w.pod(fmt.Sprint("p", i))
			perNode[p.Spec.NodeName]++
			addresses[p.Status.PodIP] = true
		}
		require.Equal(t, map[string]int{"node-0": 3, "node-1": 3, "node-2": 3}, perNode)
		require.Len(t, addresses, 9)
	})
}

func TestNodes(t *testing.T) {
	inWorld(t, simulate.Options{Nodes: 2, Node: func(i int, n *corev1.Node) {
		n.Labels["zone"] = fmt.Sprint(i)
		n.Status.Capacity[corev1.ResourceCPU] = quantity("2")
	}}, func(w world) {
		n := testkit.Get[*corev1.Node](w.Kit, nodes, api.Key{Name: "node-1"})
		require.Equal(t, "1", n.Labels["zone"])
		require.Equal(t, "node-1", n.Labels[corev1.LabelHostname])
		require.Equal(t, "10.64.1.0/24", n.Spec.PodCIDR)
		require.Equal(t, "2", n.Status.Allocatable.Cpu().String())
		require.Equal(t, "110", n.Status.Capacity.Pods().String())
		require.Equal(t, []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.18.0.3"}, {Type: corev1.NodeHostName, Address: "node-1"}}, n.Status.Addresses)
		require.Len(t, n.Status.Conditions, 4)

		// A node of another client gets a status and runs pods.
		testkit.Create(w.Kit, nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "mine", Labels: map[string]string{"mine": "yes"}}})
		w.create("p", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"mine": "yes"} })
		require.Equal(t, "Running ready mine c:running", w.line("p"))
	})
}

func TestUnschedulable(t *testing.T) {
	taint := corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}
	inWorld(t, simulate.Options{Nodes: 3, Node: func(i int, n *corev1.Node) {
		n.Status.Capacity[corev1.ResourceCPU] = quantity("2")
		switch i {
		case 1:
			n.Spec.Unschedulable = true
		case 2:
			n.Spec.Taints = []corev1.Taint{taint}
		}
	}}, func(w world) {
		w.create("a", requests("1500m"))
		require.Equal(t, "Running ready node-0 c:running", w.line("a"))
		w.create("b", requests("1"))
		require.Equal(t, "Pending", w.line("b"))
		c := condition(w.pod("b"), corev1.PodScheduled)
		require.Equal(t, corev1.PodReasonUnschedulable, c.Reason)
		require.Equal(t, "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable.", c.Message)

		w.create("tolerant", requests("1"), func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "yes"}}
		})
		require.Equal(t, "Running ready node-2 c:running", w.line("tolerant"))
		w.create("elsewhere", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"none": "such"} })
		require.Contains(t, condition(w.pod("elsewhere"), corev1.PodScheduled).Message, "node(s) didn't match Pod's node affinity/selector")

		w.delete("a")
		require.Equal(t, "Running ready node-0 c:running", w.line("b"), "it is tried again when there is room")
		_, err := w.Server.Edit(nodes, api.Key{Name: "node-1"}, func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{"none": "such"})
			unstructured.RemoveNestedField(u.Object, "spec", "unschedulable")
		})
		require.NoError(t, err)
		w.Idle()
		require.Equal(t, "Running ready node-1 c:running", w.line("elsewhere"), "it is tried again when nodes change")
	})
}

func TestNotScheduled(t *testing.T) {
	inWorld(t, simulate.Options{}, func(w world) {
		w.create("other", func(p *corev1.Pod) { p.Spec.SchedulerName = "mine" })
		w.create("gated", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "leat.example/g"}} })
		require.Equal(t, "Pending", w.line("other"))
		require.Equal(t, "Pending", w.line("gated"))
		testkit.Edit(w.Kit, pods, key("gated"), func(p *corev1.Pod) { p.Spec.SchedulingGates = nil })
		require.Equal(t, "Running ready node-0 c:running", w.line("gated"))
	})
	inWorld(t, simulate.Options{Nodes: -1}, func(w world) {
		w.create("p")
		require.Equal(t, "no nodes available to schedule pods", condition(w.pod("p"), corev1.PodScheduled).Message)
	})
	inWorld(t, simulate.Options{Nodes: 1, Capacity: corev1.ResourceList{corev1.ResourcePods: quantity("1")}}, func(w world) {
		w.create("p")
		w.create("q")
		require.Equal(t, "0/1 nodes are available: 1 Too many pods.", condition(w.pod("q"), corev1.PodScheduled).Message)
	})
}

func TestCompletion(t *testing.T) {
	inWorld(t, simulate.Options{Complete: 4 * time.Second, Image: func(image string) simulate.Outcome {
		if image == "fails" {
			return simulate.Outcome{ExitCode: 3}
		}
		return simulate.Outcome{}
	}}, func(w world) {
		w.create("job", policy(corev1.RestartPolicyNever))
		w.create("bad", policy(corev1.RestartPolicyNever), image("fails"))
		w.create("again", policy(corev1.RestartPolicyOnFailure), image("fails"))
		require.Equal(t, "Running ready node-0 c:running", w.line("job"))
		w.Pass(4 * time.Second)
		require.Equal(t, "Succeeded node-0 c:Completed 0", w.line("job"))
		require.Equal(t, "PodCompleted", condition(w.pod("job"), corev1.PodReady).Reason)
		require.Equal(t, "Failed node-1 c:Error 3", w.line("bad"))
		require.Equal(t, "PodFailed", condition(w.pod("bad"), corev1.PodReady).Reason)
		require.Equal(t, "Running ready node-2 c:running/1", w.line("again"), "the first restart is at once")
		w.Pass(4 * time.Second)
		require.Equal(t, "Running node-2 c:CrashLoopBackOff/1", w.line("again"))
		w.Pass(10*time.Second - 1)
		require.Equal(t, "Running node-2 c:CrashLoopBackOff/1", w.line("again"))
		w.Pass(1)
		require.Equal(t, "Running ready node-2 c:running/2", w.line("again"))
		require.EqualValues(t, 3, w.pod("again").Status.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode)
		w.Pass(4 * time.Second)
		require.Equal(t, "back-off 20s restarting failed container=c pod=again_default("+string(w.pod("again").UID)+")",
			w.pod("again").Status.ContainerStatuses[0].State.Waiting.Message)
		w.Pass(20*time.Second + 4*time.Second + 40*time.Second + 4*time.Second)
		require.Equal(t, "Running node-2 c:CrashLoopBackOff/4", w.line("again"))
		w.Pass(time.Hour)
		require.Equal(t, "Succeeded node-0 c:Completed 0", w.line("job"), "it does not run again")
	})
}

func TestImages(t *testing.T) {
	var pushed atomic.Bool
	inWorld(t, simulate.Options{Heartbeat: -1, Image: func(image string) simulate.Outcome {
		if image == "later" && !pushed.Load() {
			return simulate.Outcome{PullError: "no such host"}
		}
		return simulate.Outcome{Unready: image == "unready"}
	}}, func(w world) {
		w.create("p", image("later"))
		require.Equal(t, "Pending node-0 c:ErrImagePull", w.line("p"))
		require.Equal(t, `failed to pull and unpack image "later": no such host`, w.pod("p").Status.ContainerStatuses[0].State.Waiting.Message)
		w.Pass(10*time.Second - 1)
		require.Equal(t, "Pending node-0 c:ErrImagePull", w.line("p"))
		w.Pass(1)
		require.Equal(t, "Pending node-0 c:ImagePullBackOff", w.line("p"))
		version := w.Server.ResourceVersion()
		w.Pass(time.Hour)
		require.Equal(t, version, w.Server.ResourceVersion(), "tries without success write nothing")
		pushed.Store(true)
		w.Pass(5 * time.Minute)
		require.Equal(t, "Running ready node-0 c:running", w.line("p"))

		w.create("u", image("unready"))
		w.Pass(time.Hour)
		require.Equal(t, "Running node-1 c:running", w.line("u"))
	})
	inWorld(t, simulate.Options{}, func(w world) {
		w.create("p", image("web:broken"))
		require.Equal(t, "Pending node-0 c:ErrImagePull", w.line("p"))
	})
}

func TestInitContainers(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	inWorld(t, simulate.Options{Start: time.Second, Image: func(image string) simulate.Outcome {
		switch image {
		case "slow":
			return simulate.Outcome{Run: 5 * time.Second}
		case "fails":
			return simulate.Outcome{ExitCode: 1}
		}
		return simulate.Outcome{}
	}}, func(w world) {
		w.create("p", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{
				{Name: "first", Image: "slow"}, {Name: "side", Image: "i", RestartPolicy: &always}, {Name: "second", Image: "i"},
			}
		})
		w.Pass(time.Second)
		require.Equal(t, "Pending node-0 first:running side:PodInitializing second:PodInitializing c:PodInitializing", w.line("p"))
		require.Equal(t, "containers with incomplete status: [first side second]", condition(w.pod("p"), corev1.PodInitialized).Message)
		w.Pass(5 * time.Second)
		require.Equal(t, "Running ready node-0 first:Completed 0 side:running second:Completed 0 c:running", w.line("p"))

		fails := func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "fails"}} }
		w.create("never", fails, policy(corev1.RestartPolicyNever))
		w.create("again", fails)
		w.Pass(time.Second)
		require.Equal(t, "Failed node-1 first:Error 1 c:PodInitializing", w.line("never"))
		require.Equal(t, "Pending node-2 first:CrashLoopBackOff/1 c:PodInitializing", w.line("again"))
	})
}

func TestReadiness(t *testing.T) {
	inWorld(t, simulate.Options{}, func(w world) {
		w.create("probed", func(p *corev1.Pod) {
			p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{InitialDelaySeconds: 7}
		})
		w.create("gated", func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "leat.example/g"}}
		})
		require.Equal(t, "Running node-0 c:running", w.line("probed"))
		w.Pass(7 * time.Second)
		require.Equal(t, "Running ready node-0 c:running", w.line("probed"))
		require.Equal(t, "ReadinessGatesNotReady", condition(w.pod("gated"), corev1.PodReady).Reason)
		testkit.Edit(w.Kit, pods, key("gated"), func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "leat.example/g", Status: corev1.ConditionTrue})
		})
		require.Equal(t, "Running ready node-1 c:running", w.line("gated"))
	})
}

func TestTermination(t *testing.T) {
	grace := int64(5)
	inWorld(t, simulate.Options{Stop: 8 * time.Second}, func(w world) {
		w.create("patient")
		w.create("short", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &grace })
		w.create("held", func(p *corev1.Pod) { p.Finalizers = []string{"leat.example/f"} })
		for _, name := range []string{"patient", "short", "held"} {
			w.delete(name)
		}
		w.Pass(5*time.Second - 1)
		require.Equal(t, "Running ready node-1 c:running", w.line("short"))
		w.Pass(1)
		require.False(t, testkit.Has(w.Kit, pods, key("short")), "it is killed after its grace period")
		w.Pass(3*time.Second - 1)
		require.Equal(t, "Running ready node-0 c:running", w.line("patient"))
		w.Pass(1)
		require.False(t, testkit.Has(w.Kit, pods, key("patient")))
		require.Equal(t, "Failed node-2 c:Error 143", w.line("held"))
		require.EqualValues(t, 0, *w.pod("held").DeletionGracePeriodSeconds)
		w.Pass(time.Minute)
		testkit.Edit(w.Kit, pods, key("held"), func(p *corev1.Pod) { p.Finalizers = nil })
		require.False(t, testkit.Has(w.Kit, pods, key("held")))
	})
}

func TestFailedNode(t *testing.T) {
	inWorld(t, simulate.Options{Nodes: 1, Start: time.Second}, func(w world) {
		w.create("p")
		w.Pass(time.Second)
		ready := func(is corev1.ConditionStatus) {
			testkit.Edit(w.Kit, nodes, api.Key{Name: "node-0"}, func(n *corev1.Node) {
				for i := range n.Status.Conditions {
					if n.Status.Conditions[i].Type == corev1.NodeReady {
						n.Status.Conditions[i].Status = is
					}
				}
			})
		}
		ready(corev1.ConditionUnknown)
		w.create("q")
		require.Equal(t, "0/1 nodes are available: 1 node(s) were not ready.", condition(w.pod("q"), corev1.PodScheduled).Message)
		w.delete("p")
		w.Pass(time.Hour)
		require.NotNil(t, w.pod("p").DeletionTimestamp, "a node that does not answer stops nothing")
		ready(corev1.ConditionTrue)
		require.False(t, testkit.Has(w.Kit, pods, key("p")))
		w.Pass(time.Second)
		require.Equal(t, "Running ready node-0 c:running", w.line("q"))
	})
}

// TestTaints changes the conditions of a node. Taints of other clients stay.
func TestTaints(t *testing.T) {
	mine := corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}
	eviction := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}
	of := func(key string) corev1.Taint { return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule} }
	inWorld(t, simulate.Options{Nodes: 1, Node: func(_ int, n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{of(corev1.TaintNodeNotReady), mine, eviction}
	}}, func(w world) {
		requireTaints := func(want ...corev1.Taint) {
			t.Helper()
			require.Equal(t, want, testkit.Get[*corev1.Node](w.Kit, nodes, api.Key{Name: "node-0"}).Spec.Taints)
		}
		edit := func(change func(*corev1.Node)) { testkit.Edit(w.Kit, nodes, api.Key{Name: "node-0"}, change) }
		set := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) {
			edit(func(n *corev1.Node) {
				at := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
				n.Status.Conditions[at].Status = status
			})
		}
		requireTaints(mine, eviction)
		set(corev1.NodeReady, corev1.ConditionFalse)
		requireTaints(mine, eviction, of(corev1.TaintNodeNotReady))
		set(corev1.NodeReady, corev1.ConditionUnknown)
		requireTaints(mine, eviction, of(corev1.TaintNodeUnreachable))
		set(corev1.NodeMemoryPressure, corev1.ConditionTrue)
		requireTaints(mine, eviction, of(corev1.TaintNodeUnreachable), of(corev1.TaintNodeMemoryPressure))
		edit(func(n *corev1.Node) { n.Spec.Unschedulable = true })
		set(corev1.NodeReady, corev1.ConditionTrue)
		requireTaints(mine, eviction, of(corev1.TaintNodeMemoryPressure), of(corev1.TaintNodeUnschedulable))
		set(corev1.NodeMemoryPressure, corev1.ConditionFalse)
		edit(func(n *corev1.Node) { n.Spec.Unschedulable = false })
		requireTaints(mine, eviction)
	})
}

// TestLostNode deletes a pod on a node that does not exist.
func TestLostNode(t *testing.T) {
	inWorld(t, simulate.Options{}, func(w world) {
		w.create("p", func(p *corev1.Pod) { p.Spec.NodeName = "gone" })
		require.Equal(t, "Pending gone", w.line("p"))
		w.delete("p")
		require.False(t, testkit.Has(w.Kit, pods, key("p")))
	})
}

// TestRestart ends the simulation and starts another one: pods keep what they have, and what was due is done.
func TestRestart(t *testing.T) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		w := world{k}
		o := simulate.Options{Nodes: 1, Start: time.Second, Complete: time.Minute}
		first := k.Start(simulate.New(k.Client, o).Run)
		w.create("p")
		w.create("job", policy(corev1.RestartPolicyNever))
		w.Pass(time.Second)
		before := w.pod("p").Status
		first.Stop()
		w.Pass(time.Hour)
		k.Start(simulate.New(k.Client, o).Run)
		require.Equal(t, before, w.pod("p").Status)
		require.Equal(t, "Succeeded node-0 c:Completed 0", w.line("job"))
		finished := w.pod("job").Status.ContainerStatuses[0].State.Terminated
		require.Equal(t, time.Minute, finished.FinishedAt.Sub(finished.StartedAt.Time))
		w.create("q")
		w.Pass(time.Second)
		require.NotEqual(t, before.PodIP, w.pod("q").Status.PodIP)
		require.Len(t, testkit.List[*corev1.Node](k, nodes, ""), 1)
	})
}

func TestHostNetwork(t *testing.T) {
	inWorld(t, simulate.Options{}, func(w world) {
		w.create("p", func(p *corev1.Pod) { p.Spec.HostNetwork = true })
		require.Equal(t, w.pod("p").Status.HostIP, w.pod("p").Status.PodIP)
	})
}
