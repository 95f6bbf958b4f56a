package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/observe/livepage"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faultplan"
	"github.com/leatproject/leat/testserver/faults"
)

type values = map[string]string

// act makes the function of an action that only needs to be done.
func act(do func()) func(context.Context, values) (string, error) {
	return func(context.Context, values) (string, error) {
		do()
		return "", nil
	}
}

// ServerActions are the faults of a test server.
func ServerActions(server *testserver.Server, active *faultplan.Active) []livepage.Action {
	const group = "Server"
	once := func(e faults.Effect) func() { return func() { server.Inject(faults.Fault{Effect: e}).Remove() } }
	return []livepage.Action{
		{
			Name: "cut", Group: group, Label: "Cut connections", Help: "Every watch ends and continues where it was. Nothing is listed again.",
			Do: act(once(faults.Disconnect{Abrupt: true})),
		},
		{
			Name: "compact", Group: group, Label: "Drop the history", Help: "Then cut connections: the watches get 410 Gone, and the informers list again.",
			Do: act(once(faults.Compact{})),
		},
		injects(active, "delay", livepage.Action{
			Group: group, Label: "Delay", Help: "Every answer comes later, until you heal the server.",
			Fields: []livepage.Field{{Name: "by", Label: "By", Value: "500ms"}},
		}),
		injects(active, "fail", livepage.Action{
			Group: group, Label: "Fail", Help: "Every request gets this status code. Open watches stay: cut connections to end them.",
			Fields: []livepage.Field{{Name: "code", Label: "Code", Value: "503"}},
		}),
		{
			Name: "fault", Group: group, Label: "Inject", Help: "For example: delay 500ms, list pods: fail 503, watch pods: drop 10%, outage for=5s.",
			Fields: []livepage.Field{{Name: "fault", Label: "Fault", Value: "delay 500ms"}},
			Do: func(_ context.Context, v values) (string, error) {
				f, err := faultplan.Parse(v["fault"])
				if err != nil {
					return "", err
				}
				_, err = active.InjectAll([]faultplan.Fault{f})
				return "injected " + f.String(), err
			},
		},
		{Name: "heal", Group: group, Label: "Heal", Help: "Removes the faults.", Do: act(active.RemoveAll)},
	}
}

// injects completes an action whose one field is the argument of a fault.
func injects(active *faultplan.Active, fault string, a livepage.Action) livepage.Action {
	field := a.Fields[0]
	a.Name = fault
	a.Do = func(_ context.Context, v values) (string, error) {
		f, err := faultplan.Parse(fault + " " + v[field.Name])
		if err != nil {
			return "", err
		}
		_, err = active.InjectAll([]faultplan.Fault{f})
		return "injected " + f.String(), err
	}
	return a
}

// actions are the buttons of the demonstration's live page.
func (d *demo) actions(active *faultplan.Active, replicas *candidates) []livepage.Action {
	return slices.Concat(d.objectActions(), ServerActions(d.server, active), d.handlerActions(), d.reconcilerActions(),
		replicas.actions(), d.stageActions())
}

func (d *demo) objectActions() []livepage.Action {
	const group = "Objects"
	name := livepage.Field{Name: "name", Label: "Name", Value: "mill"}
	replicas := livepage.Field{Name: "replicas", Label: "Replicas", Value: "3"}
	return []livepage.Action{
		{
			Name: "create", Group: group, Label: "Create", Help: "Creates a ReplicaSet in the namespace shop. The controller makes its pods.",
			Fields: []livepage.Field{name, replicas},
			Do: func(ctx context.Context, v values) (string, error) {
				n, err := replicasOf(v)
				if err != nil {
					return "", err
				}
				_, err = d.shop().Create(ctx, newReplicaSet(api.Key{Namespace: "shop", Name: v["name"]}, int64(n)), metav1.CreateOptions{})
				return fmt.Sprintf("shop/%s wants %d", v["name"], n), err
			},
		},
		{
			Name: "scale", Group: group, Label: "Scale", Help: "Changes the number of pods that a ReplicaSet wants.",
			Fields: []livepage.Field{name, replicas},
			Do: func(ctx context.Context, v values) (string, error) {
				n, err := replicasOf(v)
				if err != nil {
					return "", err
				}
				return fmt.Sprintf("shop/%s wants %d", v["name"], n), scale(ctx, d.shop(), api.Key{Namespace: "shop", Name: v["name"]}, n)
			},
		},
		{
			Name: "change", Group: group, Label: "Change", Help: "Sets the label tier of a ReplicaSet. Its key is reconciled, and there is nothing to do.",
			Fields: []livepage.Field{name, {Name: "tier", Label: "Tier", Value: "front"}},
			Do: func(ctx context.Context, v values) (string, error) {
				patch, err := apiclient.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"tier": v["tier"]}}})
				if err != nil {
					return "", err
				}
				_, err = d.shop().Patch(ctx, api.Key{Namespace: "shop", Name: v["name"]}, patch, apiclient.PatchOptions{})
				return fmt.Sprintf("shop/%s has tier %s", v["name"], v["tier"]), err
			},
		},
		{
			Name: "delete", Group: group, Label: "Delete", Help: "Deletes the ReplicaSet. The controller deletes its pods.", Fields: []livepage.Field{name},
			Do: func(ctx context.Context, v values) (string, error) {
				return "shop/" + v["name"], d.shop().Delete(ctx, api.Key{Namespace: "shop", Name: v["name"]}, metav1.DeleteOptions{})
			},
		},
		{
			Name: "delete-pod", Group: group, Label: "Delete a pod", Help: "The controller makes another of the same name.",
			Fields: []livepage.Field{{Name: "name", Label: "Pod", Value: "mill-0"}},
			Do: func(ctx context.Context, v values) (string, error) {
				pods := apiclient.NewPartial[*pod](d.client, pods, "shop")
				return "shop/" + v["name"], pods.Delete(ctx, api.Key{Namespace: "shop", Name: v["name"]}, metav1.DeleteOptions{})
			},
		},
		d.trafficAction(group),
	}
}

