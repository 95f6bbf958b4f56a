package apiclient_test

import (
	"k8s.io/apimachinery/pkg/types"
)

// pod is a user's own type for a part of a Pod.
type pod struct {
	Metadata `json:"metadata"`
	Spec     struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
}

// Metadata is the part of the metadata that informers need.
type Metadata struct {
	Namespace       string    `json:"namespace"`
	Name            string    `json:"name"`
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion"`
}

// GetNamespace returns the namespace.
func (m *Metadata) GetNamespace() string { return m.Namespace }

// GetName returns the name.
func (m *Metadata) GetName() string { return m.Name }

// GetUID returns the UID.
func (m *Metadata) GetUID() types.UID { return m.UID }

// GetResourceVersion returns the version.
func (m *Metadata) GetResourceVersion() string { return m.ResourceVersion }
