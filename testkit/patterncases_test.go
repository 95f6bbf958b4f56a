package testkit_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testkit"
)

// patterns are the patterns of Sieve (Sun et al., OSDI 2022). Each reconcile shows one mistake, and o.mended is the
// remedy. A bug has the name that Sieve's repository gives to its controller, and the number in the tracker.
var patterns = []pattern{
	{
		kind: "stale", name: "the deletion of an earlier object",
		mistake: "After a restart, the cache shows the deletion of an object that was created again since. Its parts are found by name, and deleted.",
		write:   "Label each part with the UID of its owner, and delete only parts with this UID.",
		bugs: []string{
			"cass-operator 412", "cassandra-operator 402", "casskop 316", "elastic 5249", "mongodb K8SPSMDB-430",
			"rabbitmq 648", "xtradb K8SPXC-716", "zookeeper 312",
		},
		reconcile: func(ctx context.Context, o *operator, c *cluster) error {
			if c.UID == "" {
				return nil
			}
			if c.DeletionTimestamp == nil {
				return o.ensure(ctx, c, "data")
			}
			for _, p := range o.all() {
				if o.mended && p.Labels["uid"] != string(c.UID) {
					continue
				}
				if err := o.remove(ctx, c, p.Labels["role"]); err != nil {
					return err
				}
			}
			return o.write(ctx, c, func(c *cluster) { c.Finalizers = nil })
		},
		story: func(s *story) {
			withFinalizer := func(c *cluster) { c.Finalizers = []string{"db.example/parts"} }
			s.create(withFinalizer)
			s.program.Stop()
			testkit.Delete(s.Kit, clusters, db)
			deleted := s.Server.Snapshot()
			s.start()
			s.create(withFinalizer)
			s.fill("data")
			s.restart(deleted)
		},
	},
	{
		kind: "stale", name: "an earlier number of replicas",
		mistake: "After a restart, the cache shows the number of replicas from before the last change. The part of a living replica is deleted.",
		write:   "Read the object from the server before an irreversible step: a get without a version is answered from etcd.",
		bugs:    []string{"cassandra-operator 407", "elastic 5274", "zookeeper 314"},
		reconcile: func(ctx context.Context, o *operator, c *cluster) error {
			surplus, err := o.ensureReplicas(ctx, c)
			if err != nil || len(surplus) == 0 {
				return err
			}
			if o.mended {
				newest, err := o.live.Get(ctx, api.KeyOf(c), metav1.GetOptions{})
				if err != nil {
					return err
				}
				if newest.ResourceVersion != c.ResourceVersion {
					return errBehind
				}
			}
			return o.remove(ctx, c, surplus...)
		},
		story: func(s *story) {
			s.create(func(c *cluster) { c.Spec.Replicas = 2 })
			s.edit(func(c *cluster) { c.Spec.Replicas = 1 })
			one := s.Server.Snapshot()
			s.edit(func(c *cluster) { c.Spec.Replicas = 2 })
			s.fill("data-1")
			s.restart(one)
		},
	},
	{
		kind: "stale", name: "a switch that was off",
		mistake: "After a restart, the cache shows a feature as switched off. Its part is deleted, although the feature is on.",
		write:   "Store the version of the object in each part. An object with an older version than its part must not decide anything.",
		bugs: []string{
			"mongodb K8SPSMDB-433", "mongodb K8SPSMDB-438", "xtradb K8SPXC-725", "xtradb K8SPXC-763", "yugabyte 35", "yugabyte 36",
		},
		reconcile: func(ctx context.Context, o *operator, c *cluster) error {
			p, exists := o.part(c, "proxy")
			switch {
			case c.Spec.Proxy && !exists:
				return o.ensure(ctx, c, "proxy")
			case c.Spec.Proxy || !exists:
				return nil
			}
			if order, ok := api.CompareVersions(c.ResourceVersion, p.Annotations["version"]); o.mended && ok && order < 0 {
				return errBehind
			}
			return o.remove(ctx, c, "proxy")
		},
		story: func(s *story) {
			s.create(func(*cluster) {})
			off := s.Server.Snapshot()
			s.edit(func(c *cluster) { c.Spec.Proxy = true })
			s.fill("proxy")
			s.restart(off)
		},
	},
	{
		kind: "stale", name: "an earlier size",
		mistake: "After a restart, the cache shows the size from before the last change. The part is deleted, and created with the old size.",
		write:   "Refuse a step that can only come from an old state, such as a volume that shrinks.",
		bugs:    []string{"casskop 321", "rabbitmq 653"},
		reconcile: func(ctx context.Context, o *operator, c *cluster) error {
			if p, exists := o.part(c, "set"); exists && p.Data["size"] != fmt.Sprint(c.Spec.Size) {
				if o.mended && p.Data["size"] > fmt.Sprint(c.Spec.Size) {
					return errBehind
				}
				if err := o.remove(ctx, c, "set"); err != nil {
					return err
				}
			}
			return o.ensure(ctx, c, "set")
		},
		story: func(s *story) {
			s.create(func(c *cluster) { c.Spec.Size = 10 })
			ten := s.Server.Snapshot()
			s.edit(func(c *cluster) { c.Spec.Size = 15 })
			s.fill("set")
			s.restart(ten)
		},
	},
	{
		kind: "missed", name: "a mark that is gone",
		mistake: "The controller deletes a volume when it sees the deletion timestamp of its pod. The pod is gone before it looks.",
		write:   "Compare what exists with what should exist: delete each volume whose replica is not wanted and has no pod.",
		bugs:    []string{"cassandra-operator 398"},
		reconcile: func(ctx context.Context, o *operator, c *cluster) error {
			pod, exists := o.part(c, "pod-1")
			if exists && pod.DeletionTimestamp != nil || o.mended && !exists && c.Spec.Replicas < 2 {
				return o.remove(ctx, c, "volume-1")
			}
			return nil
		},
		story: func(s *story) {
			s.create(func(c *cluster) { c.Spec.Replicas = 2 })
			c := testkit.Get[*cluster](s.Kit, clusters, db)
			pod := newPart(c, "pod-1", "1")
			pod.Finalizers = []string{"db.example/grace"} // stands for the grace period of a pod
			testkit.Create(s.Kit, parts, pod)
			testkit.Create(s.Kit, parts, newPart(c, "volume-1", "1"))
			s.edit(func(c *cluster) { c.Spec.Replicas = 1 })
			s.miss(func() {
				testkit.Delete(s.Kit, parts, api.KeyOf(pod))
				s.editPart("pod-1", func(p *corev1.ConfigMap) { p.Finalizers = nil })
			})
		},
	},
	{
		kind: "missed", name: "a value between two reads",
		mistake: "The number of replicas goes from 1 to 3 to 2. The controller refuses to shrink, so the end depends on whether it has seen the 3.",
		write:   "Compute the end from the newest spec alone. Forbid a change in admission (a webhook, or a rule with `oldSelf`), because only admission sees every change.",
		bugs:    []string{"casskop 342", "mongodb K8SPSMDB-585", "rabbitmq 758", "xtradb K8SPXC-918", "yugabyte 39"},
		reconcile: func(ctx context.Context, o *operator, c *cluster) error {
			surplus, err := o.ensureReplicas(ctx, c)
			if err != nil || !o.mended {
				return err
			}
			return o.remove(ctx, c, surplus...)
		},
		story: func(s *story) {
			s.create(func(c *cluster) { c.Spec.Replicas = 1 })
			s.miss(func() {
				s.edit(func(c *cluster) { c.Spec.Replicas = 3 })
				s.edit(func(c *cluster) { c.Spec.Replicas = 2 })
			})
		},
	},
	{
		kind: "intermediate", name: "two creates behind one check",
		mistake: "The controller creates two objects if the first one is missing. It dies between the two, and the second one is never created.",
		write:   "Check each object for itself.",
		bugs:    []string{"mongodb K8SPSMDB-578", "mongodb K8SPSMDB-579", "xtradb K8SPXC-896", "xtradb K8SPXC-897"},
		reconcile: func(ctx context.Context, o *operator, c *cluster) error {
			if _, exists := o.part(c, "certificate"); exists && !o.mended {
				return nil
			}
			return o.ensure(ctx, c, "certificate", "internal-certificate")
		},
		story: func(s *story) { s.crash(1, func() { s.create(func(*cluster) {}) }) },
	},
	{
		kind: "intermediate", name: "a first write that hides the second",
		mistake: "The controller compares one object with the spec, and then writes two. It dies between the two, and the comparison finds no difference.",
		write:   "Compare each object that is written, or write the compared one last.",
		bugs:    []string{"nifikop 49", "rabbitmq 782"},
		reconcile: func(ctx context.Context, o *operator, c *cluster) error {
			want := fmt.Sprint(c.Spec.Size)
			if p, exists := o.part(c, "set"); exists && p.Data["size"] == want && !o.mended {
				return nil
			}
			for _, role := range []string{"set", "volume"} {
				p, exists := o.part(c, role)
				if !exists {
					if err := o.ensure(ctx, c, role); err != nil {
						return err
					}
				} else if p.Data["size"] != want {
					p = p.DeepCopy()
					p.Data["size"] = want
					if _, err := o.store.Update(ctx, p, metav1.UpdateOptions{}); err != nil {
						return err
					}
				}
			}
			return nil
		},
		story: func(s *story) {
			s.create(func(c *cluster) { c.Spec.Size = 10 })
			s.crash(1, func() { s.edit(func(c *cluster) { c.Spec.Size = 15 }) })
		},
	},
	{
		kind: "intermediate", name: "a phase that is stored too late",
		mistake: "The controller stores the next phase after the deletion of a pod. It dies before, and the stored phase requires a pod that is gone.",
		write:   "Each step must work again after it was done: a pod that is not found was deleted.",
		bugs:    []string{"casskop 370"},
		reconcile: func(ctx context.Context, o *operator, c *cluster) error {
			switch {
			case c.UID == "" || c.Phase == "done":
				return nil
			case c.Spec.Replicas > 0:
				return o.ensure(ctx, c, "pod", "volume")
			case c.Phase == "":
				return o.write(ctx, c, func(c *cluster) { c.Phase = "shrinking" })
			}
			_, err := o.store.Get(ctx, api.Key{Namespace: c.Namespace, Name: c.Name + "-pod"}, metav1.GetOptions{})
			if err != nil && !(o.mended && apierrors.IsNotFound(err)) {
				return err
			}
			if err := o.remove(ctx, c, "pod", "volume"); err != nil {
				return err
			}
			return o.write(ctx, c, func(c *cluster) { c.Phase = "done" })
		},
		story: func(s *story) {
			s.create(func(c *cluster) { c.Spec.Replicas = 1 })
			s.crash(2, func() { s.edit(func(c *cluster) { c.Spec.Replicas = 0 }) })
		},
	},
	{
		kind: "intermediate", name: "a step that was begun",
		mistake: "The controller retires a replica and then deletes it. It dies between the two, and the user wants the replica again. It stays retired.",
		write:   "Bring every wanted part into the wanted state, also back from a state that only an earlier goal required.",
		bugs:    []string{"cassandra-operator 410"},
		reconcile: func(ctx context.Context, o *operator, c *cluster) error {
			surplus, err := o.ensureReplicas(ctx, c)
			if err != nil {
				return err
			}
			for _, role := range surplus {
				if p, _ := o.part(c, role); p.Data["retired"] == "" {
					return o.retire(ctx, p, true)
				}
			}
			for _, p := range o.all() {
				if wanted := p.Labels["role"] < fmt.Sprint("data-", c.Spec.Replicas); o.mended && wanted && p.Data["retired"] != "" {
					return o.retire(ctx, p, false)
				}
			}
			return o.remove(ctx, c, surplus...)
		},
		story: func(s *story) {
			s.create(func(c *cluster) { c.Spec.Replicas = 2 })
			s.crash(1, func() {
				s.edit(func(c *cluster) { c.Spec.Replicas = 1 })
				s.program.Stop()
				s.edit(func(c *cluster) { c.Spec.Replicas = 2 })
			})
		},
	},
}

// retire writes whether a part is retired.
func (o *operator) retire(ctx context.Context, p *corev1.ConfigMap, retired bool) error {
	p = p.DeepCopy()
	delete(p.Data, "retired")
	if retired {
		p.Data["retired"] = "yes"
	}
	_, err := o.store.Update(ctx, p, metav1.UpdateOptions{})
	return err
}