func (d *demo) trafficAction(group string) livepage.Action {
	return livepage.Action{
		Name: "traffic", Group: group, Label: "Traffic", Help: "Changes a second that the demonstration makes by itself, from 0 to 1000.",
		Fields: []livepage.Field{{Name: "rate", Label: "A second", Value: "0"}},
		Do: func(_ context.Context, v values) (string, error) {
			n, err := strconv.ParseFloat(v["rate"], 64)
			if err != nil || !(n >= 0 && n <= 1000) {
				return "", fmt.Errorf("rate %q is not a number from 0 to 1000", v["rate"])
			}
			d.setTraffic(n)
			return fmt.Sprintf("%v a second", n), nil
		},
	}
}

// replicasOf returns the number of replicas that somebody wants.
func replicasOf(v values) (int, error) {
	n, err := strconv.Atoi(v["replicas"])
	if err != nil || n < 0 || n > 200 {
		return 0, fmt.Errorf("replicas %q is not a number from 0 to 200", v["replicas"])
	}
	return n, nil
}

func (d *demo) stageActions() []livepage.Action {
	const group = "Slow motion"
	return []livepage.Action{
		{
			Name: "pause", Group: group, Label: "Pause", Help: "Holds work back in front of four stages: events, batches, changes and keys.",
			Do: act(d.steps.pause),
		},
		{
			Name: "step", Group: group, Label: "Step", Help: "Lets the work go on that waits the longest, as far as the next stage.",
			Do: func(context.Context, values) (string, error) { return d.steps.next(), nil },
		},
		{
			Name: "resume", Group: group, Label: "Resume", Help: "Ends the pause. In front of each stage, work then waits as long as you say.",
			Fields: []livepage.Field{{Name: "slow", Label: "Wait", Value: "0s"}},
			Do: func(_ context.Context, v values) (string, error) {
				slow, err := time.ParseDuration(v["slow"])
				if err != nil || slow < 0 || slow > time.Minute {
					return "", fmt.Errorf("%q is not a duration up to 1m", v["slow"])
				}
				d.steps.resume(slow)
				return "", nil
			},
		},
	}
}

func (d *demo) reconcilerActions() []livepage.Action {
	const group = "Reconciler"
	mood := func(m string) func(context.Context, values) (string, error) {
		return act(func() { d.mood.Store(&m) })
	}
	return []livepage.Action{
		{Name: "fail-reconciles", Group: group, Label: "Fail reconciles", Help: "Every reconcile returns an error, and is tried again later each time.", Do: mood(moodFail)},
		{Name: "panic-reconciles", Group: group, Label: "Panic", Help: "Every reconcile panics. The controller counts it as an error.", Do: mood(moodPanic)},
		{Name: "work", Group: group, Label: "Work", Help: "Reconciles work again.", Do: mood("")},
	}
}

// The moods of the demonstration's reconciler.
const (
	moodFail  = "fail"
	moodPanic = "panic"
)

// moody is a reconciler that waits for the stepper, and does what the Lab says.
func (d *demo) moody(r controller.Reconciler[api.Key]) controller.Func[api.Key] {
	return func(ctx context.Context, key api.Key) (controller.Result, error) {
		d.steps.wait(livepage.StageWorkers, "the key "+key.String(), ctx.Done())
		switch mood := d.mood.Load(); {
		case mood == nil:
		case *mood == moodFail:
			return controller.Result{}, errors.New("the Lab makes reconciles fail")
		case *mood == moodPanic:
			panic("the Lab makes reconciles panic")
		}
		return r.Reconcile(ctx, key)
	}
}
