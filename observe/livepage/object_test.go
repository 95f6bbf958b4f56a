package livepage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/observe/livepage"
)

// object is the part of an object's state that the tests read.
type object struct {
	Error          string
	Cached, Pinned bool
	Began          int64
	Versions       []struct {
		Sequence                 int
		Type, Version            string
		Received, Popped, Stored int64
		Omitted                  string
		Object                   map[string]any
	}
	Deliveries []struct {
		Handler, Type, Version string
		Began, Took            int64
	}
	Reconciles []struct {
		Controller, Key, Err string
		Outcome              controller.Outcome
		Next, Started        time.Time
	}
	Working []struct{ Controller string }
}

func ask(t *testing.T, p *livepage.Page, method, path, informer, key string) (code int, o object) {
	t.Helper()
	w := send(p, true, method, path+"?"+url.Values{"informer": {informer}, "key": {key}}.Encode())
	if w.Body.Len() > 0 {
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &o), w.Body)
	}
	return w.Code, o
}

func see(t *testing.T, p *livepage.Page, informer, key string) object {
	t.Helper()
	code, o := ask(t, p, http.MethodGet, "/object", informer, key)
	require.Equal(t, 200, code, o.Error)
	return o
}

func (w world) set(t *testing.T, name, value string) {
	t.Helper()
	w.Edit(configMaps, api.Key{Namespace: "default", Name: name}, func(u *unstructured.Unstructured) {
		u.Object["data"] = map[string]any{"a": value}
	})
}

func TestOneObject(t *testing.T) {
	inWorld(t, func(t *testing.T, p *livepage.Page, w world) {
		maps := w.informer(informer.Options[*configMap]{})
		fail := false
		c := controller.New("grinder", controller.Func[api.Key](func(context.Context, api.Key) (controller.Result, error) {
			if fail {
				return controller.Result{}, errors.New("no grain")
			}
			return controller.Result{}, nil
		}), controller.Options{})
		c.Watch(controller.For(maps))
		other := controller.New("other", controller.Func[api.Key](func(context.Context, api.Key) (controller.Result, error) {
			return controller.Result{}, nil
		}), controller.Options{})
		w.create("one")
		w.create("two")
		register(t, p, "", maps)
		register(t, p, "", c)
		register(t, p, "", other)
		for _, run := range []func(context.Context) error{maps.Run, c.Run, other.Run} {
			fixture.Start(t, run)
		}
		synctest.Wait()

		o := see(t, p, "configmaps", "default/one")
		require.True(t, o.Cached)
		require.Equal(t, "Cached", o.Versions[0].Type)
		require.Len(t, o.Reconciles, 1, "what the controller remembers")
		require.Equal(t, controller.Succeeded, o.Reconciles[0].Outcome)

		fail = true
		<-time.After(time.Second)
		w.set(t, "one", "c")
		w.set(t, "two", "d")
		synctest.Wait()
		o = see(t, p, "configmaps", "default/one")
		require.Len(t, o.Versions, 2)
		now := o.Versions[1]
		require.Equal(t, "Updated", now.Type)
		require.Equal(t, map[string]any{"a": "c"}, now.Object["data"])
		require.Equal(t, time.Now().UnixMicro(), now.Received)
		require.Equal(t, []int64{now.Received, now.Received}, []int64{now.Popped, now.Stored})
		require.Len(t, o.Deliveries, 1, "the controller's handler")
		require.Equal(t, "grinder: configmaps", o.Deliveries[0].Handler)
		require.Equal(t, []string{"Updated", now.Version}, []string{o.Deliveries[0].Type, o.Deliveries[0].Version})
		require.Equal(t, "no grain", o.Reconciles[1].Err)
		require.Equal(t, o.Reconciles[1].Started.Add(5*time.Millisecond), o.Reconciles[1].Next, "the first retry")
		for _, r := range o.Reconciles {
			require.Equal(t, "default/one", r.Key)
			require.Equal(t, "grinder", r.Controller)
		}
		w.Delete(configMaps, api.Key{Namespace: "default", Name: "one"})
		synctest.Wait()
		o = see(t, p, "configmaps", "default/one")
		require.False(t, o.Cached)
		require.Equal(t, "Deleted", o.Versions[2].Type)
		var late object
		require.NoError(t, json.Unmarshal(send(p, true, http.MethodGet, "/object?informer=configmaps&key=default/one&after=2").Body.Bytes(), &late))
		require.Len(t, late.Versions, 1, "those after a sequence number")
	})
}

