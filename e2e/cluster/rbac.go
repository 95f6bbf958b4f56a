package cluster

import (
	"context"
	"encoding/json"
	"net/http"
)

// Rule is a rule of an RBAC role.
type Rule struct {
	Verbs         []string `json:"verbs"`
	APIGroups     []string `json:"apiGroups"`
	Resources     []string `json:"resources"`
	ResourceNames []string `json:"resourceNames,omitempty"`
}

// Grant creates a cluster role with the rules and binds RestrictedUser to it. It takes effect a moment later. Revoke
// undoes it.
func (c *Cluster) Grant(ctx context.Context, role string, rules ...Rule) error {
	type object map[string]any
	const group = "rbac.authorization.k8s.io"
	for path, o := range map[string]object{
		"clusterroles": {"metadata": object{"name": role}, "rules": rules},
		"clusterrolebindings": {
			"metadata": object{"name": role},
			"roleRef":  object{"apiGroup": group, "kind": "ClusterRole", "name": role},
			"subjects": []object{{"apiGroup": group, "kind": "User", "name": RestrictedUser}},
		},
	} {
		body, err := json.Marshal(o)
		if err != nil {
			return err
		}
		if _, err := c.Must(ctx, http.MethodPost, "/apis/"+group+"/v1/"+path, body); err != nil {
			return err
		}
	}
	return nil
}

// Revoke deletes what Grant has created. It takes effect a moment later.
func (c *Cluster) Revoke(ctx context.Context, role string) error {
	for _, path := range []string{"clusterrolebindings", "clusterroles"} {
		if _, err := c.Must(ctx, http.MethodDelete, "/apis/rbac.authorization.k8s.io/v1/"+path+"/"+role, nil); err != nil {
			return err
		}
	}
	return nil
}
