package definitions

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	crdtable "k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/tableconvertor"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/leatproject/leat/testserver/internal/object"
)

// columns are the printer columns of a custom resource, by version. It implements registry.Columns.
type columns func(served string) (rest.TableConvertor, error)

// scaleColumns are those of the Scale of a custom resource.
var scaleColumns columns = func(string) (rest.TableConvertor, error) { return newScaleTable(), nil }

// Definitions implements registry.Columns.
func (c columns) Definitions(served string) []metav1.TableColumnDefinition {
	table, err := c.table(served, &unstructured.UnstructuredList{})
	if err != nil {
		return nil
	}
	return table.ColumnDefinitions
}

// Rows implements registry.Columns.
func (c columns) Rows(served string, tree object.Tree) ([]metav1.TableRow, error) {
	table, err := c.table(served, &unstructured.Unstructured{Object: tree})
	if err != nil {
		return nil, err
	}
	for i := range table.Rows {
		table.Rows[i].Object = runtime.RawExtension{}
	}
	return table.Rows, nil
}

func (c columns) table(served string, obj runtime.Object) (*metav1.Table, error) {
	converter, err := c(served)
	if err != nil {
		return nil, err
	}
	table, err := converter.ConvertToTable(context.Background(), obj, nil)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("definitions: make a row: %w", err))
	}
	return table, nil
}

// definitionColumns are the printer columns of CustomResourceDefinitions. It implements registry.Columns.
type definitionColumns struct{}

// Definitions implements registry.Columns.
func (definitionColumns) Definitions(string) []metav1.TableColumnDefinition {
	table, err := crdtable.New().ConvertToTable(context.Background(), &apiextensions.CustomResourceDefinitionList{}, nil)
	if err != nil {
		return nil
	}
	return table.ColumnDefinitions
}

// Rows implements registry.Columns.
func (definitionColumns) Rows(_ string, tree object.Tree) ([]metav1.TableRow, error) {
	crd, err := internal(tree)
	if err != nil {
		return nil, err
	}
	table, err := crdtable.New().ConvertToTable(context.Background(), crd, nil)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("definitions: make a row: %w", err))
	}
	for i := range table.Rows {
		table.Rows[i].Object = runtime.RawExtension{}
	}
	return table.Rows, nil
}
