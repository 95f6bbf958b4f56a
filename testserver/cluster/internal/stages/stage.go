package stages

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// Stage is one entry of a file. It has exactly one action: Crash, Condition, Evict, Delete, Patch or Status.
type Stage struct {
	// Name is for messages.
	Name string `json:"name"`
	// Kind is Pod or Node.
	Kind string `json:"kind"`
	// Selector is a label selector, as of kubectl -l. Empty selects all.
	Selector string `json:"selector,omitempty"`
	// When is a CEL expression about the variable object. Empty is true. An expression that fails, for example because
	// a field is missing, is false.
	When string `json:"when,omitempty"`
	// Delay is how long an object matches before the stage acts; a random time up to Jitter is added.
	Delay  metav1.Duration `json:"delay,omitempty"`
	Jitter metav1.Duration `json:"jitter,omitempty"`
	// Weight is how often the stage is chosen, relative to others that match. Zero means 1.
	Weight int `json:"weight,omitempty"`

	// Crash ends running containers of a pod.
	Crash *Crash `json:"crash,omitempty"`
	// Condition sets a condition, and the time of its transition.
	Condition *Condition `json:"condition,omitempty"`
	// Evict evicts a pod, if the budgets allow it.
	Evict bool `json:"evict,omitempty"`
	// Delete deletes the object.
	Delete bool `json:"delete,omitempty"`
	// Patch is a strategic merge patch of the object, and Status one of its status.
	Patch  map[string]any `json:"patch,omitempty"`
	Status map[string]any `json:"status,omitempty"`

	selector labels.Selector
	when     cel.Program // nil is true
}

// Crash says how containers end. Init containers go on, sidecars too.
type Crash struct {
	Container string `json:"container,omitempty"` // empty means all that run
	ExitCode  *int32 `json:"exitCode,omitempty"`  // nil means 1
	Reason    string `json:"reason,omitempty"`    // empty means Error, or Completed if the exit code is 0
}

// Condition is a condition of a pod or a node.
type Condition struct {
	Type    string                 `json:"type"`
	Status  corev1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason,omitempty"`
	Message string                 `json:"message,omitempty"`
}

// mostWeight keeps a sum of weights in an int.
const mostWeight = 1_000_000

// Parse reads a file: a list of stages in YAML or JSON. An error names the stage.
func Parse(file []byte) ([]Stage, error) {
	var list []Stage
	text := bytes.TrimPrefix(bytes.TrimSpace(file), []byte("---"))
	if _, more, _ := bytes.Cut(text, []byte("\n---")); len(bytes.TrimSpace(more)) > 0 {
		return nil, errors.New("stages: the file has several YAML documents; write one list")
	}
	if err := yaml.UnmarshalStrict(file, &list); err != nil {
		return nil, fmt.Errorf("stages: the file is not a list of stages: %w", err)
	}
	if len(list) == 0 {
		return nil, errors.New("stages: the file has no stages")
	}
	for i := range list {
		if err := list[i].check(); err != nil {
			return nil, fmt.Errorf("stages: stage %d (%q): %w", i+1, list[i].Name, err)
		}
	}
	return list, nil
}

func (s *Stage) check() (err error) {
	actions := 0
	for _, has := range []bool{s.Crash != nil, s.Condition != nil, s.Evict, s.Delete, s.Patch != nil, s.Status != nil} {
		if has {
			actions++
		}
	}
	switch {
	case s.Kind != "Pod" && s.Kind != "Node":
		return fmt.Errorf("kind is %q: it is Pod or Node", s.Kind)
	case actions != 1:
		return fmt.Errorf("give exactly one of crash, condition, evict, delete, patch and status, not %d", actions)
	case s.Kind == "Node" && (s.Crash != nil || s.Evict):
		return errors.New("crash and evict are for pods")
	case s.Delay.Duration < 0 || s.Jitter.Duration < 0 || s.Weight < 0:
		return errors.New("delay, jitter and weight must not be negative")
	case s.Weight > mostWeight:
		return fmt.Errorf("weight is %d: it is at most %d", s.Weight, mostWeight)
	case s.Condition != nil && (s.Condition.Type == "" || !statuses[s.Condition.Status]):
		return fmt.Errorf("condition has the type %q and the status %q: the status is \"True\", \"False\" or \"Unknown\"", s.Condition.Type, s.Condition.Status)
	}
	s.Weight = max(s.Weight, 1)
	if s.selector, err = labels.Parse(s.Selector); err != nil {
		return fmt.Errorf("selector: %w", err)
	}
	if s.When == "" {
		return nil
	}
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).NewExpressionsEnv().Extend(cel.Variable("object", cel.DynType))
	if err != nil {
		return err
	}
	ast, issues := env.Compile(s.When)
	if issues.Err() != nil {
		return fmt.Errorf("when: %w", issues.Err())
	}
	if t := ast.OutputType(); !t.IsAssignableType(cel.BoolType) {
		return fmt.Errorf("when: it is of type %s, not bool", t)
	}
	s.when, err = env.Program(ast)
	return err
}

var statuses = map[corev1.ConditionStatus]bool{corev1.ConditionTrue: true, corev1.ConditionFalse: true, corev1.ConditionUnknown: true}

// matches reports whether the stage selects an object. tree returns the object for expressions.
func (s *Stage) matches(l map[string]string, tree func() map[string]any) bool {
	if !s.selector.Matches(labels.Set(l)) {
		return false
	}
	if s.when == nil {
		return true
	}
	out, _, err := s.when.Eval(map[string]any{"object": tree()})
	return err == nil && out.Value() == true
}

// apply ends the running containers that the crash names. It reports whether there are any.
func (c *Crash) apply(all []corev1.ContainerStatus, now time.Time) (any bool) {
	code, reason := int32(1), c.Reason
	if c.ExitCode != nil {
		code = *c.ExitCode
	}
	if reason == "" {
		reason = "Error"
		if code == 0 {
			reason = "Completed"
		}
	}
	for i := range all {
		s := &all[i]
		if s.State.Running == nil || c.Container != "" && c.Container != s.Name {
			continue
		}
		s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, ContainerID: s.ContainerID,
			StartedAt: s.State.Running.StartedAt, FinishedAt: metav1.NewTime(now).Rfc3339Copy(),
		}}
		s.Ready, s.Started, any = false, new(bool), true
	}
	return any
}

// patch returns the entry of a strategic merge patch that sets the condition of an object.
func (c *Condition) patch(tree map[string]any) map[string]any {
	out := map[string]any{"type": c.Type, "status": c.Status, "reason": c.Reason, "message": c.Message}
	all, _, _ := unstructured.NestedSlice(tree, "status", "conditions")
	if !slices.ContainsFunc(all, func(have any) bool {
		h, _ := have.(map[string]any)
		return h["type"] == c.Type && h["status"] == string(c.Status)
	}) {
		out["lastTransitionTime"] = metav1.Now()
	}
	return out
}
