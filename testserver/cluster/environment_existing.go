package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
)

// The times of CRDInstallOptions and WebhookInstallOptions if they are zero.
const (
	installTime  = 10 * time.Second
	pollInterval = 100 * time.Millisecond
)

// useExisting installs objects in the cluster of Config, or of the usual kubeconfig.
func (e *Environment) useExisting(crds, configurations []manifest) error {
	if e.Config == nil {
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
		if err != nil {
			return fmt.Errorf("cluster: find the existing cluster: %w", err)
		}
		config.QPS = -1
		e.Config = config
	}
	unlimited := rest.CopyConfig(e.Config)
	unlimited.QPS = -1
	i, err := newInstaller(unlimited)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(e.CRDInstallOptions.MaxTime, installTime))
	defer cancel()
	for _, m := range crds {
		undo, err := i.install(ctx, m)
		if err != nil {
			return err
		}
		e.undo = append(e.undo, func() error {
			if e.started && !e.CRDInstallOptions.CleanUpAfterUse {
				return nil
			}
			return undo()
		})
	}
	if err := i.awaitServed(ctx, e.CRDs, cmp.Or(e.CRDInstallOptions.PollInterval, pollInterval)); err != nil {
		return err
	}
	ctx, cancelWebhooks := context.WithTimeout(context.Background(), cmp.Or(e.WebhookInstallOptions.MaxTime, installTime))
	defer cancelWebhooks()
	for _, m := range configurations {
		undo, err := i.install(ctx, m)
		if err != nil {
			return err
		}
		e.undo = append(e.undo, undo)
	}
	return nil
}

// installer writes objects with requests.
type installer struct {
	client    dynamic.Interface
	discovery discovery.DiscoveryInterface
}

func newInstaller(config *rest.Config) (*installer, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cluster: use the existing cluster: %w", err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cluster: use the existing cluster: %w", err)
	}
	return &installer{client, d}, nil
}

// install creates an object, or replaces the one with its name. The function that it returns deletes the object, or
// restores what it replaced.
func (i *installer) install(ctx context.Context, m manifest) (undo func() error, err error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m.object)
	if err != nil {
		return nil, fmt.Errorf("cluster: encode the %s: %w", m, err)
	}
	o := &unstructured.Unstructured{Object: tree}
	o.SetGroupVersionKind(m.resource.GroupVersionKind())
	to := i.client.Resource(m.resource.GroupVersionResource())
	_, err = to.Create(ctx, o, metav1.CreateOptions{})
	again := remove
	if apierrors.IsAlreadyExists(err) {
		var before *unstructured.Unstructured
		if before, err = to.Get(ctx, o.GetName(), metav1.GetOptions{}); err == nil {
			again, err = replace, replace(ctx, to, o)
			o = before
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cluster: create the %s: %w", m, err)
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), installTime)
		defer cancel()
		if err := again(ctx, to, o); err != nil && !apierrors.IsNotFound(err) { // someone else may delete it
			return fmt.Errorf("cluster: remove or restore the %s: %w", m, err)
		}
		return nil
	}, nil
}

func remove(ctx context.Context, from dynamic.NamespaceableResourceInterface, o *unstructured.Unstructured) error {
	return from.Delete(ctx, o.GetName(), metav1.DeleteOptions{})
}

// replace replaces the object with the name of o.
func replace(ctx context.Context, in dynamic.NamespaceableResourceInterface, o *unstructured.Unstructured) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { // controllers write the status of definitions
		now, err := in.Get(ctx, o.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		o.SetResourceVersion(now.GetResourceVersion())
		o.SetUID(now.GetUID())
		_, err = in.Update(ctx, o, metav1.UpdateOptions{})
		return err
	})
}

// awaitServed waits until discovery lists all versions of the definitions.
func (i *installer) awaitServed(ctx context.Context, all []*apiextensionsv1.CustomResourceDefinition, interval time.Duration) error {
	for _, d := range all {
		for _, v := range d.Spec.Versions {
			if !v.Served {
				continue
			}
			version := schema.GroupVersion{Group: d.Spec.Group, Version: v.Name}
			var last error // errors of discovery may pass
			err := wait.PollUntilContextCancel(ctx, interval, true, func(context.Context) (served bool, _ error) {
				served, last = i.serves(version, d.Spec.Names.Plural)
				return served, nil
			})
			if err != nil {
				return fmt.Errorf("cluster: wait until %s serves %s: %w", version, d.Spec.Names.Plural, errors.Join(err, last))
			}
		}
	}
	return nil
}

func (i *installer) serves(version schema.GroupVersion, plural string) (bool, error) {
	found, err := i.discovery.ServerResourcesForGroupVersion(version.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(found.APIResources, func(r metav1.APIResource) bool { return r.Name == plural }), nil
}
