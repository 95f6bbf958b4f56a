// Package bare follows pods without a library: one goroutine reads a watch, decodes each pod with the generated code,
// and calls the handler. No informer can be faster by much, so the rows of single events show how much of a figure is
// the network, the kernel and the scheduler.
package bare

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/bench/subject"
)

// Library has only an informer.
func Library() subject.Library { return subject.Library{Informer: newInformer} }

func newInformer(s subject.Spec, h subject.Hooks) (subject.Informer, error) {
	if s.Form != subject.Full || s.Wire == subject.JSON || s.CA != nil {
		return nil, subject.ErrUnsupported
	}
	return &follower{url: s.URL + "/api/v1/pods", hooks: h, pods: map[types.NamespacedName]*corev1.Pod{}}, nil
}

// follower is a list and a watch of all pods.
type follower struct {
	url   string
	hooks subject.Hooks
	pods  map[types.NamespacedName]*corev1.Pod // of the goroutine of Run
}

func (f *follower) Len() int { return len(f.pods) }

// Run lists and then watches until ctx ends.
func (f *follower) Run(ctx context.Context) error {
	version, err := f.list(ctx)
	if err == nil {
		err = f.watch(ctx, version)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (f *follower) get(ctx context.Context, query, accept string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+query, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	if of := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || !strings.HasPrefix(of, "application/vnd.kubernetes.protobuf") {
		return nil, fmt.Errorf("bare: %s with %s", resp.Status, of)
	}
	return resp.Body, nil
}

func (f *follower) list(ctx context.Context) (version string, err error) {
	body, err := f.get(ctx, "", "application/vnd.kubernetes.protobuf")
	if err != nil {
		return "", err
	}
	defer body.Close()
	b, err := io.ReadAll(body)
	if err != nil {
		return "", err
	}
	var list corev1.PodList
	if err := unmarshal(b, &list); err != nil {
		return "", err
	}
	for i := range list.Items {
		f.pods[nameOf(&list.Items[i])] = list.Items[i].DeepCopy() // a pointer to an item would keep all others
		f.hooks.Added()
	}
	return list.ResourceVersion, nil
}

// watch reads frames: a length of four bytes, and a metav1.WatchEvent.
func (f *follower) watch(ctx context.Context, version string) error {
	body, err := f.get(ctx, "?watch=true&resourceVersion="+version, "application/vnd.kubernetes.protobuf;stream=watch")
	if err != nil {
		return err
	}
	defer body.Close()
	var frame []byte
	for {
		var length [4]byte
		if _, err := io.ReadFull(body, length[:]); err != nil {
			return err
		}
		size := int(binary.BigEndian.Uint32(length[:]))
		if size > cap(frame) {
			frame = make([]byte, size)
		}
		frame = frame[:size]
		if _, err := io.ReadFull(body, frame); err != nil {
			return err
		}
		if err := f.event(frame); err != nil {
			return err
		}
	}
}

func (f *follower) event(frame []byte) error {
	var event metav1.WatchEvent
	if err := event.Unmarshal(frame); err != nil {
		return err
	}
	pod := new(corev1.Pod)
	if err := unmarshal(event.Object.Raw, pod); err != nil {
		return err
	}
	key := nameOf(pod)
	old := f.pods[key]
	f.pods[key] = pod
	f.hooks.Updated(old, pod)
	return nil
}

func nameOf(p *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// unmarshal decodes an object behind the magic number of Kubernetes' protobuf.
func unmarshal(b []byte, into interface{ Unmarshal(b []byte) error }) error {
	const magic = "k8s\x00"
	if !strings.HasPrefix(string(b[:min(len(b), len(magic))]), magic) {
		return fmt.Errorf("bare: an answer of %d bytes without the magic number", len(b))
	}
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(b[len(magic):]); err != nil {
		return err
	}
	return into.Unmarshal(unknown.Raw)
}
