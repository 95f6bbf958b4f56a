package simulate

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// life returns the status of a pod on a node at a time, and the time until it changes by itself; zero means never. host
// is the address of the node, and lease returns the address of the pod.
func (o Options) life(p *corev1.Pod, host string, lease func() string, now time.Time) (corev1.PodStatus, time.Duration) {
	s := *p.Status.DeepCopy()
	if s.StartTime == nil {
		started := timestamp(now)
		s.StartTime = &started
	}
	a := &alarm{}
	begun := s.StartTime.Add(o.Start)
	ready, initialized := o.initialize(p, &s, begun, now, a)
	reason := "ContainerCreating"
	if len(p.Spec.InitContainers) > 0 {
		reason = "PodInitializing"
	}
	statuses := make([]corev1.ContainerStatus, len(p.Spec.Containers))
	for i := range p.Spec.Containers {
		c := o.newContainer(p, &p.Spec.Containers[i], false)
		statuses[i] = statusOf(s.ContainerStatuses, c, reason)
		if initialized {
			statuses[i] = a.advance(c, statuses[i], ready, now, o.Complete)
		}
	}
	s.ContainerStatuses = statuses
	s.HostIP, s.HostIPs = host, []corev1.HostIP{{IP: host}}
	if !begun.After(now) && s.PodIP == "" {
		s.PodIP = host
		if !p.Spec.HostNetwork {
			s.PodIP = lease()
		}
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	}
	s.Phase = phase(p, &s, initialized)
	o.setConditions(p, &s, initialized, !begun.After(now), now)
	return s, a.wait
}

// alarm is the time until the first of several changes.
type alarm struct{ wait time.Duration }

func (a *alarm) set(wait time.Duration) {
	if wait > 0 && (a.wait == 0 || wait < a.wait) {
		a.wait = wait
	}
}

// advance brings the status of a container up to a time.
func (a *alarm) advance(c container, s corev1.ContainerStatus, begun, now time.Time, complete time.Duration) corev1.ContainerStatus {
	s, wait := c.next(s, begun, now, complete)
	a.set(wait)
	return s
}

// statusOf returns the status of a container in a list, or that of a container that has not begun.
func statusOf(all []corev1.ContainerStatus, c container, reason string) corev1.ContainerStatus {
	at := slices.IndexFunc(all, func(s corev1.ContainerStatus) bool { return s.Name == c.spec.Name })
	if at < 0 {
		return c.created(reason)
	}
	return all[at]
}

// initialize runs the init containers one after the other. It returns the time from which the containers may run; done
// is false if an init container has not succeeded yet. An init container with restartPolicy Always, a sidecar, lets the
// next one begin when it has started.
func (o Options) initialize(p *corev1.Pod, s *corev1.PodStatus, begun, now time.Time, a *alarm) (ready time.Time, done bool) {
	statuses := make([]corev1.ContainerStatus, len(p.Spec.InitContainers))
	ready, done = begun, true
	for i := range p.Spec.InitContainers {
		c := o.newContainer(p, &p.Spec.InitContainers[i], true)
		statuses[i] = statusOf(s.InitContainerStatuses, c, "PodInitializing")
		if !done {
			continue
		}
		statuses[i] = a.advance(c, statuses[i], ready, now, 0)
		switch state := statuses[i].State; {
		case c.policy == corev1.RestartPolicyAlways && state.Running != nil:
			ready = latest(ready, state.Running.StartedAt.Time)
		case state.Terminated != nil && state.Terminated.ExitCode == 0:
			ready = latest(ready, state.Terminated.FinishedAt.Time)
		default:
			done = false
		}
	}
	if len(statuses) > 0 {
		s.InitContainerStatuses = statuses
	}
	return ready, done
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// phase returns the phase of a pod.
func phase(p *corev1.Pod, s *corev1.PodStatus, initialized bool) corev1.PodPhase {
	if !initialized {
		failed := slices.ContainsFunc(s.InitContainerStatuses, func(c corev1.ContainerStatus) bool {
			return c.State.Terminated != nil && c.State.Terminated.ExitCode != 0
		})
		if failed && p.Spec.RestartPolicy == corev1.RestartPolicyNever {
			return corev1.PodFailed
		}
		return corev1.PodPending
	}
	running, failed := false, false
	for _, c := range s.ContainerStatuses {
		switch {
		case c.State.Waiting != nil && c.LastTerminationState.Terminated == nil:
			return corev1.PodPending
		case c.State.Terminated == nil:
			running = true
		case c.State.Terminated.ExitCode != 0:
			failed = true
		}
	}
	switch {
	case running, p.Spec.RestartPolicy != corev1.RestartPolicyNever && failed,
		p.Spec.RestartPolicy == "" || p.Spec.RestartPolicy == corev1.RestartPolicyAlways:
		return corev1.PodRunning
	case failed:
		return corev1.PodFailed
	}
	return corev1.PodSucceeded
}

// setConditions sets the conditions that a kubelet sets.
func (o Options) setConditions(p *corev1.Pod, s *corev1.PodStatus, initialized, sandbox bool, now time.Time) {
	set := func(kind corev1.PodConditionType, is bool, reason, message string) {
		c := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: p.Generation}
		if is {
			c.Status = corev1.ConditionTrue
		}
		setCondition(s, c, now)
	}
	s.ObservedGeneration = p.Generation
	set(corev1.PodReadyToStartContainers, sandbox && !over(s.Phase), "", "")
	switch {
	case s.Phase == corev1.PodSucceeded:
		set(corev1.PodInitialized, true, "PodCompleted", "")
	case initialized:
		set(corev1.PodInitialized, true, "", "")
	default:
		set(corev1.PodInitialized, false, "ContainersNotInitialized", "containers with incomplete status: "+names(s.InitContainerStatuses))
	}
	reason, message := "", ""
	if list := names(s.ContainerStatuses); list != "[]" {
		reason, message = "ContainersNotReady", "containers with unready status: "+list
	}
	switch s.Phase {
	case corev1.PodSucceeded:
		reason, message = "PodCompleted", ""
	case corev1.PodFailed:
		reason, message = "PodFailed", ""
	}
	ready := reason == ""
	set(corev1.ContainersReady, ready, reason, message)
	for _, gate := range p.Spec.ReadinessGates {
		passed := slices.ContainsFunc(s.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		})
		if ready && !passed {
			ready, reason, message = false, "ReadinessGatesNotReady", "corresponding condition of pod readiness gate \""+string(gate.ConditionType)+"\" is not \"True\"."
		}
	}
	set(corev1.PodReady, ready, reason, message)
	set(corev1.PodScheduled, true, "", "")
}

