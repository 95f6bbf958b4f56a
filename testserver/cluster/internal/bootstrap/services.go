package bootstrap

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/leatproject/leat/testserver/internal/object"
)

// The values of the label of APIServices that kube-apiserver keeps: it creates some only when it starts, and restores
// others whenever they are deleted.
const (
	Managed = "kube-aggregator.kubernetes.io/automanaged"
	OnStart = "onstart"
	Always  = "true"
)

// services are the built-in groups and versions with their priorities.
var services = []struct {
	gv             schema.GroupVersion
	group, version int32
}{
	{schema.GroupVersion{Version: "v1"}, 18000, 1},
	{schema.GroupVersion{Group: "apps", Version: "v1"}, 17800, 15},
	{schema.GroupVersion{Group: "events.k8s.io", Version: "v1"}, 17750, 15},
	{schema.GroupVersion{Group: "authentication.k8s.io", Version: "v1"}, 17700, 15},
	{schema.GroupVersion{Group: "authorization.k8s.io", Version: "v1"}, 17600, 15},
	{schema.GroupVersion{Group: "autoscaling", Version: "v1"}, 17500, 15},
	{schema.GroupVersion{Group: "autoscaling", Version: "v2"}, 17500, 30},
	{schema.GroupVersion{Group: "batch", Version: "v1"}, 17400, 15},
	{schema.GroupVersion{Group: "certificates.k8s.io", Version: "v1"}, 17300, 15},
	{schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}, 17200, 15},
	{schema.GroupVersion{Group: "policy", Version: "v1"}, 17100, 15},
	{schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}, 17000, 15},
	{schema.GroupVersion{Group: "storage.k8s.io", Version: "v1"}, 16800, 15},
	{schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}, 16700, 15},
	{schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}, 16700, 15},
	{schema.GroupVersion{Group: "scheduling.k8s.io", Version: "v1"}, 16600, 15},
	{schema.GroupVersion{Group: "coordination.k8s.io", Version: "v1"}, 16500, 15},
	{schema.GroupVersion{Group: "node.k8s.io", Version: "v1"}, 16300, 15},
	{schema.GroupVersion{Group: "discovery.k8s.io", Version: "v1"}, 16200, 15},
	{schema.GroupVersion{Group: "resource.k8s.io", Version: "v1"}, 16200, 21},
	{schema.GroupVersion{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"}, 16100, 21},
	{schema.GroupVersion{Group: "storagemigration.k8s.io", Version: "v1"}, 15800, 15},
}

// Local returns the APIService of a version that the server itself serves.
func Local(gv schema.GroupVersion, group, version int32, managed string) *apiregistration.APIService {
	return &apiregistration.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: gv.Version + "." + gv.Group, Labels: map[string]string{Managed: managed}},
		Spec: apiregistration.APIServiceSpec{
			Group: gv.Group, Version: gv.Version, GroupPriorityMinimum: group, VersionPriority: version,
		},
	}
}

// Available returns the condition of an APIService that the server itself serves, without its time.
func Available() object.Tree {
	return object.Tree{
		"type": "Available", "status": "True", "reason": "Local", "message": "Local APIServices are always available",
	}
}

// Custom returns the APIService of a version of custom resources, as it is stored at a time.
func Custom(gv schema.GroupVersion, now, uid string) (object.Tree, error) {
	const group, version = 1000, 100 // those of every custom resource
	p, err := prepare("apiservices", server, Local(gv, group, version, Always))
	if err != nil {
		return nil, err
	}
	p.condition = Available()
	return p.at(now, uid), nil
}
