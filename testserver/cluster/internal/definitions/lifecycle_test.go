package definitions_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster/internal/definitions"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// gears is a definition with two versions.
const gears = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.example.com, uid: d, creationTimestamp: "2026-01-02T03:04:05Z"}
spec:
  group: example.com
  scope: Cluster
  names: {plural: gears, kind: Gear}
  conversion: {strategy: None}
  versions:
  - name: v1beta1
    served: true
    storage: true
    deprecated: true
    schema: {openAPIV3Schema: {type: object, properties: {teeth: {type: integer, default: 8}, old: {type: string}}}}
  - name: v1
    served: true
    storage: false
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {teeth: {type: integer}, new: {type: string, default: x}}}}
`

// conditions returns the conditions of a definition as "type=status reason".
func conditions(crd object.Tree) []string {
	var out []string
	for _, c := range object.SliceAt(object.MapAt(crd, "status"), "conditions") {
		c := c.(object.Tree)
		out = append(out, c["type"].(string)+"="+c["status"].(string)+" "+c["reason"].(string))
	}
	return out
}

func TestSettleAcceptsNamesAndEstablishes(t *testing.T) {
	crd := submit(t, widgets)
	require.Empty(t, conditions(crd))
	crd = definitions.Settle(crd, nil, false)
	require.Equal(t, []string{"NamesAccepted=True NoConflicts", "Established=False Installing"}, conditions(crd))
	crd = definitions.Settle(crd, nil, false)
	require.Equal(t, []string{"NamesAccepted=True NoConflicts", "Established=True InitialNamesAccepted"}, conditions(crd))
	require.Nil(t, definitions.Settle(crd, nil, false))
}

func TestSettleRefusesNamesOfOthers(t *testing.T) {
	other := object.Tree{"status": object.Tree{"acceptedNames": object.Tree{"kind": "Gear", "plural": "wd", "shortNames": []any{"x"}}}}
	crd := definitions.Settle(submit(t, gears), []object.Tree{other}, false)
	require.Equal(t, []string{"NamesAccepted=False KindConflict", "Established=False NotAccepted"}, conditions(crd))
	require.Nil(t, definitions.Settle(crd, []object.Tree{other}, false))
	_, err := newDefinitions(t).Definition(crd)
	require.ErrorContains(t, err, "not accepted")

	crd = definitions.Settle(crd, nil, false)
	require.Equal(t, []string{"NamesAccepted=True NoConflicts", "Established=False Installing"}, conditions(crd), "the name is free now")
}

func TestSettleDeletesObjectsFirst(t *testing.T) {
	crd := create(t, gears)
	object.Metadata(crd)["deletionTimestamp"] = "2026-01-02T03:04:05Z"
	crd = definitions.Settle(crd, nil, true)
	require.Contains(t, conditions(crd), "Terminating=True InstanceDeletionPending")
	require.Equal(t, []any{"customresourcecleanup.apiextensions.k8s.io"}, object.Metadata(crd)["finalizers"])
	crd = definitions.Settle(crd, nil, true)
	require.Contains(t, conditions(crd), "Terminating=True InstanceDeletionInProgress")
	require.Nil(t, definitions.Settle(crd, nil, true), "objects are left")
	crd = definitions.Settle(crd, nil, false)
	require.Contains(t, conditions(crd), "Terminating=False InstanceDeletionCompleted")
	require.Nil(t, object.Metadata(crd)["finalizers"])
}

func TestVersionsHaveTheirOwnSchemas(t *testing.T) {
	d := resource(t, gears)
	require.Equal(t, []string{"v1", "v1beta1"}, append([]string{d.Version}, d.Versions...))
	require.Equal(t, []string{"example.com/v1beta1 Gear is deprecated; use example.com/v1 Gear"}, d.PerVersion["v1beta1"].Warnings)
	require.False(t, d.PerVersion["v1beta1"].Status)
	require.True(t, d.PerVersion["v1"].Status)

	stored, _, _, err := written(d, "v1", `{"apiVersion":"example.com/v1","kind":"Gear","metadata":{"name":"a"},"old":"y"}`)
	require.NoError(t, err)
	require.Equal(t, "example.com/v1beta1", stored["apiVersion"])
	require.Nil(t, stored["new"], "the storage version does not have the field")
	read := must.Get(d.Schema.Convert("v1", stored))(t)
	require.Equal(t, "example.com/v1", read["apiVersion"])
	require.EqualValues(t, 8, read["teeth"], "a read sets the defaults of the storage version")
	require.Nil(t, read["new"])
}

func TestUpdateAllowsWhatWasInvalidBefore(t *testing.T) {
	d := resource(t, widgets)
	stored, _, _, err := written(d, "v1", widget(`{"size":3}`))
	require.NoError(t, err)
	spec := object.MapAt(stored, "spec")
	spec["note"] = "UPPER"
	object.Metadata(stored)["resourceVersion"] = "1"
	to := registry.Target{Served: "v1"}
	change := func(edit func(object.Tree)) error {
		tree, err := d.Schema.Convert("v1", stored)
		require.NoError(t, err)
		edit(object.MapAt(tree, "spec"))
		_, _, err = d.Schema.Update(registry.Operation{Target: to}, stored, tree)
		return err
	}
	require.NoError(t, change(func(s object.Tree) { s["size"] = int64(4) }), "the invalid field did not change")
	require.ErrorContains(t, change(func(s object.Tree) { s["note"] = "OTHER" }), "should match")
	require.ErrorContains(t, change(func(s object.Tree) { s["size"] = int64(2) }), "it may not shrink")
}

// converter is a webhook that renames a field between the versions of gears.
func converter(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var review map[string]any
	_ = json.Unmarshal(body, &review)
	request := review["request"].(map[string]any)
	objects := request["objects"].([]any)
	for _, o := range objects {
		o := o.(map[string]any)
		from, to := "old", "new"
		if strings.HasSuffix(request["desiredAPIVersion"].(string), "v1beta1") {
			from, to = to, from
		}
		o["apiVersion"], o[to] = request["desiredAPIVersion"], o[from]
		delete(o, from)
	}
	review["response"] = map[string]any{"uid": request["uid"], "convertedObjects": objects, "result": map[string]any{"status": "Success"}}
	delete(review, "request")
	_ = json.NewEncoder(w).Encode(review)
}

// pemOf returns the certificate of a server as a definition contains it.
func pemOf(server *httptest.Server) string {
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return base64.StdEncoding.EncodeToString(block)
}

func TestWebhookConverts(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(converter))
	defer server.Close()
	var asked string
	d := definitions.New(definitions.Options{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		asked = address
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}})
	defer d.Close()
	crd := create(t, gears)
	object.MapAt(crd, "spec")["conversion"] = object.Tree{"strategy": "Webhook", "webhook": object.Tree{
		"conversionReviewVersions": []any{"v1"},
		"clientConfig": object.Tree{
			"url":      "https://example.com/convert", // httptest's certificate has this name
			"caBundle": pemOf(server),
		},
	}}
	gear, err := d.Definition(crd)
	require.NoError(t, err)
	stored, _, _, err := written(gear, "v1", `{"apiVersion":"example.com/v1","kind":"Gear","metadata":{"name":"a"},"new":"y"}`)
	require.NoError(t, err)
	require.Equal(t, "y", stored["old"])
	require.Equal(t, "example.com:443", asked)
	read := must.Get(gear.Schema.Convert("v1", stored))(t)
	require.Equal(t, "y", read["new"])

	server.Close()
	_, err = gear.Schema.Convert("v1", stored)
	require.ErrorContains(t, err, "conversion webhook for example.com/v1beta1, Kind=Gear failed")
}

func TestRowsHaveThePrinterColumns(t *testing.T) {
	d := resource(t, widgets)
	stored, _, _, err := written(d, "v1", widget(`{"size":3}`))
	require.NoError(t, err)
	names := []string{}
	for _, c := range d.Columns.Definitions("v1") {
		names = append(names, c.Name)
	}
	require.Equal(t, []string{"Name", "Size"}, names)
	rows := must.Get(d.Columns.Rows("v1", stored))(t)
	require.Equal(t, []any{"a", int64(3)}, rows[0].Cells)
}

// FuzzDecode sends arbitrary bodies. Equal bodies give equal objects and errors.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(widget(`{"size":1,"tags":["x"],"template":{"metadata":{"labels":{}}}}`)))
	f.Add([]byte(widget(`null`)))
	f.Add([]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","managedFields":[{}]},"spec":{"size":1e400}}`))
	f.Add([]byte(`{"apiVersion":1,"kind":{}}`))
	d := resource(f, widgets)
	f.Fuzz(func(t *testing.T, body []byte) {
		once, problems, _, err := written(d, "v1", string(body))
		again, same, _, failed := written(d, "v1", string(body))
		require.Equal(t, once, again)
		require.Equal(t, problems, same)
		if err != nil {
			require.EqualError(t, failed, err.Error())
			return
		}
		must.Get(d.Schema.Convert("v1", once))(t)
	})
}