func over(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// names lists the containers that are not ready: "[a b]".
func names(all []corev1.ContainerStatus) string {
	var out []string
	for _, s := range all {
		if !s.Ready {
			out = append(out, s.Name)
		}
	}
	return "[" + strings.Join(out, " ") + "]"
}

// setCondition sets a condition, and reports whether it has changed.
func setCondition(s *corev1.PodStatus, c corev1.PodCondition, now time.Time) bool {
	c.LastTransitionTime = timestamp(now)
	at := slices.IndexFunc(s.Conditions, func(have corev1.PodCondition) bool { return have.Type == c.Type })
	if at < 0 {
		s.Conditions = append(s.Conditions, c)
		return true
	}
	have := &s.Conditions[at]
	if have.Status == c.Status {
		c.LastTransitionTime = have.LastTransitionTime
	}
	if *have == c {
		return false
	}
	*have = c
	return true
}

// stopAt returns the time when the containers of a deleted pod have stopped, and the exit code of those that ran.
// Containers that need longer than the grace period are killed.
func (o Options) stopAt(p *corev1.Pod) (time.Time, int32) {
	const terminated, killed = 143, 137
	grace := time.Duration(0)
	if seconds := p.DeletionGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	requested := p.DeletionTimestamp.Add(-grace)
	if o.Stop > grace {
		return requested.Add(grace), killed
	}
	return requested.Add(o.Stop), terminated
}

// stopped returns the last status of a deleted pod.
func (o Options) stopped(p *corev1.Pod, code int32, now time.Time) corev1.PodStatus {
	s := *p.Status.DeepCopy()
	failed := false
	stop := func(all []corev1.ContainerStatus, specs []corev1.Container, init bool) {
		for i := range all {
			at := slices.IndexFunc(specs, func(c corev1.Container) bool { return c.Name == all[i].Name })
			if at >= 0 && all[i].State.Terminated == nil {
				c := o.newContainer(p, &specs[at], init)
				started := metav1.Time{}
				if all[i].State.Running != nil {
					started = all[i].State.Running.StartedAt
				}
				c.terminate(&all[i], code, "Error", started, now)
			}
			failed = failed || all[i].State.Terminated.ExitCode != 0
		}
	}
	stop(s.InitContainerStatuses, p.Spec.InitContainers, true)
	stop(s.ContainerStatuses, p.Spec.Containers, false)
	s.Phase = corev1.PodSucceeded
	if failed || len(s.ContainerStatuses) == 0 {
		s.Phase = corev1.PodFailed
	}
	o.setConditions(p, &s, true, true, now)
	return s
}
