package stages

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
)

var (
	podResource  = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	nodeResource = api.Resource{Version: "v1", Kind: "Node", Plural: "nodes"}
)

// Stages acts on the pods and nodes of a cluster.
type Stages struct {
	onError func(error)
	runs    []func(context.Context) error
}

// retryPause is the pause after an action that the server has refused.
const retryPause = 10 * time.Second

// New returns stages for the pods and nodes that a client reaches. list comes from Parse. onError gets each error of an
// action that is tried again, except conflicts and refused evictions. It may be called from two goroutines.
func New(client *apiclient.Client, list []Stage, onError func(error)) *Stages {
	s := &Stages{onError: onError}
	add(s, client, podResource, list, podWrites(client))
	add[*corev1.Node](s, client, nodeResource, list, nil)
	return s
}

// Run acts until ctx ends. It returns after its goroutines have ended. It runs once.
func (s *Stages) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range s.runs {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}

// object is a pod or a node.
type object interface {
	api.Object
	GetLabels() map[string]string
}

// kind acts on the objects of one kind. Its controller has one worker, so chosen needs no lock.
type kind[T object] struct {
	stages  []*Stage
	onError func(error)
	cache   *informer.Informer[T]
	client  *apiclient.PartialClient[T]
	pod     func(context.Context, T, *Stage) error // the actions that only pods have; nil for nodes
	chosen  map[api.Key]choice
}

// choice is the stage that an object waits for.
type choice struct {
	stage *Stage
	of    types.UID
	at    time.Time
}

func add[T object](s *Stages, client *apiclient.Client, r api.Resource, list []Stage, pod func(context.Context, T, *Stage) error) {
	k := &kind[T]{client: apiclient.NewPartial[T](client, r, ""), pod: pod, onError: s.onError, chosen: map[api.Key]choice{}}
	for i := range list {
		if list[i].Kind == r.Kind {
			k.stages = append(k.stages, &list[i])
		}
	}
	if len(k.stages) == 0 {
		return
	}
	k.cache = informer.New(k.client, informer.Options[T]{})
	c := controller.New("stages-"+r.Plural, controller.Func[api.Key](k.step), controller.Options{Workers: 1})
	c.Watch(controller.For(k.cache))
	s.runs = append(s.runs, k.cache.Run, c.Run)
}

// step chooses a stage for an object, waits for it, or lets it act.
func (k *kind[T]) step(ctx context.Context, key api.Key) (controller.Result, error) {
	o, found := k.cache.Cache().Get(key)
	if !found {
		delete(k.chosen, key)
		return controller.Result{}, nil
	}
	now := time.Now()
	c, has := k.chosen[key]
	if all := k.matching(o); !has || c.of != o.GetUID() || !slices.Contains(all, c.stage) {
		if len(all) == 0 {
			delete(k.chosen, key)
			return controller.Result{}, nil
		}
		s := pick(all)
		c = choice{s, o.GetUID(), now.Add(s.Delay.Duration + rand.N(max(s.Jitter.Duration, 1)))}
		k.chosen[key] = c
	}
	if c.at.After(now) {
		return controller.Result{RequeueAfter: c.at.Sub(now)}, nil
	}
	switch err := k.act(ctx, key, o, c.stage); {
	case err == nil, apierrors.IsNotFound(err):
		delete(k.chosen, key)
		return controller.Result{}, nil
	case apierrors.IsConflict(err): // the cache is late
		return controller.Result{}, err
	case !apierrors.IsTooManyRequests(err) && ctx.Err() == nil: // 429: a budget allows no eviction now
		k.onError(fmt.Errorf("stage %q of %s %s: %w", c.stage.Name, c.stage.Kind, api.FormatKey(key), err))
	}
	return controller.Result{RequeueAfter: retryPause}, nil
}

// matching returns the stages that select an object.
func (k *kind[T]) matching(o T) (all []*Stage) {
	var tree map[string]any
	convert := func() map[string]any {
		if tree == nil {
			tree = treeOf(o)
		}
		return tree
	}
	for _, s := range k.stages {
		if s.matches(o.GetLabels(), convert) {
			all = append(all, s)
		}
	}
	return all
}

// pick chooses a stage at random, by its weight.
func pick(all []*Stage) *Stage {
	total := 0
	for _, s := range all {
		total += s.Weight
	}
	n := rand.IntN(total)
	for _, s := range all {
		if n -= s.Weight; n < 0 {
			return s
		}
	}
	return all[0]
}

// act does what a stage says.
func (k *kind[T]) act(ctx context.Context, key api.Key, o T, s *Stage) error {
	switch {
	case s.Delete:
		return k.client.Delete(ctx, key, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(o.GetUID()))})
	case s.Condition != nil:
		return k.patch(ctx, o, map[string]any{"status": map[string]any{"conditions": []any{s.Condition.patch(treeOf(o))}}}, "status")
	case s.Patch != nil:
		return k.patch(ctx, o, s.Patch, "")
	case s.Status != nil:
		return k.patch(ctx, o, map[string]any{"status": s.Status}, "status")
	}
	return k.pod(ctx, o, s)
}

// patch sends a patch of an object with this UID.
func (k *kind[T]) patch(ctx context.Context, o T, change map[string]any, subresource string) error {
	change = maps.Clone(change)
	metadata, _ := change["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["uid"], change["metadata"] = o.GetUID(), metadata
	p, err := apiclient.StrategicPatch(change)
	if err != nil {
		return err
	}
	_, err = k.client.Patch(ctx, api.KeyOf(o), p, apiclient.PatchOptions{Subresource: subresource})
	return err
}

// podWrites returns the actions that only pods have.
func podWrites(client *apiclient.Client) func(context.Context, *corev1.Pod, *Stage) error {
	pods := apiclient.NewTyped[*corev1.Pod](client, podResource, "")
	return func(ctx context.Context, p *corev1.Pod, s *Stage) error {
		if s.Crash != nil {
			p = p.DeepCopy()
			if !s.Crash.apply(p.Status.ContainerStatuses, time.Now()) {
				return nil
			}
			_, err := pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
			return err
		}
		eviction := apiclient.Subresource[*policyv1.Eviction, *metav1.Status](client, podResource, api.KeyOf(p), "eviction")
		_, err := eviction.Create(ctx, &policyv1.Eviction{
			TypeMeta:      metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
			ObjectMeta:    metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))},
		}, metav1.CreateOptions{})
		return err
	}
}

// treeOf returns an object for expressions. A Pod and a Node always convert.
func treeOf(o any) map[string]any {
	tree, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	return tree
}
