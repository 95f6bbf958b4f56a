package admission

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/approval"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/signing"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/subjectrestriction"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/kubernetes/plugin/pkg/admission/network/defaultingressclass"
	"k8s.io/kubernetes/plugin/pkg/admission/nodetaint"
	"k8s.io/kubernetes/plugin/pkg/admission/priority"
	"k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/persistentvolume/resize"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/storageclass/setdefault"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/storageobjectinuseprotection"

	"github.com/leatproject/leat/testserver/cluster/internal/informers"
	"github.com/leatproject/leat/testserver/cluster/internal/typed"
	"github.com/leatproject/leat/testserver/internal/extension"
)

// builtinNames are the plugins that know the types of Kubernetes, in the order of kube-apiserver.
var builtinNames = []string{
	limitranger.PluginName, serviceaccount.PluginName, nodetaint.PluginName, priority.PluginName,
	defaulttolerationseconds.PluginName, setdefault.PluginName, resize.PluginName, storageobjectinuseprotection.PluginName,
	runtimeclass.PluginName, approval.PluginName, signing.PluginName, subjectrestriction.PluginName,
	defaultingressclass.PluginName,
}

var pods = schema.GroupResource{Resource: "pods"}

var priorityClasses = schema.GroupResource{Group: "scheduling.k8s.io", Resource: "priorityclasses"}

// concerned are the resources that these plugins look at. Writes to others are not converted.
var concerned = sets.New(
	pods, schema.GroupResource{Resource: "nodes"},
	schema.GroupResource{Resource: "persistentvolumeclaims"}, schema.GroupResource{Resource: "persistentvolumes"},
	priorityClasses,
	schema.GroupResource{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"},
	schema.GroupResource{Group: "networking.k8s.io", Resource: "ingresses"},
	schema.GroupResource{Group: "storage.k8s.io", Resource: "volumeattributesclasses"},
)

// builtins runs plugins with objects in the internal types of Kubernetes.
type builtins struct {
	plugins []apiadmission.Interface
}

func newBuiltins(f *informers.Factory, o Options, on []string) (*builtins, error) {
	all := apiadmission.NewPlugins()
	for _, register := range []func(*apiadmission.Plugins){
		limitranger.Register, serviceaccount.Register, nodetaint.Register, priority.Register,
		defaulttolerationseconds.Register, setdefault.Register, resize.Register, storageobjectinuseprotection.Register,
		runtimeclass.Register, approval.Register, signing.Register, subjectrestriction.Register, defaultingressclass.Register,
	} {
		register(all)
	}
	prepare := initializer.New(f.Client(), nil, f, o.Authorizer, utilfeature.DefaultFeatureGate, nil, nil, nil)
	out := &builtins{}
	for _, name := range builtinNames {
		if !slices.Contains(on, name) {
			continue
		}
		plugin, err := all.InitPlugin(name, nil, prepare)
		if err != nil {
			return nil, fmt.Errorf("admission: %w", err)
		}
		out.plugins = append(out.plugins, plugin)
	}
	if len(out.plugins) == 0 {
		return nil, nil
	}
	return out, nil
}

// concern reports whether a plugin looks at a write. b may be nil.
func (b *builtins) concern(a *extension.Attributes) bool {
	return b != nil && concerned.Has(a.Resource.GroupResource())
}

// Handles implements admission.Interface.
func (b *builtins) Handles(apiadmission.Operation) bool { return true }

// Admit implements admission.MutationInterface.
func (b *builtins) Admit(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	if !concerned.Has(a.GetResource().GroupResource()) {
		return nil
	}
	r := a.(*request)
	if r.object == nil || !legacyscheme.Scheme.Recognizes(r.object.GroupVersionKind()) {
		_, err := b.admit(ctx, a, o, nil)
		return err
	}
	kind := r.object.GroupVersionKind()
	sent, err := typed.Take(r.write.Values, kind, r.object.Object)
	if err != nil {
		return err
	}
	after, err := b.admit(ctx, a, o, sent)
	switch {
	case err != nil:
		return err
	case after == nil:
		typed.Leave(r.write.Values, kind, sent)
		return nil
	}
	return r.become(after)
}

// admit runs the plugins. It returns nil if they have not changed the object, which is sent, and otherwise the new one.
func (b *builtins) admit(
	ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces, sent runtime.Object,
) (runtime.Object, error) {
	internal, err := typedAttributes(a, sent)
	if err != nil {
		return nil, err
	}
	// The plugins change nearly every new pod: they add tolerations, a service account and its token. Other objects are
	// compared. For a pod, that would take longer than to convert one that is the same.
	surely := a.GetOperation() == apiadmission.Create && a.GetResource().GroupResource() == pods && a.GetSubresource() == ""
	var before runtime.Object
	if !surely {
		before = copyOf(internal.GetObject())
	}
	for _, plugin := range b.plugins {
		if mutating, ok := plugin.(apiadmission.MutationInterface); ok && plugin.Handles(a.GetOperation()) {
			if err := mutating.Admit(ctx, internal, o); err != nil {
				return nil, err
			}
		}
	}
	after := internal.GetObject()
	if after == nil || !surely && equality.Semantic.DeepEqual(before, after) {
		return nil, nil
	}
	return after, nil
}

// Validate implements admission.ValidationInterface.
func (b *builtins) Validate(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	if !concerned.Has(a.GetResource().GroupResource()) {
		return nil
	}
	internal, err := storedAttributes(a)
	if err != nil {
		return err
	}
	for _, plugin := range b.plugins {
		if validating, ok := plugin.(apiadmission.ValidationInterface); ok && plugin.Handles(a.GetOperation()) {
			if err := validating.Validate(ctx, internal, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func copyOf(o runtime.Object) runtime.Object {
	if o == nil {
		return nil
	}
	return o.DeepCopyObject()
}

// storedAttributes returns attributes with objects in internal types, for validation. The object is nil if it has no
// such type.
func storedAttributes(a apiadmission.Attributes) (apiadmission.Attributes, error) {
	r := a.(*request)
	if r.object == nil || !legacyscheme.Scheme.Recognizes(r.object.GroupVersionKind()) {
		return typedAttributes(a, nil)
	}
	if v := r.write.Values; v != nil && v.Stored != nil {
		return typedAttributes(a, v.Stored.(runtime.Object))
	}
	obj, err := typed.Internal(r.object.Object)
	if err != nil {
		return nil, err
	}
	return typedAttributes(a, obj)
}

// typedAttributes returns attributes with objects in internal types, of which obj is the new one. The warnings and
// annotations of plugins still go to a.
func typedAttributes(a apiadmission.Attributes, obj runtime.Object) (apiadmission.Attributes, error) {
	r := a.(*request)
	var old runtime.Object
	var err error
	if r.write.Old != nil && legacyscheme.Scheme.Recognizes(r.GetOldObject().GetObjectKind().GroupVersionKind()) {
		if old, err = typed.Internal(r.write.Old); err != nil {
			return nil, err
		}
	}
	return apiadmission.NewAttributesRecord(obj, old, a.GetKind(), a.GetNamespace(), a.GetName(), a.GetResource(),
		a.GetSubresource(), a.GetOperation(), a.GetOperationOptions(), a.IsDryRun(), a.GetUserInfo()), nil
}
