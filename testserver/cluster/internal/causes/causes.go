package causes

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Order sorts the causes of an Invalid error and changes its message accordingly. It returns the error, and all others
// as they are. Kubernetes finds the errors in a map in a random order, so causes in the same map are sorted among
// themselves. All others stay where they are.
func Order(err error) error {
	var of *apierrors.StatusError
	if !errors.As(err, &of) || !apierrors.IsInvalid(err) || of.ErrStatus.Details == nil || len(of.ErrStatus.Details.Causes) < 2 {
		return err
	}
	d := of.ErrStatus.Details
	begin := fmt.Sprintf("%s %q is invalid: ", schema.GroupKind{Group: d.Group, Kind: d.Kind}, d.Name)
	if !strings.HasPrefix(of.ErrStatus.Message, begin) {
		return err
	}
	places := map[place][]int{} // of the causes of each map
	for i, c := range d.Causes {
		if in := mapOf(c.Field); in != "" {
			at := place{in, c.Type}
			if element.MatchString(c.Field) {
				at.of = "" // the errors of one element may have several types
			}
			places[at] = append(places[at], i)
		}
	}
	sorted := slices.Clone(d.Causes)
	for _, of := range places {
		sortAt(sorted, of)
	}
	d.Causes = sorted
	of.ErrStatus.Message = begin + textOf(sorted)
	return err
}

// place is a map with errors. Errors of the field itself are no errors of its elements, and have another type: a
// missing selector comes before one that must not change.
type place struct {
	in string
	of metav1.CauseType
}

// sortAt sorts the causes at some places. Those of one element keep their order, which is not random.
func sortAt(causes []metav1.StatusCause, places []int) {
	some := make([]metav1.StatusCause, len(places))
	for i, place := range places {
		some[i] = causes[place]
	}
	slices.SortStableFunc(some, func(a, b metav1.StatusCause) int {
		if a.Field == b.Field && !element.MatchString(a.Field) {
			return cmp.Compare(a.Message, b.Message) // which names the element
		}
		return cmp.Compare(elementOf(a.Field), elementOf(b.Field))
	})
	for i, place := range places {
		causes[place] = some[i]
	}
}

// element matches the key of an element of a map in a path. Indexes of lists are numbers.
var element = regexp.MustCompile(`\[[^\]]*[^\]0-9][^\]]*\]`)

// mapOf returns the path of the map that has a field, or an empty string. The errors of labels and similar maps have
// the path of the map itself.
func mapOf(field string) string {
	if at := element.FindStringIndex(field); at != nil {
		return field[:at[0]]
	}
	name := field[strings.LastIndexByte(field, '.')+1:]
	if slices.Contains([]string{"labels", "annotations", "matchLabels", "nodeSelector", "selector"}, name) {
		return field
	}
	return ""
}

// elementOf returns the path of the innermost element of a map that has a field.
func elementOf(field string) string {
	if all := element.FindAllStringIndex(field, -1); len(all) > 0 {
		return field[:all[len(all)-1][1]]
	}
	return field
}

// textOf returns the text of an error with some causes, as Kubernetes writes it: each cause once.
func textOf(causes []metav1.StatusCause) string {
	var texts []string
	for _, c := range causes {
		if text := c.Field + ": " + c.Message; !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
