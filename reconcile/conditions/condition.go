package conditions

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrCondition is the error of a condition that no server accepts.
var ErrCondition = errors.New("conditions: invalid condition")

// typeForm and reasonForm are the forms of a type and a reason that metav1.Condition requires.
var (
	typeForm = regexp.MustCompile(
		`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`)
	reasonForm = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
)

const maxType, maxReason, maxMessage = 316, 1024, 32768

// Set adds a condition to an object's conditions, or replaces the one of the same type, and reports whether anything
// changed. If the status changes, lastTransitionTime becomes that of c, or now if c has no time; otherwise it stays. If
// the API server would reject the condition, Set returns ErrCondition and changes nothing: for example, if the type or
// the reason is empty or malformed, or the status is not True, False or Unknown. It corresponds to
// meta.SetStatusCondition of apimachinery.
func Set(conditions *[]metav1.Condition, c metav1.Condition) (changed bool, err error) {
	if err := validate(c); err != nil {
		return false, err
	}
	return meta.SetStatusCondition(conditions, c), nil
}

func validate(c metav1.Condition) error {
	switch {
	case c.Type == "":
		return fmt.Errorf("%w: the type is empty", ErrCondition)
	case !typeForm.MatchString(c.Type) || len(c.Type) > maxType:
		return fmt.Errorf("%w: the type is %q; it must have the form of the key of a label, with at most %d characters",
			ErrCondition, c.Type, maxType)
	case c.Status != metav1.ConditionTrue && c.Status != metav1.ConditionFalse && c.Status != metav1.ConditionUnknown:
		return fmt.Errorf("%w: the status of %s is %q; it must be True, False or Unknown", ErrCondition, c.Type, c.Status)
	case !reasonForm.MatchString(c.Reason) || len(c.Reason) > maxReason:
		return fmt.Errorf("%w: the reason of %s is %q; it must be a word in CamelCase", ErrCondition, c.Type, c.Reason)
	case len(c.Message) > maxMessage:
		return fmt.Errorf("%w: the message of %s has %d bytes; at most %d are allowed", ErrCondition, c.Type, len(c.Message), maxMessage)
	case c.ObservedGeneration < 0:
		return fmt.Errorf("%w: the observedGeneration of %s is negative", ErrCondition, c.Type)
	}
	return nil
}

// Find returns the condition of a type, or nil. It corresponds to meta.FindStatusCondition of apimachinery.
func Find(conditions []metav1.Condition, kind string) *metav1.Condition {
	return meta.FindStatusCondition(conditions, kind)
}

// Is reports whether the condition of a type exists and has the given status.
func Is(conditions []metav1.Condition, kind string, status metav1.ConditionStatus) bool {
	return meta.IsStatusConditionPresentAndEqual(conditions, kind, status)
}

// IsCurrent is like Is, but ignores a condition whose observedGeneration is older than the given generation of the
// object, because it may no longer hold.
func IsCurrent(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, generation int64) bool {
	c := Find(conditions, kind)
	return c != nil && c.Status == status && c.ObservedGeneration >= generation
}

// Remove removes the condition of a type and reports whether there was one.
func Remove(conditions *[]metav1.Condition, kind string) bool {
	before := len(*conditions)
	*conditions = slices.DeleteFunc(slices.Clone(*conditions), func(c metav1.Condition) bool { return c.Type == kind })
	return len(*conditions) != before
}
