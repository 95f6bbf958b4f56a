package informer_test

import (
	"bytes"
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/reflector"
)

// replicas lists pods in protobuf that differ in their names, and never sends an event.
type replicas struct{ *codec.Codec[*corev1.Pod] }

func (replicas) Collection() api.Collection {
	return api.Collection{Resource: api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}}
}

func (s replicas) List(ctx context.Context, o api.Options[*corev1.Pod], each func(*corev1.Pod) error) (metav1.ListMeta, error) {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
	for _, name := range []string{"a", "b", "c", "d"} {
		list.Items = append(list.Items, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-of-a-replica", ResourceVersion: "1"},
			Spec:       corev1.PodSpec{NodeName: "node-of-" + name, Containers: []corev1.Container{{Name: "app", Image: "registry.example.com/app:v1"}}},
		})
	}
	body, err := codec.Marshal(list, codec.MediaTypeProtobuf, api.Resource{Version: "v1", Kind: "PodList"})
	if err != nil {
		return metav1.ListMeta{}, err
	}
	return s.DecodeList(ctx, bytes.NewReader(body), codec.MediaTypeProtobuf, s.Collection().Resource, o, each)
}

func (replicas) Watch(ctx context.Context, o api.Options[*corev1.Pod]) iter.Seq2[api.Event[*corev1.Pod], error] {
	return func(yield func(api.Event[*corev1.Pod], error) bool) {
		if o.SendInitialEvents != nil {
			yield(api.Event[*corev1.Pod]{Type: watch.Error}, api.ErrNoWatchList)
			return
		}
		o.OnOpen()
		<-ctx.Done()
	}
}

// TestAChangeToASharedPartIsFound changes the containers of one object, which are those of others too.
func TestAChangeToASharedPartIsFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		o     informer.Options[*corev1.Pod]
		found []string
	}{
		{"shared", informer.Options[*corev1.Pod]{}, []string{"b", "c", "d"}},
		{"not shared", informer.Options[*corev1.Pod]{Memory: reflector.Memory{NoSharedParts: true}}, []string{"d"}},
		{"not shared with a Transform", informer.Options[*corev1.Pod]{Transform: func(p *corev1.Pod) (*corev1.Pod, error) {
			p.Spec.Containers[0].Env = nil
			return p, nil
		}}, []string{"d"}},
	} {
		fixture.Bubble(t, c.name, func(t *testing.T) {
			var found []string
			c.o.Mutations = informer.DetectMutations(func(m cache.Mutation) {
				require.Contains(t, m.Diff, "v2")
				found = append(found, m.Key.Name)
			})
			i := informer.New(replicas{codec.New[*corev1.Pod](codec.Options{})}, c.o)
			stop := running(t, i)
			<-i.Synced()
			d, _ := i.Cache().Get(api.Key{Namespace: "default", Name: "d"})
			d.Spec.Containers[0].Image = "registry.example.com/app:v2"
			stop()
			require.Equal(t, c.found, found)
		})
	}
}
