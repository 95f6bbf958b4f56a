package status

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrCondition is a condition that no server accepts.
var ErrCondition = errors.New("status: not a condition")

// reasonForm is what metav1.Condition demands of a reason.
var reasonForm = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

const maxReason, maxMessage = 1024, 32768

// Set puts a condition among those of an object, in place of the one of its type, and tells whether that changed anything.
// Its lastTransitionTime becomes c's, or now if c has none, where the status is another than before, and otherwise stays as
// it was. A condition that the API server would refuse (an empty or malformed reason, a status that is none of True, False
// and Unknown) is ErrCondition, and changes nothing.
// It corresponds to meta.SetStatusCondition of apimachinery.
func Set(conditions *[]metav1.Condition, c metav1.Condition) (changed bool, err error) {
	if err := validate(c); err != nil {
		return false, err
	}
	return meta.SetStatusCondition(conditions, c), nil
}

func validate(c metav1.Condition) error {
	switch {
	case c.Type == "":
		return fmt.Errorf("%w: it has no type", ErrCondition)
	case c.Status != metav1.ConditionTrue && c.Status != metav1.ConditionFalse && c.Status != metav1.ConditionUnknown:
		return fmt.Errorf("%w: the status of %s is %q, and not True, False or Unknown", ErrCondition, c.Type, c.Status)
	case !reasonForm.MatchString(c.Reason) || len(c.Reason) > maxReason:
		return fmt.Errorf("%w: the reason of %s is %q, and not a word in CamelCase", ErrCondition, c.Type, c.Reason)
	case len(c.Message) > maxMessage:
		return fmt.Errorf("%w: the message of %s has %d bytes, and %d are allowed", ErrCondition, c.Type, len(c.Message), maxMessage)
	case c.ObservedGeneration < 0:
		return fmt.Errorf("%w: the observedGeneration of %s is negative", ErrCondition, c.Type)
	}
	return nil
}

// Find returns the condition of a type, or nil.
// It corresponds to meta.FindStatusCondition of apimachinery.
func Find(conditions []metav1.Condition, kind string) *metav1.Condition {
	return meta.FindStatusCondition(conditions, kind)
}

// Is tells whether the condition of a type is there and has that status.
func Is(conditions []metav1.Condition, kind string, status metav1.ConditionStatus) bool {
	return meta.IsStatusConditionPresentAndEqual(conditions, kind, status)
}

// IsCurrent is Is for a condition that was said of this generation of its object, or of a later one. What was said of an
// earlier one may hold no longer.
func IsCurrent(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, generation int64) bool {
	c := Find(conditions, kind)
	return c != nil && c.Status == status && c.ObservedGeneration >= generation
}

// Remove takes away the condition of a type and tells whether there was one.
func Remove(conditions *[]metav1.Condition, kind string) bool {
	before := len(*conditions)
	*conditions = slices.DeleteFunc(slices.Clone(*conditions), func(c metav1.Condition) bool { return c.Type == kind })
	return len(*conditions) != before
}
