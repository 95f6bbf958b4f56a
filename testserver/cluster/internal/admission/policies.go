package admission

import (
	"context"
	"fmt"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/sets"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/applyconfigurations"
	clientinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/kubeapiserver/admission/exclusion"

	"github.com/leatproject/leat/testserver/cluster/internal/informers"
)

const (
	policyMutation   = mutating.PluginName
	policyValidation = validating.PluginName
)

// base is the environment of all expressions. It is made when the first policy needs it.
var base = sync.OnceValue(func() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
})

// compiled keeps the compiled form of policies. A policy that changes is another value.
type compiled[P comparable, E any] struct {
	compile func(P) E

	mu   sync.Mutex // guards the field below
	have map[P]E
}

// of returns the compiled form of each policy, and forgets others.
func (c *compiled[P, E]) of(policies []P) map[P]E {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := make(map[P]E, len(policies))
	for _, p := range policies {
		e, ok := c.have[p]
		if !ok {
			e = c.compile(p)
		}
		next[p] = e
	}
	c.have = next
	return next
}

var unpoliced = sets.New(exclusion.Excluded()...)

// exempt reports whether no policy may decide about a request: a policy could otherwise make itself unchangeable, or
// lock everybody out.
func exempt(a apiadmission.Attributes) bool {
	return unpoliced.Has(a.GetResource().GroupResource()) || rules.IsExemptAdmissionConfigurationResource(a)
}

func newMatcher(f *informers.Factory) *matching.Matcher {
	return matching.NewMatcher(f.Core().V1().Namespaces().Lister(), f.Client())
}

// parameters returns the informer and the scope of the parameters of a policy.
func parameters(f *informers.Factory, of *admissionregistrationv1.ParamKind) (clientinformers.GenericInformer, meta.RESTScope, error) {
	if of == nil {
		return nil, nil, nil
	}
	kind := schema.FromAPIVersionAndKind(of.APIVersion, of.Kind)
	informer, namespaced, err := f.ForKind(kind)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", kind)
	}
	if namespaced {
		return informer, meta.RESTScopeNamespace, nil
	}
	return informer, meta.RESTScopeRoot, nil
}

// policy is a policy of either kind.
type policy interface {
	comparable
	runtime.Object
	metav1.Object
}

// policies are the policies of one kind, with their bindings.
type policies[P policy, B runtime.Object, E generic.Evaluator] struct {
	*apiadmission.Handler
	factory    *informers.Factory
	resource   string
	list       func(labels.Selector) ([]P, error)
	bindings   func(labels.Selector) ([]B, error)
	paramKind  func(P) *admissionregistrationv1.ParamKind
	policyName func(B) string
	dispatcher generic.Dispatcher[generic.PolicyHook[P, B, E]]
	compiled   compiled[P, E]
}

func (p *policies[P, B, E]) idle() bool {
	return p.factory.Empty(admissionregistrationv1.SchemeGroupVersion.WithResource(p.resource))
}

// enforce lets the policies decide about a request.
func (p *policies[P, B, E]) enforce(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	if exempt(a) {
		return nil
	}
	all, err := p.list(labels.Everything())
	if err != nil || len(all) == 0 {
		return err
	}
	bindings, err := p.bindings(labels.Everything())
	if err != nil {
		return err
	}
	return p.dispatcher.Dispatch(ctx, a, o, p.hooks(all, bindings))
}

// hooks joins policies with their bindings, compiled forms and parameters. A policy without a binding has no effect.
func (p *policies[P, B, E]) hooks(all []P, bindings []B) []generic.PolicyHook[P, B, E] {
	evaluators := p.compiled.of(all)
	var out []generic.PolicyHook[P, B, E]
	for _, one := range all {
		hook := generic.PolicyHook[P, B, E]{Policy: one, Evaluator: evaluators[one]}
		for _, b := range bindings {
			if p.policyName(b) == one.GetName() {
				hook.Bindings = append(hook.Bindings, b)
			}
		}
		if len(hook.Bindings) > 0 {
			hook.ParamInformer, hook.ParamScope, hook.ConfigurationError = parameters(p.factory, p.paramKind(one))
			out = append(out, hook)
		}
	}
	return out
}

// validatingPolicies enforces ValidatingAdmissionPolicies.
type validatingPolicies struct {
	policies[*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding, validating.Validator]
}

func newValidatingPolicies(f *informers.Factory, by authorizer.Authorizer) *validatingPolicies {
	v1, p := f.Admissionregistration().V1(), &validatingPolicies{}
	p.Handler = apiadmission.NewHandler(apiadmission.Create, apiadmission.Update, apiadmission.Delete, apiadmission.Connect)
	p.factory, p.resource = f, "validatingadmissionpolicies"
	p.list, p.bindings = v1.ValidatingAdmissionPolicies().Lister().List, v1.ValidatingAdmissionPolicyBindings().Lister().List
	p.paramKind = func(p *admissionregistrationv1.ValidatingAdmissionPolicy) *admissionregistrationv1.ParamKind {
		return p.Spec.ParamKind
	}
	p.policyName = func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) string { return b.Spec.PolicyName }
	p.dispatcher = validating.NewDispatcher(by, generic.NewPolicyMatcher(newMatcher(f)))
	p.compiled.compile = compileValidation
	return p
}

// Validate implements admission.ValidationInterface.
func (p *validatingPolicies) Validate(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	return p.enforce(ctx, a, o)
}

