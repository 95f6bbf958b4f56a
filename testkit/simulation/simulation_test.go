package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testkit/simulation"
)

var maps = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}

// doubler writes twice the number "in" of each ConfigMap to its "out". Each mistake is a way to get it wrong.
type doubler struct {
	mistake string
	maps    *apiclient.TypedClient[*corev1.ConfigMap]
	cache   *informer.Informer[*corev1.ConfigMap]
}

func (d *doubler) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	m, ok := d.cache.Snapshot().Get(key)
	if !ok {
		return controller.Result{}, nil
	}
	var in int
	if _, err := fmt.Sscan(m.Data["in"], &in); err != nil {
		return controller.Result{}, controller.TerminalError(err)
	}
	want := fmt.Sprint(2 * in)
	if m.Data["out"] == want && d.mistake != "writes always" {
		return controller.Result{}, nil
	}
	m = m.DeepCopy()
	m.Data["out"] = want
	if d.mistake == "writes always" {
		m.Data["at"] = time.Now().String()
	}
	_, err := d.maps.Update(ctx, m, metav1.UpdateOptions{})
	if d.mistake == "forgets errors" || apierrors.IsNotFound(err) {
		err = nil
	}
	if d.mistake == "writes always" {
		return controller.Result{RequeueAfter: time.Minute}, err
	}
	return controller.Result{}, err
}

func (d *doubler) run(ctx context.Context, s *simulation.Simulation) error {
	d.maps = apiclient.NewTyped[*corev1.ConfigMap](s.Client, maps, "")
	d.cache = informer.New(d.maps, informer.Options[*corev1.ConfigMap]{})
	if _, err := d.cache.AddEventHandler(simulation.Handler[*corev1.ConfigMap](s), informer.HandlerOptions{}); err != nil {
		return err
	}
	c := controller.New("doubler", simulation.Reconciler(s, d), controller.Options{})
	c.Watch(controller.For(d.cache))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- d.cache.Run(ctx) }()
	err := c.Run(ctx)
	cancel()
	return errors.Join(err, <-ended)
}

// options simulates users that create, change and delete ConfigMaps.
func options(mistake string) simulation.Options {
	key := func(r *rand.Rand) api.Key { return api.Key{Namespace: "default", Name: fmt.Sprintf("m%d", r.IntN(5))} }
	return simulation.Options{
		Program: func(ctx context.Context, s *simulation.Simulation) error {
			if mistake == "never starts" {
				return errors.New("no such option")
			}
			return (&doubler{mistake: mistake}).run(ctx, s)
		},
		Changes: map[string]simulation.Change{
			"set": func(s *simulation.Simulation, r *rand.Rand) {
				k, in := key(r), fmt.Sprint(r.IntN(100))
				if !testkit.Has(s.Kit, maps, k) {
					testkit.Create(s.Kit, maps, &corev1.ConfigMap{
						ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}, Data: map[string]string{"in": in},
					})
					return
				}
				testkit.Edit(s.Kit, maps, k, func(m *corev1.ConfigMap) { m.Data["in"] = in })
			},
			"delete": func(s *simulation.Simulation, r *rand.Rand) {
				if k := key(r); testkit.Has(s.Kit, maps, k) {
					testkit.Delete(s.Kit, maps, k)
				}
			},
		},
		Converged: func(s *simulation.Simulation) error {
			for _, m := range testkit.List[corev1.ConfigMap](s.Kit, maps, "") {
				var in, out int
				if _, err := fmt.Sscan(m.Data["in"]+" "+m.Data["out"], &in, &out); err != nil || out != 2*in {
					return fmt.Errorf("%s: in %q, out %q", m.Name, m.Data["in"], m.Data["out"])
				}
			}
			return nil
		},
		Resources: []api.Resource{maps},
	}
}

func TestACorrectProgramSurvives(t *testing.T) {
	simulation.Run(t, options(""))
}

// The seeds of a program with a mistake must fail. They run in a process of their own, because a failing subtest fails
// its test.
func TestMistakesAreFoundAndShrunk(t *testing.T) {
	if mistake := os.Getenv("LEAT_MISTAKE"); mistake != "" {
		simulation.Run(t, options(mistake))
		return
	}
	for mistake, says := range map[string]string{
		"forgets errors": "not converged after",
		"writes always":  "writes in 1h0m0s at rest",
		"never starts":   "times meanwhile, last with the error: no such option",
	} {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		c.Env = append(os.Environ(), "LEAT_MISTAKE="+mistake)
		out, err := c.CombinedOutput()
		require.Error(t, err, mistake)
		require.Regexp(t, `simulation: seed \d+ fails after these [1-6] of 60 steps`, string(out))
		require.Contains(t, string(out), says)
	}
}
