package selfsigned

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

// The resources that contain a caBundle.
var (
	mutating = api.Resource{
		Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration", Plural: "mutatingwebhookconfigurations",
	}
	validating = api.Resource{
		Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration", Plural: "validatingwebhookconfigurations",
	}
	definitions = api.Resource{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions",
	}
)

// clientConfig is how an API server reaches a webhook.
type clientConfig struct {
	CABundle []byte `json:"caBundle"`
}

// target has the fields of a webhook configuration and of a CustomResourceDefinition that matter here.
type target struct {
	metav1.ObjectMeta `json:"metadata"`

	Webhooks []struct {
		ClientConfig clientConfig `json:"clientConfig"`
	} `json:"webhooks"`
	Spec struct {
		Conversion struct {
			Webhook *struct {
				ClientConfig clientConfig `json:"clientConfig"`
			} `json:"webhook"`
		} `json:"conversion"`
	} `json:"spec"`
}

// wants returns the operations that write the bundle where another one is. It is empty if the target has the bundle.
func (t *target) wants(bundle []byte) (operations []apiclient.JSONPatchOperation) {
	write := func(has clientConfig, path string) {
		if !bytes.Equal(has.CABundle, bundle) {
			operations = append(operations, apiclient.JSONPatchOperation{Op: "add", Path: path + "/clientConfig/caBundle", Value: bundle})
		}
	}
	for i, w := range t.Webhooks {
		write(w.ClientConfig, fmt.Sprintf("/webhooks/%d", i))
	}
	if w := t.Spec.Conversion.Webhook; w != nil {
		write(w.ClientConfig, "/spec/conversion/webhook")
	}
	return operations
}

// targets are the objects of one resource that get the bundle.
type targets struct {
	client *apiclient.PartialClient[*target]
	names  []string
}

// found is a target that was read.
type found struct {
	*target
	client *apiclient.PartialClient[*target]
}

// read reads all targets. It returns those that it could read, and all errors, joined.
func (s *Source) read(ctx context.Context) (all []found, err error) {
	var wrong []error
	for _, group := range s.targets {
		for _, name := range group.names {
			t, err := group.client.Get(ctx, api.Key{Name: name}, metav1.GetOptions{})
			switch {
			case err != nil:
				wrong = append(wrong, err)
			case len(t.Webhooks) == 0 && t.Spec.Conversion.Webhook == nil:
				wrong = append(wrong, fmt.Errorf("%s %q has no webhook", group.client.Resource().Kind, name))
			default:
				all = append(all, found{t, group.client})
			}
		}
	}
	return all, errors.Join(wrong...)
}

// write writes the bundle, if the target has not changed since it was read.
func (f found) write(ctx context.Context, bundle []byte) error {
	operations := append([]apiclient.JSONPatchOperation{
		{Op: "replace", Path: "/metadata/resourceVersion", Value: f.ResourceVersion}, // the server answers 409 for another version
	}, f.wants(bundle)...)
	patch, err := apiclient.JSONPatch(operations...)
	if err != nil {
		return err
	}
	_, err = f.client.Patch(ctx, api.Key{Name: f.Name}, patch, apiclient.PatchOptions{FieldManager: fieldManager})
	return err
}