// TestJourney changes an object whose handler takes a second. Another change waits in the DeltaFIFO meanwhile.
func TestJourney(t *testing.T) {
	inWorld(t, func(t *testing.T, p *livepage.Page, w world) {
		busy := false
		maps := w.informer(informer.Options[*configMap]{})
		maps.Trace(informer.Trace{MayBlock: true, Batch: func(informer.TracedBatch) {
			if busy {
				<-time.After(time.Minute)
			}
		}})
		_, err := maps.Subscribe(func(api.Change[*configMap]) { <-time.After(time.Second) }, informer.HandlerOptions{Name: "slow"})
		require.NoError(t, err)
		register(t, p, "", maps)
		w.create("one")
		fixture.Start(t, maps.Run)
		<-time.After(time.Minute)
		require.Contains(t, send(p, true, http.MethodGet, "/object?informer=configmaps&key=default/one").Body.String(),
			`"reconciles":[],"deliveries":[],"working":[]`)
		require.Equal(t, 204, send(p, true, http.MethodPost, "/pin?informer=configmaps&key=default/one").Code)
		busy = true
		began := time.Now().UnixMicro()
		w.create("two")
		synctest.Wait()
		w.set(t, "one", "c")
		<-time.After(3 * time.Minute)
		o := see(t, p, "configmaps", "default/one")
		now := o.Versions[1]
		minute := time.Minute.Microseconds()
		require.Equal(t, []int64{began, began + minute, began + minute}, []int64{now.Received, now.Popped, now.Stored})
		require.Len(t, o.Deliveries, 1)
		d := o.Deliveries[0]
		require.Equal(t, []any{"slow", "Updated", now.Version, began + minute, int64(1e6)}, []any{d.Handler, d.Type, d.Version, d.Began, d.Took})
	})
}

// TestUnknownObjects has requests for what does not exist. Each answer says so.
func TestUnknownObjects(t *testing.T) {
	inWorld(t, func(t *testing.T, p *livepage.Page, w world) {
		maps := w.informer(informer.Options[*configMap]{})
		register(t, p, "", maps)
		register(t, p, "", &observed{})
		fixture.Start(t, maps.Run)
		synctest.Wait()
		for key, wanted := range map[[2]string]string{
			{"configmaps", "default/none"}: "does not hold this object",
			{"pods", "default/none"}:       "no informer of this name",
			{"configmaps", "a/b/c"}:        "livepage: key: ",
			{"things", "a"}:                "does not show objects",
		} {
			code, o := ask(t, p, http.MethodGet, "/object", key[0], key[1])
			require.Equal(t, 404, code)
			require.Contains(t, o.Error, wanted)
			code, _ = ask(t, p, http.MethodPost, "/pin", key[0], key[1])
			require.Equal(t, 404, code)
		}
		for _, c := range [][2]string{{"GET", "/keys"}, {"GET", "/object"}, {"POST", "/pin"}, {"DELETE", "/pin"}} {
			w := send(p, false, c[0], c[1]+"?informer=configmaps&key=default/none")
			require.Equal(t, 403, w.Code)
			require.Contains(t, w.Body.String(), "shows no keys and no objects")
		}
	})
}

func TestSearch(t *testing.T) {
	inWorld(t, func(t *testing.T, p *livepage.Page, w world) {
		maps := w.informer(informer.Options[*configMap]{})
		register(t, p, "", maps)
		fixture.Start(t, maps.Run)
		for n := range 60 {
			w.create(fmt.Sprint("map-", n))
		}
		synctest.Wait()
		found := func(text string) (all []struct{ Informer, Key string }) {
			require.NoError(t, json.Unmarshal(send(p, true, http.MethodGet, "/keys?q="+text).Body.Bytes(), &all))
			return all
		}
		require.Len(t, found(""), 50)
		require.True(t, slices.IsSortedFunc(found(""), func(a, b struct{ Informer, Key string }) int { return strings.Compare(a.Key, b.Key) }))
		require.Len(t, found("MAP-59"), 1)
		require.Equal(t, "default/map-59", found("map-59")[0].Key)
		require.Len(t, found("map-1"), 11)
		require.Empty(t, found("nothing"))
	})
}