// compileValidation compiles the expressions of a policy. An error of an expression is that of its evaluation.
func compileValidation(p *admissionregistrationv1.ValidatingAdmissionPolicy) validating.Validator {
	with := cel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
	compiler, err := compilerFor(p.Spec.Variables, with)
	if err != nil {
		return validating.NewValidator(nil, nil, nil, nil, p.Spec.FailurePolicy, err)
	}
	var checks, messages, annotations []cel.ExpressionAccessor
	for _, v := range p.Spec.Validations {
		checks = append(checks, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		var message cel.ExpressionAccessor // nil keeps the positions of checks and messages equal
		if v.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
		messages = append(messages, message)
	}
	for _, a := range p.Spec.AuditAnnotations {
		annotations = append(annotations, &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression})
	}
	plain := with
	plain.HasAuthorizer = false
	return validating.NewValidator(
		compiler.CompileCondition(checks, with, environment.StoredExpressions),
		matcherOf(compiler, p.Spec.MatchConditions, with, p.Spec.FailurePolicy, p.Name),
		compiler.CompileCondition(annotations, with, environment.StoredExpressions),
		compiler.CompileCondition(messages, plain, environment.StoredExpressions),
		p.Spec.FailurePolicy, nil)
}

// compilerFor returns a compiler that knows the variables of a policy.
func compilerFor(variables []admissionregistrationv1.Variable, with cel.OptionalVariableDeclarations) (*cel.CompositedCompiler, error) {
	compiler, err := cel.NewCompositedCompiler(base())
	if err != nil {
		return nil, err
	}
	named := make([]cel.NamedExpressionAccessor, len(variables))
	for i, v := range variables {
		named[i] = &validating.Variable{Name: v.Name, Expression: v.Expression}
	}
	compiler.CompileAndStoreVariables(named, with, environment.StoredExpressions)
	return compiler, nil
}

// matcherOf compiles match conditions. It returns nil without conditions.
func matcherOf(compiler *cel.CompositedCompiler, conditions []admissionregistrationv1.MatchCondition,
	with cel.OptionalVariableDeclarations, failure *admissionregistrationv1.FailurePolicyType, name string,
) matchconditions.Matcher {
	if len(conditions) == 0 {
		return nil
	}
	expressions := make([]cel.ExpressionAccessor, len(conditions))
	for i := range conditions {
		expressions[i] = (*matchconditions.MatchCondition)(&conditions[i])
	}
	return matchconditions.NewMatcher(compiler.CompileCondition(expressions, with, environment.StoredExpressions), failure,
		"policy", "validate", name)
}

// mutatingPolicies applies MutatingAdmissionPolicies.
type mutatingPolicies struct {
	policies[*admissionregistrationv1.MutatingAdmissionPolicy, *admissionregistrationv1.MutatingAdmissionPolicyBinding, mutating.PolicyEvaluator]
}

func newMutatingPolicies(f *informers.Factory, by authorizer.Authorizer) *mutatingPolicies {
	v1, p := f.Admissionregistration().V1(), &mutatingPolicies{}
	p.Handler = apiadmission.NewHandler(apiadmission.Create, apiadmission.Update, apiadmission.Connect)
	p.factory, p.resource = f, "mutatingadmissionpolicies"
	p.list, p.bindings = v1.MutatingAdmissionPolicies().Lister().List, v1.MutatingAdmissionPolicyBindings().Lister().List
	p.paramKind = func(p *admissionregistrationv1.MutatingAdmissionPolicy) *admissionregistrationv1.ParamKind {
		return p.Spec.ParamKind
	}
	p.policyName = func(b *admissionregistrationv1.MutatingAdmissionPolicyBinding) string { return b.Spec.PolicyName }
	p.dispatcher = mutating.NewDispatcher(by, newMatcher(f), converters{f})
	p.compiled.compile = compileMutation
	return p
}

// Admit implements admission.MutationInterface.
func (p *mutatingPolicies) Admit(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	return p.enforce(ctx, a, o)
}

// compileMutation compiles the expressions of a policy.
func compileMutation(p *admissionregistrationv1.MutatingAdmissionPolicy) mutating.PolicyEvaluator {
	with := cel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
	compiler, err := compilerFor(p.Spec.Variables, with)
	if err != nil {
		return mutating.PolicyEvaluator{Error: err}
	}
	out := mutating.PolicyEvaluator{
		CompositedCompiler: compiler,
		Matcher:            matcherOf(compiler, p.Spec.MatchConditions, with, p.Spec.FailurePolicy, p.Name),
	}
	patching := with
	patching.HasPatchTypes = true
	for _, m := range p.Spec.Mutations {
		switch {
		case m.JSONPatch != nil:
			out.Mutators = append(out.Mutators, patch.NewJSONPatcher(compiler.CompileMutatingEvaluator(
				&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, patching, environment.StoredExpressions)))
		case m.ApplyConfiguration != nil:
			out.Mutators = append(out.Mutators, patch.NewApplyConfigurationPatcher(compiler.CompileMutatingEvaluator(
				&patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}, patching, environment.StoredExpressions)))
		}
	}
	return out
}

// converters knows the types of all resources, so that an ApplyConfiguration merges the lists that have keys.
type converters struct{ factory *informers.Factory }

var builtinConverter = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
})

// GetTypeConverter implements patch.TypeConverterManager.
func (c converters) GetTypeConverter(kind schema.GroupVersionKind) managedfields.TypeConverter {
	if scheme.Scheme.Recognizes(kind) {
		return builtinConverter()
	}
	if d := c.factory.Kind(kind); d != nil {
		if custom, ok := d.Schema.(typeConverter); ok {
			return custom.TypeConverter()
		}
	}
	return managedfields.NewDeducedTypeConverter()
}

// typeConverter is implemented by the Schema of a custom resource.
type typeConverter interface {
	TypeConverter() managedfields.TypeConverter
}

// Run implements patch.TypeConverterManager.
func (converters) Run(context.Context) {}
