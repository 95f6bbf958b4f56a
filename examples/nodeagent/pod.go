package main

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

// Pod has the eight fields that the agent reads. The numbers are taken from the Pod in generated.proto, so that the
// agent can read protobuf, which costs less than JSON. If a field had no number, the agent would read JSON.
type Pod struct {
	Metadata struct {
		Name            string            `json:"name" protobuf:"bytes,1,opt,name=name"`
		Namespace       string            `json:"namespace" protobuf:"bytes,3,opt,name=namespace"`
		UID             types.UID         `json:"uid" protobuf:"bytes,5,opt,name=uid"`
		ResourceVersion string            `json:"resourceVersion" protobuf:"bytes,6,opt,name=resourceVersion"`
		Labels          map[string]string `json:"labels" protobuf:"bytes,11,rep,name=labels"`
	} `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	Spec struct {
		NodeName string `json:"nodeName" protobuf:"bytes,10,opt,name=nodeName"`
	} `json:"spec" protobuf:"bytes,2,opt,name=spec"`
	Status struct {
		Phase string `json:"phase" protobuf:"bytes,1,opt,name=phase"`
		PodIP string `json:"podIP" protobuf:"bytes,6,opt,name=podIP"`
	} `json:"status" protobuf:"bytes,3,opt,name=status"`
}

var podsResource = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}

// GetName, GetNamespace, GetUID and GetResourceVersion make *Pod an api.Object.
func (p *Pod) GetName() string            { return p.Metadata.Name }
func (p *Pod) GetNamespace() string       { return p.Metadata.Namespace }
func (p *Pod) GetUID() types.UID          { return p.Metadata.UID }
func (p *Pod) GetResourceVersion() string { return p.Metadata.ResourceVersion }
