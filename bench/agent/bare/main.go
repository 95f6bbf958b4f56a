// Command bare lists and watches pods without leat, with the packages that leat depends on. The difference in size to a
// leat agent is leat's own code. It does what a short program of this kind needs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"

	// Dependencies of leat that this program does not use.
	_ "hash/maphash"
	_ "html"

	_ "google.golang.org/protobuf/encoding/protowire"

	"github.com/leatproject/leat/bench/subject"
)

func main() {
	log, err := zap.NewProduction()
	if err != nil {
		panic(err)
	}
	a := &agent{host: os.Args[1], log: log, pods: map[types.NamespacedName]*subject.Pod{}}
	if err := a.run(context.Background()); err != nil {
		log.Fatal("the agent has ended", zap.Error(err))
	}
}

type agent struct {
	host    string
	log     *zap.Logger
	pods    map[types.NamespacedName]*subject.Pod
	version string
}

// run lists, and then watches until the server ends the watch.
func (a *agent) run(ctx context.Context) error {
	if err := a.ask(ctx, metav1.ListOptions{}, a.list); err != nil {
		return err
	}
	fmt.Println(len(a.pods), "pods")
	return a.ask(ctx, metav1.ListOptions{Watch: true, ResourceVersion: a.version}, a.watch)
}

func (a *agent) ask(ctx context.Context, o metav1.ListOptions, answer func(io.Reader) error) error {
	query, err := queryparams.Convert(&o)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.host+"/api/v1/pods?"+query.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return apierrors.NewGenericServerResponse(resp.StatusCode, "list", schema.GroupResource{Resource: "pods"}, "", "", 0, true)
	}
	return answer(resp.Body)
}

func (a *agent) list(r io.Reader) error {
	var list struct {
		Metadata metav1.ListMeta `json:"metadata"`
		Items    []*subject.Pod  `json:"items"`
	}
	if err := json.NewDecoder(r).Decode(&list); err != nil {
		return err
	}
	for _, pod := range list.Items {
		a.put(pod)
	}
	a.version = list.Metadata.ResourceVersion
	return nil
}

func (a *agent) put(pod *subject.Pod) {
	a.pods[types.NamespacedName{Namespace: pod.GetNamespace(), Name: pod.GetName()}] = pod
}

func (a *agent) watch(r io.Reader) error {
	for d := json.NewDecoder(r); ; {
		var event struct {
			Type   watch.EventType `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := d.Decode(&event); err != nil {
			return err
		}
		if event.Type == watch.Error {
			return statusOf(event.Object)
		}
		pod := &subject.Pod{}
		if err := json.Unmarshal(event.Object, pod); err != nil {
			return err
		}
		if order, err := resourceversion.CompareResourceVersion(pod.GetResourceVersion(), a.version); err != nil || order <= 0 {
			a.log.Warn("an event is not newer", zap.String("rv", pod.GetResourceVersion()), zap.Error(err))
			continue
		}
		a.put(pod)
	}
}

func statusOf(object json.RawMessage) error {
	var status metav1.Status
	if err := json.Unmarshal(object, &status); err != nil {
		return errors.Join(errors.New("the watch ended"), err)
	}
	return &apierrors.StatusError{ErrStatus: status}
}