// TestObjectsAreForgotten looks at an object, pins another, and waits.
func TestObjectsAreForgotten(t *testing.T) {
	inWorld(t, func(t *testing.T, p *livepage.Page, w world) {
		maps := w.informer(informer.Options[*configMap]{})
		register(t, p, "", maps)
		fixture.Start(t, maps.Run)
		w.create("seen")
		w.create("pinned")
		synctest.Wait()
		see(t, p, "configmaps", "default/seen")
		see(t, p, "configmaps", "default/pinned")
		code, _ := ask(t, p, http.MethodPost, "/pin", "configmaps", "default/pinned")
		require.Equal(t, 204, code)
		<-time.After(time.Minute)
		w.set(t, "seen", "x")
		w.set(t, "pinned", "x")
		synctest.Wait()
		require.Len(t, see(t, p, "configmaps", "default/seen").Versions, 1)
		o := see(t, p, "configmaps", "default/pinned")
		require.Len(t, o.Versions, 2)
		require.True(t, o.Pinned)
		code, _ = ask(t, p, http.MethodDelete, "/pin", "configmaps", "default/pinned")
		require.Equal(t, 204, code)
		<-time.After(time.Minute)
		require.Len(t, see(t, p, "configmaps", "default/pinned").Versions, 1)
	})
}

// TestObjectsAreBounded looks at too many objects, pins too many, and changes one too often.
func TestObjectsAreBounded(t *testing.T) {
	inWorld(t, func(t *testing.T, p *livepage.Page, w world) {
		maps := w.informer(informer.Options[*configMap]{})
		c := controller.New("grinder", controller.Func[api.Key](func(context.Context, api.Key) (controller.Result, error) {
			return controller.Result{}, nil
		}), controller.Options{})
		c.Watch(controller.For(maps))
		register(t, p, "", maps)
		register(t, p, "", c)
		fixture.Start(t, maps.Run)
		fixture.Start(t, c.Run)
		name := func(n int) string { return fmt.Sprintf("map-%d", n) }
		for n := range 20 {
			w.create(name(n))
		}
		synctest.Wait()
		for n := range 20 {
			see(t, p, "configmaps", "default/"+name(n))
			<-time.After(time.Millisecond)
		}
		w.set(t, name(0), "x")
		synctest.Wait()
		require.Len(t, see(t, p, "configmaps", "default/"+name(0)).Versions, 1, "it was dropped for a newer one")
		for n := range 9 {
			see(t, p, "configmaps", "default/"+name(n))
			code, o := ask(t, p, http.MethodPost, "/pin", "configmaps", "default/"+name(n))
			require.Equal(t, map[bool]int{true: 204, false: 409}[n < 8], code, o.Error)
			if n == 8 {
				require.Contains(t, o.Error, "8 objects are pinned already; release one: configmaps default/map-0, configmaps default/map-1, ")
			}
		}
		for n := range 100 {
			w.set(t, name(1), fmt.Sprint(n))
			synctest.Wait()
		}
		o := see(t, p, "configmaps", "default/"+name(1))
		require.Len(t, o.Versions, 32)
		require.Len(t, o.Reconciles, 64)
		require.Len(t, o.Deliveries, 100)
		for n := range 50 {
			w.set(t, name(1), fmt.Sprint(n))
			synctest.Wait()
		}
		require.Len(t, see(t, p, "configmaps", "default/"+name(1)).Deliveries, 128)
		for n := range 4 {
			w.set(t, name(1), strings.Repeat(fmt.Sprint(n), 100<<10))
			synctest.Wait()
		}
		require.Len(t, see(t, p, "configmaps", "default/"+name(1)).Versions, 2, "at most 256 KiB")
		w.set(t, name(1), strings.Repeat("y", 300<<10))
		synctest.Wait()
		o = see(t, p, "configmaps", "default/"+name(1))
		last := o.Versions[len(o.Versions)-1]
		require.Nil(t, last.Object)
		require.Contains(t, last.Omitted, "the page keeps at most 262144")
	})
}

