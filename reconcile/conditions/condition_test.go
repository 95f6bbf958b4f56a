package conditions_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/reconcile/conditions"
)

func ready(s metav1.ConditionStatus, reason, message string, generation int64) metav1.Condition {
	return metav1.Condition{Type: "Ready", Status: s, Reason: reason, Message: message, ObservedGeneration: generation}
}

func TestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []metav1.Condition
		began := metav1.Now()
		set := func(c metav1.Condition) bool {
			t.Helper()
			changed, err := conditions.Set(&all, c)
			require.NoError(t, err)
			return changed
		}
		since := func() time.Duration { return conditions.Find(all, "Ready").LastTransitionTime.Sub(began.Time) }

		require.True(t, set(ready("False", "Starting", "", 1)))
		require.Zero(t, since())
		<-time.After(time.Minute)
		require.False(t, set(ready("False", "Starting", "", 1)), "nothing has changed")
		require.True(t, set(ready("False", "Starting", "still", 1)))
		require.True(t, set(ready("False", "Waiting", "still", 1)))
		require.True(t, set(ready("False", "Waiting", "still", 2)))
		require.Zero(t, since(), "the status is the same")
		require.True(t, set(ready("True", "Started", "", 2)))
		require.Equal(t, time.Minute, since())

		require.True(t, set(metav1.Condition{Type: "Other", Status: "True", Reason: "R"}))
		require.Len(t, all, 2)
		require.True(t, conditions.Is(all, "Ready", "True"))
		require.False(t, conditions.Is(all, "Ready", "False"))
		require.False(t, conditions.Is(all, "None", "True"))
		require.True(t, conditions.IsCurrent(all, "Ready", "True", 2))
		require.False(t, conditions.IsCurrent(all, "Ready", "True", 3), "the condition is of an earlier generation")
		require.False(t, conditions.IsCurrent(all, "Ready", "False", 2))
		require.False(t, conditions.IsCurrent(all, "None", "True", 0))

		cached := all
		require.True(t, conditions.Remove(&all, "Ready"))
		require.False(t, conditions.Remove(&all, "Ready"))
		require.Nil(t, conditions.Find(all, "Ready"))
		require.Equal(t, "Ready", cached[0].Type, "a slice that others may hold was written to")
	})
}

func TestSetRejectsInvalidConditions(t *testing.T) {
	for says, c := range map[string]metav1.Condition{
		"the type is empty":                         {Status: "True", Reason: "R"},
		`type is "not a name"; it must`:             {Type: "not a name", Status: "True", Reason: "R"},
		`type is "a/b/c"; it must`:                  {Type: "a/b/c", Status: "True", Reason: "R"},
		`TTT"; it must have the form`:               {Type: strings.Repeat("T", 317), Status: "True", Reason: "R"},
		`status of Ready is ""`:                     ready("", "R", "", 0),
		`"true"; it must be True, False or Unknown`: ready("true", "R", "", 0),
		`reason of Ready is ""`:                     ready("True", "", "", 0),
		`"not a word"; it must`:                     ready("True", "not a word", "", 0),
		`"Ends,"; it must`:                          ready("True", "Ends,", "", 0),
		"it must be a word in CamelCase":            ready("True", strings.Repeat("R", 1025), "", 0),
		"has 32769 bytes":                           ready("True", "R", strings.Repeat("m", 32769), 0),
		"is negative":                               ready("True", "R", "", -1),
	} {
		all := []metav1.Condition{ready("False", "Before", "", 0)}
		changed, err := conditions.Set(&all, c)
		require.ErrorIs(t, err, conditions.ErrCondition)
		require.ErrorContains(t, err, says)
		require.False(t, changed)
		require.Equal(t, "Before", all[0].Reason)
	}
	for _, kind := range []string{"R", "a.b/C_d", strings.Repeat("T", 316)} { // the key of a label is shorter
		changed, err := conditions.Set(&[]metav1.Condition{}, metav1.Condition{Type: kind, Status: "True", Reason: "R"})
		require.NoError(t, err, kind)
		require.True(t, changed)
	}
	for _, reason := range []string{"R", "AsExpected", "a_1", "A,b:C"} {
		all := []metav1.Condition{}
		changed, err := conditions.Set(&all, ready("Unknown", reason, "", 0))
		require.NoError(t, err, reason)
		require.True(t, changed)
	}
}

func ExampleSet() {
	var all []metav1.Condition
	for _, reason := range []string{"Started", "Started", "Stopped"} {
		value := metav1.ConditionTrue
		if reason == "Stopped" {
			value = metav1.ConditionFalse
		}
		changed, err := conditions.Set(&all, metav1.Condition{Type: "Ready", Status: value, Reason: reason, ObservedGeneration: 3})
		fmt.Println(reason, changed, err)
	}
	// Output:
	// Started true <nil>
	// Started false <nil>
	// Stopped true <nil>
}
