package simulate

import (
	"crypto/sha256"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The pauses of a kubelet between two tries to pull an image, or to run a container that has ended: 10 seconds, and
// twice as long each time, up to 5 minutes. A container that ran for 10 minutes begins with the shortest pause again.
const (
	firstPause   = 10 * time.Second
	longestPause = 5 * time.Minute
	healthyRun   = 10 * time.Minute
)

// backoff returns the pause before the nth try again.
func backoff(n int) time.Duration {
	if n <= 0 {
		return 0
	}
	return min(firstPause<<min(n-1, 6), longestPause)
}

// container is one container of a pod, with everything that decides about it.
type container struct {
	pod     *corev1.Pod
	spec    *corev1.Container
	policy  corev1.RestartPolicy // of the container itself
	outcome Outcome
	run     time.Duration // zero means forever
	init    bool
}

// newContainer returns a container of a pod.
func (o Options) newContainer(p *corev1.Pod, spec *corev1.Container, init bool) container {
	c := container{pod: p, spec: spec, policy: p.Spec.RestartPolicy, outcome: o.Image(spec.Image), init: init}
	if c.policy == "" {
		c.policy = corev1.RestartPolicyAlways
	}
	if init && c.policy == corev1.RestartPolicyAlways {
		c.policy = corev1.RestartPolicyOnFailure // an init container must end once
	}
	if spec.RestartPolicy != nil {
		c.policy = corev1.RestartPolicy(*spec.RestartPolicy)
	}
	c.run = c.outcome.Run
	return c
}

// endless reports whether the container runs until its pod is deleted.
func (c container) endless() bool { return c.run == 0 && c.policy == corev1.RestartPolicyAlways }

// created returns the status of a container that has not begun.
func (c container) created(reason string) corev1.ContainerStatus {
	started := false
	return corev1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image, Started: &started,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
	}
}

// next returns the status of a container at a time, and the time until it changes again; zero means never. begun is the
// time from which the container may run, and complete the time after which a container ends that may end. next advances
// the status step by step, so that a simulation that was stopped catches up.
func (c container) next(s corev1.ContainerStatus, begun, now time.Time, complete time.Duration) (corev1.ContainerStatus, time.Duration) {
	if c.run == 0 && !c.endless() && !c.init {
		c.run = complete
	}
	for {
		after, due := c.step(&s, begun, now)
		if after == nil || due.After(now) {
			wait := time.Duration(0)
			if after != nil {
				wait = due.Sub(now)
			}
			return s, wait
		}
		after(due)
	}
}

// step returns the next change of a container, and when it is due. The change is nil if the container stays as it is.
func (c container) step(s *corev1.ContainerStatus, begun, now time.Time) (change func(at time.Time), due time.Time) {
	switch {
	case s.State.Running != nil:
		started := s.State.Running.StartedAt.Time
		if delay := c.readyAfter(); !s.Ready && c.mayBeReady() && (c.endless() || delay < c.run) {
			return func(time.Time) { s.Ready = true }, started.Add(delay)
		}
		if c.endless() {
			return nil, time.Time{}
		}
		return func(at time.Time) { c.end(s, started, at) }, started.Add(c.run)
	case s.State.Terminated != nil:
		t := s.State.Terminated
		if c.policy == corev1.RestartPolicyNever || c.policy == corev1.RestartPolicyOnFailure && t.ExitCode == 0 {
			return nil, time.Time{}
		}
		pause := backoff(int(s.RestartCount))
		if t.FinishedAt.Sub(t.StartedAt.Time) >= healthyRun {
			pause = 0
		}
		if pause == 0 {
			return func(at time.Time) { c.restart(s, at) }, t.FinishedAt.Time
		}
		return func(time.Time) { c.wait(s, pause) }, t.FinishedAt.Time
	case s.LastTerminationState.Terminated != nil: // waits for a restart
		return func(at time.Time) { c.restart(s, at) }, s.LastTerminationState.Terminated.FinishedAt.Add(backoff(int(s.RestartCount)))
	}
	return c.pull(s, begun, now)
}

// pull returns the change of a container that has not run yet.
func (c container) pull(s *corev1.ContainerStatus, begun, now time.Time) (change func(time.Time), due time.Time) {
	reason := s.State.Waiting.Reason
	backingOff := reason == "ErrImagePull" || reason == "ImagePullBackOff"
	switch {
	case c.outcome.PullError == "" && !backingOff:
		return func(at time.Time) { c.start(s, at) }, begun
	case c.outcome.PullError == "":
		return func(at time.Time) { c.start(s, at) }, now // the rule for the image has changed
	case !backingOff:
		return func(time.Time) {
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: fmt.Sprintf(
				"failed to pull and unpack image %q: %s", c.spec.Image, c.outcome.PullError)}
		}, begun
	case reason == "ErrImagePull":
		return func(time.Time) {
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: fmt.Sprintf(
				"Back-off pulling image %q: ErrImagePull: failed to pull and unpack image %q: %s", c.spec.Image, c.spec.Image, c.outcome.PullError)}
		}, begun.Add(firstPause)
	}
	// The status stays until the rule for the image changes. The next try finds out.
	return func(time.Time) {}, nextPull(begun, now)
}

// nextPull returns the first try to pull an image after a time.
func nextPull(begun, after time.Time) time.Time {
	at := begun
	for n := 1; !at.After(after); n++ {
		at = at.Add(backoff(n))
	}
	return at
}

func (c container) start(s *corev1.ContainerStatus, at time.Time) {
	started := true
	s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: timestamp(at)}}
	s.Started = &started
	s.ImageID = fmt.Sprintf("%s@sha256:%x", c.spec.Image, sha256.Sum256([]byte(c.spec.Image)))
	id := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", c.pod.UID, c.spec.Name, s.RestartCount))
	s.ContainerID = fmt.Sprintf("containerd://%x", id)
}

func (c container) end(s *corev1.ContainerStatus, started, at time.Time) {
	reason := "Completed"
	if c.outcome.ExitCode != 0 {
		reason = "Error"
	}
	c.terminate(s, c.outcome.ExitCode, reason, metav1.NewTime(started), at)
}

func (c container) terminate(s *corev1.ContainerStatus, code int32, reason string, started metav1.Time, at time.Time) {
	off := false
	s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, StartedAt: started, FinishedAt: timestamp(at), ContainerID: s.ContainerID,
	}}
	s.Started, s.Ready = &off, c.init && code == 0
}

// wait lets a container that has ended wait for its restart.
func (c container) wait(s *corev1.ContainerStatus, pause time.Duration) {
	s.LastTerminationState = s.State
	s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
		Reason: "CrashLoopBackOff", Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
			pause, c.spec.Name, c.pod.Name, c.pod.Namespace, c.pod.UID),
	}}
}

func (c container) restart(s *corev1.ContainerStatus, at time.Time) {
	if s.State.Terminated != nil {
		s.LastTerminationState = s.State
	}
	s.RestartCount++
	c.start(s, at)
}

// mayBeReady reports whether a running container becomes ready. An init container does not, except a sidecar.
func (c container) mayBeReady() bool {
	return !c.outcome.Unready && (!c.init || c.policy == corev1.RestartPolicyAlways)
}

// readyAfter returns the time from the start of a container until it is ready.
func (c container) readyAfter() time.Duration {
	if c.spec.ReadinessProbe == nil {
		return 0
	}
	return time.Duration(c.spec.ReadinessProbe.InitialDelaySeconds) * time.Second
}