// TestMemoryBeginsAgain looks, pauses until the page has forgotten the object, and asks with the old sequence number.
func TestMemoryBeginsAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, p *livepage.Page, w world) {
		maps := w.informer(informer.Options[*configMap]{})
		register(t, p, "", maps)
		fixture.Start(t, maps.Run)
		w.create("one")
		synctest.Wait()
		ask := func(after int, began string) (o object) {
			path := fmt.Sprintf("/object?informer=configmaps&key=default/one&after=%d%s", after, began)
			require.NoError(t, json.Unmarshal(send(p, true, http.MethodGet, path).Body.Bytes(), &o))
			return o
		}
		first := ask(0, "")
		began := fmt.Sprintf("&began=%d", first.Began)
		for n := range 3 {
			w.set(t, "one", fmt.Sprint(n))
			synctest.Wait()
		}
		require.Len(t, ask(1, began).Versions, 3)
		require.Empty(t, ask(4, began).Versions)
		<-time.After(time.Minute)
		w.set(t, "one", "unseen")
		synctest.Wait()
		again := ask(4, "")
		require.Len(t, again.Versions, 1, "a sequence number beyond the last one")
		require.NotEqual(t, first.Began, again.Began)
		w.set(t, "one", "seen")
		synctest.Wait()
		require.Len(t, ask(1, began).Versions, 2, "a number of the old memory")
	})
}

// TestPinFollows pins an object that the page does not follow yet.
func TestPinFollows(t *testing.T) {
	inWorld(t, func(t *testing.T, p *livepage.Page, w world) {
		maps := w.informer(informer.Options[*configMap]{})
		register(t, p, "", maps)
		fixture.Start(t, maps.Run)
		w.create("one")
		synctest.Wait()
		code, o := ask(t, p, http.MethodDelete, "/pin", "configmaps", "default/one")
		require.Equal(t, 404, code, o.Error)
		code, o = ask(t, p, http.MethodPost, "/pin", "configmaps", "default/one")
		require.Equal(t, 204, code, o.Error)
		<-time.After(time.Minute)
		w.set(t, "one", "x")
		synctest.Wait()
		o = see(t, p, "configmaps", "default/one")
		require.Len(t, o.Versions, 2)
		require.Equal(t, "Updated", o.Versions[1].Type)
	})
}

// TestPinOfAnInformerThatIsGone releases a pin after its informer was removed, so that the page has no hook any more.
func TestPinOfAnInformerThatIsGone(t *testing.T) {
	inWorld(t, func(t *testing.T, p *livepage.Page, w world) {
		maps := w.informer(informer.Options[*configMap]{})
		remove := register(t, p, "", maps)
		fixture.Start(t, maps.Run)
		w.create("one")
		synctest.Wait()
		code, o := ask(t, p, http.MethodPost, "/pin", "configmaps", "default/one")
		require.Equal(t, 204, code, o.Error)
		remove()
		code, o = ask(t, p, http.MethodGet, "/object", "configmaps", "default/one")
		require.Equal(t, 404, code, o.Error)
		code, o = ask(t, p, http.MethodDelete, "/pin", "configmaps", "default/one")
		require.Equal(t, 204, code, o.Error)
		<-time.After(time.Minute)
		code, o = ask(t, p, http.MethodDelete, "/pin", "configmaps", "default/one")
		require.Equal(t, 404, code, o.Error)
	})
}

// TestSecretsAreHidden shows a Secret, with annotations that have its values.
func TestSecretsAreHidden(t *testing.T) {
	inWorld(t, func(t *testing.T, p *livepage.Page, w world) {
		secrets := api.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}
		lw := apiclient.NewTyped[*unstructured.Unstructured](w.Client, secrets, "")
		i := informer.New[*unstructured.Unstructured](lw, informer.Options[*unstructured.Unstructured]{})
		register(t, p, "", i)
		fixture.Start(t, i.Run)
		secret := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"password": "Z3Jpc3Q="}, "type": "Opaque",
			"metadata": map[string]any{"namespace": "default", "name": "mill", "annotations": map[string]any{
				"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"password":"Z3Jpc3Q="}}`,
				"example.com/manifest":                             `{"stringData":{"password":"grist"}}`,
			}},
		}}
		w.Create(secrets, secret)
		synctest.Wait()
		body := func() string {
			return send(p, true, http.MethodGet, "/object?informer=secrets&key=default/mill").Body.String()
		}
		require.Contains(t, body(), `"password":"hidden: 8 bytes, `)
		w.Edit(secrets, api.Key{Namespace: "default", Name: "mill"}, func(u *unstructured.Unstructured) {
			u.Object["data"] = map[string]any{"password": "Zmxvd2Vy"}
		})
		synctest.Wait()
		o := see(t, p, "secrets", "default/mill")
		require.NotEqual(t, o.Versions[0].Object["data"], o.Versions[1].Object["data"], "a change can be seen")
		for _, value := range []string{"Z3Jpc3Q", "Zmxvd2Vy", "grist", "flower"} {
			require.NotContains(t, body(), value)
		}
	})
}
