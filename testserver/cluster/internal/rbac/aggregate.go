package rbac

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
)

var clusterRoles = rbacv1.SchemeGroupVersion.WithResource("clusterroles")

// Run gives each ClusterRole with an aggregation rule the rules of the roles that it selects, whenever roles have
// changed, until ctx ends. kube-controller-manager does this in a cluster.
func (p *Policy) Run(ctx context.Context) error {
	for {
		changed := p.factory.NextVersion()
		all, err := p.factory.Rbac().V1().ClusterRoles().Lister().List(labels.Everything())
		if err != nil {
			return fmt.Errorf("rbac: list cluster roles: %w", err)
		}
		for _, r := range Aggregated(all) {
			if err := p.writeRules(r); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// writeRules stores the rules of a role.
func (p *Policy) writeRules(r *rbacv1.ClusterRole) error {
	tree, err := object.From(r)
	if err != nil {
		return fmt.Errorf("rbac: %w", err)
	}
	key := api.Key{Name: r.Name}
	return p.factory.Write(clusterRoles, key, func(stored object.Tree) { object.SetOrDrop(stored, "rules", tree["rules"]) })
}

// Aggregated returns a copy of each role whose rules are not those of the roles that its aggregation rule selects, with
// these rules. A role that selects aggregated roles gets their present rules, so call Aggregated until it returns
// nothing.
func Aggregated(all []*rbacv1.ClusterRole) []*rbacv1.ClusterRole {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b *rbacv1.ClusterRole) int { return cmp.Compare(a.Name, b.Name) })
	var out []*rbacv1.ClusterRole
	for _, r := range all {
		if r.AggregationRule == nil {
			continue
		}
		if rules := selected(r, sorted); !equality.Semantic.DeepEqual(rules, r.Rules) {
			changed := r.DeepCopy()
			changed.Rules = rules
			out = append(out, changed)
		}
	}
	return out
}

// selected returns the rules of the roles that a role selects, each rule once, in the order of the roles' names.
func selected(of *rbacv1.ClusterRole, sorted []*rbacv1.ClusterRole) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for i := range of.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&of.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			continue // validation rejects such selectors
		}
		for _, r := range sorted {
			if r.Name == of.Name || !selector.Matches(labels.Set(r.Labels)) {
				continue
			}
			for _, rule := range r.Rules {
				known := func(have rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(have, rule) }
				if !slices.ContainsFunc(rules, known) {
					rules = append(rules, rule)
				}
			}
		}
	}
	return rules
}
