package wire

import (
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/store"
)

// Table is the kind that a client requests if the server should lay out the lines to print.
const Table = "Table"

// tableColumns are the columns of every resource: those that all tables of kube-apiserver have. The other columns of
// kube-apiserver are written by hand for each built-in type.
const tableColumns = `"columnDefinitions":[` +
	`{"name":"Name","type":"string","format":"name","description":"The name of the object, unique within its resource and namespace.","priority":0},` +
	`{"name":"Age","type":"string","format":"","description":"The time since the object was created.","priority":0}]`

// IncludePolicy parses how much of its object a row of a table contains.
func IncludePolicy(text string) (metav1.IncludeObjectPolicy, error) {
	switch policy := metav1.IncludeObjectPolicy(text); policy {
	case "":
		return metav1.IncludeMetadata, nil
	case metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject:
		return policy, nil
	}
	return "", apierrors.NewBadRequest(fmt.Sprintf("unrecognized includeObject value: %q", text))
}

// appendTable appends a table with one row.
func (s Shape) appendTable(dst []byte, r *store.Record) []byte {
	dst = append(dst, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"`...)
	dst = append(append(dst, r.ResourceVersion()...), `"},`...)
	dst = append(append(dst, tableColumns...), `,"rows":[`...)
	return append(s.appendRow(dst, r), "]}"...)
}

// table returns the JSON before and after the rows of a list.
func table(meta metav1.ListMeta) (head, tail []byte, err error) {
	encoded, err := json.Marshal(meta)
	head = append([]byte(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":`), encoded...)
	head = append(append(append(head, ','), tableColumns...), `,"rows":[`...)
	return head, []byte("]}\n"), err
}

// appendRow appends the row of one object.
func (s Shape) appendRow(dst []byte, r *store.Record) []byte {
	cells, _ := json.Marshal([]string{r.Key.Name, age(r)}) // encoding strings cannot fail
	dst = append(append(dst, `{"cells":`...), cells...)
	dst = append(dst, `,"object":`...)
	row := s
	switch s.Include {
	case metav1.IncludeNone:
		return append(dst, "null}"...)
	case metav1.IncludeObject:
		row.As = ""
	default:
		row.As = "PartialObjectMetadata"
	}
	return append(row.AppendObject(dst, r), '}')
}

// age returns the time since an object was created, for people.
func age(r *store.Record) string {
	created, err := time.Parse(time.RFC3339, object.StringAt(object.Metadata(r.Tree()), "creationTimestamp"))
	if err != nil {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(created))
}
