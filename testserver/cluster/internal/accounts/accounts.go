package accounts

import (
	"context"
	"maps"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
)

const (
	accountName = "default"
	caName      = "kube-root-ca.crt"
	caKey       = "ca.crt"

	descriptionName = "kubernetes.io/description"
	description     = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the " +
		"internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)

var (
	namespaceResource = api.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}
	accountResource   = api.Resource{Version: "v1", Kind: "ServiceAccount", Plural: "serviceaccounts", Namespaced: true}
	mapResource       = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
)

// Options are the options of Accounts.
type Options struct {
	// CA is the certificate of the API server's authority in PEM. It is empty if the server has no TLS.
	CA []byte
	// Controller are the options of the controller.
	Controller controller.Options
}

// Accounts creates the objects of each namespace.
type Accounts struct {
	options  Options
	accounts *apiclient.TypedClient[*corev1.ServiceAccount]
	maps     *apiclient.TypedClient[*corev1.ConfigMap]

	namespaceCache *informer.Informer[*object]
	accountCache   *informer.Informer[*object]
	mapCache       *informer.Informer[*corev1.ConfigMap]
	controller     *controller.Controller[api.Key]
}

// object has only metadata.
type object struct {
	metav1.ObjectMeta `json:"metadata"`
}

// New returns the controller of the namespaces that a client reaches.
func New(client *apiclient.Client, o Options) *Accounts {
	a := &Accounts{
		options:  o,
		accounts: apiclient.NewTyped[*corev1.ServiceAccount](client, accountResource, ""),
		maps:     apiclient.NewTyped[*corev1.ConfigMap](client, mapResource, ""),
	}
	a.namespaceCache = informer.New(apiclient.NewPartial[*object](client, namespaceResource, ""), informer.Options[*object]{})
	a.accountCache = informer.New(apiclient.NewPartial[*object](client, accountResource, ""), informer.Options[*object]{Selector: named(accountName)})
	a.mapCache = informer.New(a.maps, informer.Options[*corev1.ConfigMap]{Selector: named(caName)})
	a.controller = controller.New("accounts", controller.Func[api.Key](a.reconcile), o.Controller)
	a.controller.Watch(controller.For(a.namespaceCache))
	a.controller.Watch(controller.Map(a.accountCache, namespaceOf[*object]))
	a.controller.Watch(controller.Map(a.mapCache, namespaceOf[*corev1.ConfigMap]))
	return a
}

func named(name string) api.Selector { return api.Selector{Fields: "metadata.name=" + name} }

func namespaceOf[T api.Object](o T) []api.Key { return []api.Key{{Name: o.GetNamespace()}} }

// Run works until ctx ends. It returns after its goroutines have ended. It runs once.
func (a *Accounts) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{a.namespaceCache.Run, a.accountCache.Run, a.mapCache.Run, a.controller.Run} {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}

// reconcile creates what a namespace lacks.
func (a *Accounts) reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	ns, found := a.namespaceCache.Cache().Get(key)
	if !found || ns.DeletionTimestamp != nil {
		return controller.Result{}, nil
	}
	err := a.account(ctx, ns.Name)
	if err == nil {
		err = a.certificate(ctx, ns.Name)
	}
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		err = nil // the caches will show it
	}
	return controller.Result{}, err
}

func (a *Accounts) account(ctx context.Context, namespace string) error {
	if _, found := a.accountCache.Cache().Get(api.Key{Namespace: namespace, Name: accountName}); found {
		return nil
	}
	_, err := a.accounts.Create(ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: accountName},
	}, metav1.CreateOptions{})
	return err
}

func (a *Accounts) certificate(ctx context.Context, namespace string) error {
	data := map[string]string{caKey: string(a.options.CA)}
	have, found := a.mapCache.Cache().Get(api.Key{Namespace: namespace, Name: caName})
	if !found {
		_, err := a.maps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: caName, Annotations: map[string]string{descriptionName: description}},
			Data:       data,
		}, metav1.CreateOptions{})
		return err
	}
	if maps.Equal(have.Data, data) && len(have.BinaryData) == 0 && have.Annotations[descriptionName] != "" {
		return nil
	}
	have = have.DeepCopy()
	have.Data, have.BinaryData = data, nil
	metav1.SetMetaDataAnnotation(&have.ObjectMeta, descriptionName, description)
	_, err := a.maps.Update(ctx, have, metav1.UpdateOptions{})
	return err
}
