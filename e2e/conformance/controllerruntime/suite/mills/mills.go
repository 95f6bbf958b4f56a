package mills

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// The versions of a Mill. V1 is the hub.
var (
	V1      = schema.GroupVersion{Group: "mills.example.com", Version: "v1"}
	V1alpha = schema.GroupVersion{Group: "mills.example.com", Version: "v1alpha1"}
)

// AddToScheme adds both versions.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypeWithName(V1.WithKind("Mill"), &Mill{})
	s.AddKnownTypeWithName(V1alpha.WithKind("Mill"), &OldMill{})
	metav1.AddToGroupVersion(s, V1)
	metav1.AddToGroupVersion(s, V1alpha)
	return nil
}

// Mill is the version v1, which has the number of sails.
type Mill struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Sails             int32 `json:"sails,omitempty"`
}

// OldMill is the version v1alpha1, which has the number as a text.
type OldMill struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Sails             string `json:"sails,omitempty"`
}

// DeepCopyObject returns a copy.
func (m *Mill) DeepCopyObject() runtime.Object {
	c := *m
	c.ObjectMeta = *m.ObjectMeta.DeepCopy()
	return &c
}

// DeepCopyObject returns a copy.
func (m *OldMill) DeepCopyObject() runtime.Object {
	c := *m
	c.ObjectMeta = *m.ObjectMeta.DeepCopy()
	return &c
}

// Hub marks the version to and from which others convert.
func (*Mill) Hub() {}

// ConvertTo converts to v1.
func (m *OldMill) ConvertTo(hub conversion.Hub) error {
	to, ok := hub.(*Mill)
	if !ok {
		return fmt.Errorf("%T is no Mill", hub)
	}
	to.ObjectMeta = m.ObjectMeta
	sails, err := strconv.Atoi(m.Sails)
	to.Sails = int32(sails)
	return err
}

// ConvertFrom converts from v1.
func (m *OldMill) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*Mill)
	if !ok {
		return fmt.Errorf("%T is no Mill", hub)
	}
	m.ObjectMeta, m.Sails = from.ObjectMeta, strconv.Itoa(int(from.Sails))
	return nil
}

// Rules are the webhooks of a Mill.
type Rules struct{}

// Default gives a mill four sails.
func (Rules) Default(_ context.Context, m *Mill) error {
	if m.Sails == 0 {
		m.Sails = 4
	}
	return nil
}

// ValidateCreate refuses a mill with one sail.
func (Rules) ValidateCreate(_ context.Context, m *Mill) (admission.Warnings, error) {
	if m.Sails == 1 {
		return nil, errors.New("a mill has more than one sail")
	}
	return nil, nil
}

// ValidateUpdate refuses what ValidateCreate refuses.
func (r Rules) ValidateUpdate(ctx context.Context, _, m *Mill) (admission.Warnings, error) {
	return r.ValidateCreate(ctx, m)
}

// ValidateDelete permits everything.
func (Rules) ValidateDelete(context.Context, *Mill) (admission.Warnings, error) { return nil, nil }