// FuzzDefinition sends arbitrary schemas. What is accepted can be served.
func FuzzDefinition(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"x":{"type":"integer","default":1}}}`))
	f.Add([]byte(`{"type":"object","x-kubernetes-validations":[{"rule":"self.x > 1"}]}`))
	f.Add([]byte(`{"type":"object","properties":{"x":{"type":"array","items":{"x-kubernetes-int-or-string":true},"default":[null]}}}`))
	all := newDefinitions(f)
	resource := all.Resource().Schema
	to := registry.Target{Served: "v1"}
	f.Fuzz(func(t *testing.T, schema []byte) {
		if !json.Valid(schema) {
			return
		}
		body := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
			"metadata":{"name":"a.example.com","uid":"u","creationTimestamp":"2026-01-02T03:04:05Z"},
			"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"a","kind":"A"},
				"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` + string(schema) + `}}]}}`
		crd, _, err := resource.Decode(to, "application/json", []byte(body))
		if err != nil {
			return
		}
		if crd, _, err = resource.Create(registry.Operation{Target: to}, crd); err != nil {
			return
		}
		for next := crd; next != nil; next = definitions.Settle(crd, nil, false) {
			crd = next
		}
		d := must.Get(all.Definition(crd))(t)
		_, _, _, _ = written(d, "v1", `{"apiVersion":"example.com/v1","kind":"A","metadata":{"name":"a"},"x":[{"y":1}]}`)
	})
}

func TestTheScaleHasItsOwnTable(t *testing.T) {
	d := resource(t, widgets)
	c := d.PerVersion["v1"].ScaleColumns
	var names []string
	for _, column := range c.Definitions("v1") {
		names = append(names, column.Name)
	}
	require.Equal(t, []string{"Name", "Desired", "Available", "Age"}, names)
}
