package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// Table is the kind that a client requests if the server should lay out the lines to print.
const Table = "Table"

// tableColumns are the columns of resources without columns of their own: those that all tables of kube-apiserver have.
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
	return "", apierrors.NewBadRequest(fmt.Sprintf(
		"Unable to convert to Table as requested: includeObject: Invalid value: %q: must be 'Metadata', 'Object', 'None', or empty", text))
}

// appendTableKind appends the beginning of a table up to its metadata.
func (s Shape) appendTableKind(dst []byte) []byte {
	return append(append(append(dst, `{"kind":"Table","apiVersion":"meta.k8s.io/`...), s.Version...), `","metadata":`...)
}

// appendTable appends a table with one row.
func (s Shape) appendTable(dst []byte, r *store.Record) []byte {
	dst = append(s.appendTableKind(dst), `{"resourceVersion":"`...)
	dst = append(append(dst, r.ResourceVersion()...), `"},`...)
	dst = append(s.appendColumns(dst), `,"rows":[`...)
	return append(s.appendRow(dst, r), "]}"...)
}

// appendColumns appends the definitions of the columns.
func (s Shape) appendColumns(dst []byte) []byte {
	if s.NoColumns {
		return append(dst, `"columnDefinitions":null`...)
	}
	if s.def.Columns == nil {
		return append(dst, tableColumns...)
	}
	encoded, _ := json.Marshal(s.def.Columns.Definitions(s.resource.Version)) // only strings and numbers
	return append(append(dst, `"columnDefinitions":`...), encoded...)
}

// table returns the JSON before and after the rows of a list.
func (s Shape) table(meta metav1.ListMeta) (head, tail []byte, err error) {
	encoded, err := json.Marshal(meta)
	head = append(s.appendTableKind(nil), encoded...)
	if _, ok := s.def.Columns.(registry.Sparse); ok && s.Empty {
		return append(s.appendColumns(append(head, ',')), `,"rows":null`...), []byte("}\n"), err
	}
	head = append(s.appendColumns(append(head, ',')), `,"rows":[`...)
	return head, []byte("]}\n"), err
}

// Sort orders what a table has in another order than a list.
func (s Shape) Sort(items []*store.Record) {
	if sorted, ok := s.def.Columns.(registry.Sorted); ok && s.As == Table {
		slices.SortStableFunc(items, func(a, b *store.Record) int { return sorted.Compare(a.Tree(), b.Tree()) })
	}
}

// appendRow appends the row of one object.
func (s Shape) appendRow(dst []byte, r *store.Record) []byte {
	for i, row := range s.rows(r) {
		if i > 0 {
			dst = append(dst, ',')
		}
		cells, _ := json.Marshal(row.Cells) // encoding strings and numbers cannot fail
		dst = append(append(dst, `{"cells":`...), cells...)
		if len(row.Conditions) > 0 {
			conditions, _ := json.Marshal(row.Conditions) // only strings
			dst = append(append(dst, `,"conditions":`...), conditions...)
		}
		dst = append(s.appendRowObject(append(dst, `,"object":`...), r), '}')
	}
	return dst
}

// appendRowObject appends the part of an object that the client wants in its row.
func (s Shape) appendRowObject(dst []byte, r *store.Record) []byte {
	switch s.Include {
	case metav1.IncludeNone:
		return append(dst, "null"...)
	case metav1.IncludeObject:
		s.As = ""
	default:
		s.As = partialObject
	}
	return s.AppendObject(dst, r)
}

// rows returns the rows of an object. One that cannot be printed has its name and its age.
func (s Shape) rows(r *store.Record) []metav1.TableRow {
	if rows := s.printed(s.Tree(r)); rows != nil {
		return rows
	}
	return []metav1.TableRow{{Cells: []any{r.Key.Name, age(r)}}}
}

// printed returns the rows that the resource itself prints, or nil.
func (s Shape) printed(tree object.Tree) []metav1.TableRow {
	if s.def.Columns == nil {
		return nil
	}
	rows, err := s.def.Columns.Rows(s.resource.Version, tree)
	if err != nil {
		return nil
	}
	return rows
}

// treeTable returns a table with one object that is not stored.
func (m Media) treeTable(c registry.Columns, tree object.Tree) (object.Tree, error) {
	gv, err := schema.ParseGroupVersion(object.StringAt(tree, "apiVersion"))
	if err != nil {
		return nil, err
	}
	rows, err := c.Rows(gv.Version, tree)
	if err != nil {
		return nil, err
	}
	meta := object.Metadata(tree)
	var list []any
	for _, row := range rows {
		shown := object.Tree{"kind": partialObject, "apiVersion": m.metaVersion(), "metadata": meta}
		if m.Include == metav1.IncludeObject {
			shown = tree
		}
		entry := object.Tree{"cells": row.Cells, "object": shown}
		if m.Include == metav1.IncludeNone {
			entry["object"] = nil
		}
		list = append(list, entry)
	}
	return object.Tree{
		"kind": Table, "apiVersion": m.metaVersion(), "metadata": object.Tree{"resourceVersion": meta["resourceVersion"]},
		"columnDefinitions": c.Definitions(gv.Version), "rows": list,
	}, nil
}

// appendBookmarkTable appends the table of a bookmark: a row for an object that has only the given metadata.
func (s Shape) appendBookmarkTable(dst []byte, version uint64, metadata string) []byte {
	rows := s.printed(object.Tree{"metadata": object.Tree{}})
	if rows == nil {
		rows = []metav1.TableRow{{Cells: []any{"", unknownAge}}}
	}
	cells, _ := json.Marshal(rows[0].Cells) // as in appendRow
	dst = append(s.appendTableKind(dst), `{"resourceVersion":"`...)
	dst = append(strconv.AppendUint(dst, version, 10), `"},`...)
	dst = append(append(s.appendColumns(dst), `,"rows":[{"cells":`...), cells...)
	return append(append(s.appendPartial(append(dst, `,"object":`...)), metadata...), "}}]}"...)
}

const unknownAge = "<unknown>"

// age returns the time since an object was created, for people.
func age(r *store.Record) string {
	created, err := time.Parse(time.RFC3339, object.StringAt(object.Metadata(r.Tree()), "creationTimestamp"))
	if err != nil {
		return unknownAge
	}
	return duration.HumanDuration(time.Since(created))
}
