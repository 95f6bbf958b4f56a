package columns

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	"k8s.io/kube-aggregator/pkg/registry/apiservice/etcd"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	"k8s.io/kubernetes/pkg/printers"
	"k8s.io/kubernetes/pkg/printers/internalversion"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// generator has the printers of all kinds.
var generator = printers.NewTableGenerator().With(internalversion.AddHandlers)

// all asks for the columns of kubectl get -o wide too. Clients select by the priorities of columns.
var all = printers.GenerateOptions{Wide: true}

// table implements registry.Columns for a kind with a printer.
type table struct {
	definition  *registry.Definition
	internal    schema.GroupVersion
	print       func(runtime.Object) (*metav1.Table, error)
	definitions []metav1.TableColumnDefinition
}

// For returns the columns of a built-in resource. Its types must be in the scheme of Kubernetes.
func For(d *registry.Definition) registry.Columns {
	t := newTable(d)
	if d.Group == apiregistration.GroupName {
		t.print = printService
	}
	columns := t.ready(d.Kind + "List")
	if d.Kind == "FlowSchema" {
		return byPrecedence{columns}
	}
	return columns
}

// byPrecedence has FlowSchemas in the order in which they match requests.
type byPrecedence struct{ registry.Columns }

// Compare implements registry.Sorted.
func (byPrecedence) Compare(a, b object.Tree) int {
	first, _ := object.IntAt(object.MapAt(a, "spec"), "matchingPrecedence")
	second, _ := object.IntAt(object.MapAt(b, "spec"), "matchingPrecedence")
	return cmp.Or(cmp.Compare(first, second), strings.Compare(object.StringAt(object.Metadata(a), "name"), object.StringAt(object.Metadata(b), "name")))
}

// scaleDefinition has the kind of the subresource scale.
var scaleDefinition = &registry.Definition{Settings: registry.Settings{
	Resource: api.Resource{Group: autoscaling.GroupName, Version: "v1", Kind: "Scale"},
}}

// Scale returns the columns of the subresource scale.
func Scale() registry.Columns {
	return newTable(scaleDefinition).ready("Scale")
}

func newTable(d *registry.Definition) *table {
	return &table{
		definition: d, internal: schema.GroupVersion{Group: d.Group, Version: runtime.APIVersionInternal},
		print: func(obj runtime.Object) (*metav1.Table, error) { return generator.GenerateTable(obj, all) },
	}
}

// printService prints APIServices, whose storage has the printer.
func printService(obj runtime.Object) (*metav1.Table, error) {
	return (&etcd.REST{}).ConvertToTable(context.Background(), obj, nil)
}

// ready prints an empty object of a kind, and takes its columns.
func (t *table) ready(kind string) registry.Columns {
	sample, err := legacyscheme.Scheme.New(t.internal.WithKind(kind))
	if err != nil {
		return created{}
	}
	printed, err := t.print(sample)
	if err != nil {
		return created{}
	}
	t.definitions = printed.ColumnDefinitions
	return t
}

// Definitions implements registry.Columns.
func (t *table) Definitions(string) []metav1.TableColumnDefinition { return t.definitions }

// Rows implements registry.Columns.
func (t *table) Rows(served string, tree object.Tree) ([]metav1.TableRow, error) {
	versioned, err := legacyscheme.Scheme.New(t.definition.In(served).GroupVersionKind())
	if err != nil {
		return nil, fmt.Errorf("testserver: print %s: %w", t.definition.Kind, err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, versioned); err != nil {
		return nil, fmt.Errorf("testserver: print %s: %w", t.definition.Kind, err)
	}
	obj, err := legacyscheme.Scheme.UnsafeConvertToVersion(versioned, t.internal)
	if err != nil {
		return nil, fmt.Errorf("testserver: print %s: %w", t.definition.Kind, err)
	}
	printed, err := t.print(obj)
	if err != nil {
		return nil, fmt.Errorf("testserver: print %s: %w", t.definition.Kind, err)
	}
	for i := range printed.Rows {
		printed.Rows[i].Object = runtime.RawExtension{} // the caller adds it
	}
	return printed.Rows, nil
}

// created are the columns of kinds without a printer: the name and the time of creation.
type created struct{}

// Sparse implements registry.Sparse.
func (created) Sparse() {}

// Definitions implements registry.Columns.
func (created) Definitions(string) []metav1.TableColumnDefinition {
	docs := metav1.ObjectMeta{}.SwaggerDoc()
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: docs["name"]},
		{Name: "Created At", Type: "date", Description: docs["creationTimestamp"]},
	}
}

// Rows implements registry.Columns.
func (created) Rows(_ string, tree object.Tree) ([]metav1.TableRow, error) {
	meta := object.Metadata(tree)
	at, err := time.Parse(time.RFC3339, object.StringAt(meta, "creationTimestamp"))
	if err != nil {
		return nil, fmt.Errorf("testserver: print a time of creation: %w", err)
	}
	return []metav1.TableRow{{Cells: []any{object.StringAt(meta, "name"), at.UTC().Format(time.RFC3339)}}}, nil
}
