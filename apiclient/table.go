package apiclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion/queryparams"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// ErrNoTable is wrapped in the error if the server makes no tables: it refused the request or answered with objects.
var ErrNoTable = errors.New("apiclient: the server makes no tables of this resource")

const acceptTable = codec.MediaTypeJSON + ";as=Table;g=" + metav1.GroupName + ";v=v1"

var tableKind = api.Resource{Group: metav1.GroupName, Version: "v1", Kind: "Table", Plural: "tables"}

// Tables reads objects of one resource as tables for people. The server chooses the columns; each object has one row.
// Make one with TablesOf. It is safe for concurrent use. kubectl get sends the same requests; client-go has no typed
// client for them.
type Tables struct {
	endpoint
	codec *codec.Codec[*metav1.Table]
}

// TablesOf returns a client that reads objects of a resource as tables, in one namespace or, with "", in all. It panics
// if c is nil or if r lacks its version or plural name.
func TablesOf(c *Client, r api.Resource, namespace string) *Tables {
	e := newEndpoint(c, r, namespace)
	return &Tables{endpoint: e, codec: codecOf[*metav1.Table](c, r)}
}

// List sends one request and returns one table. It holds the whole table in memory, so use a Limit. The table's
// metadata have the token of the next page. include decides what Object of each row contains as JSON: the object's
// metadata (also for ""), the whole object, or nothing.
//
// If the server makes no tables, the error wraps ErrNoTable. The other errors are those of PartialClient.List.
func (t *Tables) List(ctx context.Context, o metav1.ListOptions, include metav1.IncludeObjectPolicy) (*metav1.Table, error) {
	o.Watch, o.SendInitialEvents, o.AllowWatchBookmarks = false, nil, false
	r, err := t.collectionRequest("list", http.MethodGet, &o)
	if err != nil {
		return nil, err
	}
	return t.fetch(ctx, r, include)
}

// Get reads a table with one row.
func (t *Tables) Get(ctx context.Context, key api.Key, o metav1.GetOptions, include metav1.IncludeObjectPolicy) (*metav1.Table, error) {
	r, err := t.objectRequest("get", http.MethodGet, key, "", &o)
	if err != nil {
		return nil, err
	}
	return t.fetch(ctx, r, include)
}

func (t *Tables) fetch(ctx context.Context, r request, include metav1.IncludeObjectPolicy) (*metav1.Table, error) {
	more, err := queryparams.Convert(&metav1.TableOptions{IncludeObject: include})
	if err != nil {
		return nil, r.fail(err)
	}
	maps.Copy(r.Query, more)
	r.Accept = acceptTable
	table, err := fetch(ctx, t.client, t.codec, tableKind, r)
	if errors.Is(err, codec.ErrUnexpectedKind) || apierrors.IsNotAcceptable(err) {
		err = fmt.Errorf("%w (%w)", err, ErrNoTable)
	}
	return table, err
}
