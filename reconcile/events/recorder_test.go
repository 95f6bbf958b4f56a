package events_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	zapobserver "go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/reconcile/events"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

var (
	pods          = fixture.Pods
	nodes         = api.Resource{Version: "v1", Kind: "Node", Plural: "nodes"}
	eventResource = api.Resource{Group: "events.k8s.io", Version: "v1", Kind: "Event", Plural: "events", Namespaced: true}
	coreEvents    = api.Resource{Version: "v1", Kind: "Event", Plural: "events", Namespaced: true}
	web           = &metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", ResourceVersion: "7"}
)

// rig is a running recorder and its server.
type rig struct {
	*events.Recorder
	server *testserver.Server
	stop   func()
}

// bubble runs a test on fake time.
func bubble(t *testing.T, o events.Options, test func(t *testing.T, r *rig)) {
	t.Helper()
	fixture.Run(t, testserver.Options{}, func(t *testing.T, f *fixture.Fixture) {
		o.Controller, o.Instance = "example.org/mill", "mill-0"
		rec := must.Get(events.New(f.Client, o))(t)
		test(t, &rig{Recorder: rec, server: f.Server, stop: f.Start(rec.Run)})
	})
}

// stored returns the Events on the server, oldest first.
func stored[T any](t *testing.T, r *rig, kind api.Resource, namespace string) []T {
	t.Helper()
	synctest.Wait()
	objects := must.Get(r.server.List(kind, namespace))(t)
	all := make([]T, len(objects))
	for i, o := range objects {
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &all[i]))
	}
	return all
}

func writes(r *rig) (created, patched int) {
	synctest.Wait()
	for _, q := range r.server.Requests() {
		switch q.Verb {
		case "create":
			created++
		case "patch":
			patched++
		}
	}
	return created, patched
}

func TestNewRequiresAController(t *testing.T) {
	client := must.Get(apiclient.New(apiclient.Config{Host: "http://h"}))(t)
	require.ErrorContains(t, must.Err(events.New(client, events.Options{})), "Controller is empty")
	require.ErrorContains(t, must.Err(events.New(client, events.Options{Controller: "c", Queue: -1})), "Queue is -1")
}

func TestEvent(t *testing.T) {
	bubble(t, events.Options{}, func(t *testing.T, r *rig) {
		began := time.Now()
		r.Event(events.Event{
			Resource: pods, Object: web, RelatedResource: nodes, Related: &metav1.ObjectMeta{Name: "n1", UID: "u2"},
			Type: events.Warning, Reason: "Evicted", Action: "Evict", Note: "the node is full",
		})
		r.Normal(nodes, &metav1.ObjectMeta{Name: "n1", UID: "u2"}, "Drained", "%d pods are gone", 3)
		all := stored[eventsv1.Event](t, r, eventResource, "shop")
		require.Len(t, all, 1)
		e := all[0]
		require.True(t, strings.HasPrefix(e.Name, "web."), e.Name)
		require.Equal(t, corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web", UID: "u1", ResourceVersion: "7",
		}, e.Regarding)
		require.Equal(t, &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "u2"}, e.Related)
		require.Equal(t, []string{"Warning", "Evicted", "Evict", "the node is full", "example.org/mill", "mill-0"},
			[]string{e.Type, e.Reason, e.Action, e.Note, e.ReportingController, e.ReportingInstance})
		require.Equal(t, began.UnixMicro(), e.EventTime.UnixMicro())
		require.Nil(t, e.Series)

		all = stored[eventsv1.Event](t, r, eventResource, "default")
		require.Len(t, all, 1)
		require.Equal(t, []string{"Normal", "Drained", "Drained", "3 pods are gone"}, []string{all[0].Type, all[0].Reason, all[0].Action, all[0].Note})
		require.Nil(t, all[0].Related)
		require.Equal(t, events.Stats{Recorded: 2, Written: 2}, r.Stats())
	})
}

func TestCoreEvent(t *testing.T) {
	bubble(t, events.Options{CoreV1: true}, func(t *testing.T, r *rig) {
		began := time.Now()
		r.Warning(pods, web, "Failed", "no")
		<-time.After(10 * time.Second)
		r.Warning(pods, web, "Failed", "no")
		all := stored[corev1.Event](t, r, coreEvents, "shop")
		require.Len(t, all, 1)
		e := all[0]
		require.Equal(t, []string{"Warning", "Failed", "no", "example.org/mill", "mill-0", "example.org/mill"},
			[]string{e.Type, e.Reason, e.Message, e.Source.Component, e.Source.Host, e.ReportingController})
		require.Equal(t, "web", e.InvolvedObject.Name)
		require.Equal(t, int32(2), e.Count)
		require.Equal(t, began.Unix(), e.FirstTimestamp.Unix())
		require.Equal(t, began.Unix()+10, e.LastTimestamp.Unix())
	})
}

// TestSeries records the same event every ten seconds for a while, then pauses, and then records it again.
func TestSeries(t *testing.T) {
	bubble(t, events.Options{}, func(t *testing.T, r *rig) {
		for range 20 {
			r.Warning(pods, web, "Failed", "no")
			<-time.After(10 * time.Second)
		}
		created, patched := writes(r)
		require.Equal(t, 1, created)
		require.Equal(t, 4, patched, "at the second event, and in each of the three minutes after")
		<-time.After(time.Minute)
		all := stored[eventsv1.Event](t, r, eventResource, "shop")
		require.Equal(t, int32(20), all[0].Series.Count, "the last were not written")
		require.Equal(t, 190*time.Second, all[0].Series.LastObservedTime.Sub(all[0].EventTime.Time))

		changed := web.DeepCopy()
		changed.ResourceVersion = "8"
		r.Warning(pods, changed, "Failed", "no")
		require.Len(t, stored[eventsv1.Event](t, r, eventResource, "shop"), 1, "another version is another series")
		<-time.After(7 * time.Minute)
		r.Warning(pods, web, "Failed", "no")
		require.Len(t, stored[eventsv1.Event](t, r, eventResource, "shop"), 2, "the series has no end")
	})
}

func TestDifferentEventsAreDifferentSeries(t *testing.T) {
	other, again := web.DeepCopy(), web.DeepCopy()
	other.Name, again.UID = "other", "u9"
	bubble(t, events.Options{}, func(t *testing.T, r *rig) {
		r.Warning(pods, web, "Failed", "no")
		r.Normal(pods, web, "Failed", "no")
		r.Warning(pods, web, "Killed", "no")
		r.Warning(pods, web, "Failed", "never")
		r.Warning(pods, other, "Failed", "no")
		r.Warning(pods, again, "Failed", "no")
		r.Event(events.Event{Resource: pods, Object: web, Type: events.Warning, Reason: "Failed", Action: "Try", Note: "no"})
		require.Len(t, stored[eventsv1.Event](t, r, eventResource, "shop"), 7)
	})
}

func TestAggregation(t *testing.T) {
	bubble(t, events.Options{}, func(t *testing.T, r *rig) {
		for i := range 15 {
			r.Warning(pods, web, "Failed", "try %d", i)
		}
		all := stored[eventsv1.Event](t, r, eventResource, "shop")
		require.Len(t, all, 11)
		at := slices.IndexFunc(all, func(e eventsv1.Event) bool { return strings.HasPrefix(e.Note, "(combined from similar events): ") })
		require.GreaterOrEqual(t, at, 0)
		require.Equal(t, "(combined from similar events): try 10", all[at].Note)
		<-time.After(2 * time.Minute)
		all = stored[eventsv1.Event](t, r, eventResource, "shop")
		require.Equal(t, int32(5), all[at].Series.Count)
		<-time.After(11 * time.Minute)
		r.Warning(pods, web, "Failed", "try again")
		all = stored[eventsv1.Event](t, r, eventResource, "shop")
		require.True(t, slices.ContainsFunc(all, func(e eventsv1.Event) bool { return e.Note == "try again" }))
	})
}

func TestSpam(t *testing.T) {
	bubble(t, events.Options{}, func(t *testing.T, r *rig) {
		other := &metav1.ObjectMeta{Namespace: "shop", Name: "other", UID: "u2"}
		for range 40 {
			r.Warning(pods, web, "Failed", "no")
			r.Warning(pods, web, "Killed", "no")
		}
		r.Warning(pods, other, "Failed", "no")
		synctest.Wait()
		require.Equal(t, int64(80-25), r.Stats().Spam)
		<-time.After(11 * time.Minute)
		for range 5 {
			r.Warning(pods, web, "Failed", "later")
		}
		synctest.Wait()
		require.Equal(t, int64(80-25+3), r.Stats().Spam, "two of the five are allowed after ten minutes")
	})
}

func TestQueueIsBounded(t *testing.T) {
	bubble(t, events.Options{Queue: 3}, func(t *testing.T, r *rig) {
		r.server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"create"}}, Times: 1, Effect: faults.Delay{For: time.Minute}})
		for i := range 10 {
			r.Warning(pods, web, "Failed", "%d", i)
			synctest.Wait() // Run is writing the first Event
		}
		require.Equal(t, events.Stats{Recorded: 10, Dropped: 6, Waiting: 3}, r.Stats())
		<-time.After(2 * time.Minute)
		require.Equal(t, events.Stats{Recorded: 10, Dropped: 6, Written: 4}, r.Stats())
	})
}

func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.Equal(t, [3]int{4096, 4096, 4096}, events.SizesAfter(10_000))
	})
}

func TestFlush(t *testing.T) {
	bubble(t, events.Options{}, func(t *testing.T, r *rig) {
		for range 5 {
			r.Warning(pods, web, "Failed", "no")
		}
		synctest.Wait()
		began := time.Now()
		for i := range 50 {
			r.Warning(pods, &metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("p", i)}, "Late", "recorded at the end")
		}
		r.stop()
		require.Zero(t, time.Since(began))
		all := stored[eventsv1.Event](t, r, eventResource, "shop")
		require.Len(t, all, 51)
		require.Equal(t, int32(5), all[50].Series.Count, "%v", all[50].Name)
	})
}

// TestFlushIsBounded ends a recorder that cannot write an Event. The lost Events are counted and logged.
func TestFlushIsBounded(t *testing.T) {
	for name, effect := range map[string]faults.Effect{
		"silence": faults.Delay{For: time.Hour},
		"refusal": faults.Fail{Code: http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			core, logs := zapobserver.New(zap.WarnLevel)
			bubble(t, events.Options{Logger: zap.New(core)}, func(t *testing.T, r *rig) {
				r.server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"create"}}, Effect: effect})
				for i := range 5 {
					r.Warning(pods, web, "Failed", "%d", i)
				}
				synctest.Wait()
				began := time.Now()
				r.stop()
				require.Equal(t, 5*time.Second, time.Since(began))
				require.Zero(t, r.Stats().Written)
				lost := logs.FilterMessage("events were not written in time").All()
				require.Len(t, lost, 1)
				require.EqualValues(t, 5, lost[0].ContextMap()["count"])
				require.EqualValues(t, 5, r.Stats().Failed+int64(r.Stats().Waiting))
				r.server.Heal()
			})
		})
	}
}

// TestFlushEndsBy has a server take two seconds for each of eight Events.
func TestFlushEndsBy(t *testing.T) {
	for name, c := range map[string]struct {
		timeout time.Duration
		endBy   time.Duration // after the end of the context; EndBy is not called if it is negative
		took    time.Duration
		lost    int
	}{
		"by itself":             {0, -1, 5 * time.Second, 6},
		"in time":               {0, 29 * time.Second, 16 * time.Second, 0},
		"too late for the last": {0, 15 * time.Second, 15 * time.Second, 1},
		"without a limit":       {0, 0, 16 * time.Second, 0},
		"with FlushTimeout":     {3 * time.Second, 29 * time.Second, 3 * time.Second, 7},
	} {
		t.Run(name, func(t *testing.T) {
			core, logs := zapobserver.New(zap.WarnLevel)
			bubble(t, events.Options{FlushTimeout: c.timeout, Logger: zap.New(core)}, func(t *testing.T, r *rig) {
				r.server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"create"}}, Effect: faults.Delay{For: 2 * time.Second}})
				for i := range 8 {
					r.Warning(pods, &metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("p", i)}, "Late", "recorded at the end")
				}
				switch {
				case c.endBy == 0:
					r.EndBy(time.Time{})
				case c.endBy > 0:
					r.EndBy(time.Now().Add(c.endBy))
				}
				began := time.Now()
				r.stop()
				require.Equal(t, c.took, time.Since(began))
				lost := 0
				for _, e := range logs.FilterMessage("events were not written in time").All() {
					lost += int(e.ContextMap()["count"].(int64))
				}
				require.Equal(t, c.lost, lost)
				require.EqualValues(t, 8-c.lost, r.Stats().Written)
				r.server.Heal()
			})
		})
	}
}

func TestRetries(t *testing.T) {
	bubble(t, events.Options{}, func(t *testing.T, r *rig) {
		r.server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"create"}}, Times: 3, Effect: faults.Fail{Code: 500}})
		r.Warning(pods, web, "Failed", "no")
		<-time.After(6 * time.Second)
		require.Empty(t, stored[eventsv1.Event](t, r, eventResource, "shop"))
		<-time.After(2 * time.Second)
		require.Len(t, stored[eventsv1.Event](t, r, eventResource, "shop"), 1)

		r.server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"create"}}, Effect: faults.Fail{Code: 500}})
		r.Warning(pods, web, "Failed", "again")
		<-time.After(3 * time.Minute)
		require.Equal(t, int64(1), r.Stats().Failed)
		r.server.Heal()
	})
}

func TestRefusals(t *testing.T) {
	for _, code := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusUnprocessableEntity} {
		bubble(t, events.Options{}, func(t *testing.T, r *rig) {
			r.server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"create"}}, Times: 1, Effect: faults.Fail{Code: code}})
			r.Warning(pods, web, "Failed", "no")
			r.Warning(pods, web, "Failed", "another")
			require.Len(t, stored[eventsv1.Event](t, r, eventResource, "shop"), 1, "%d", code)
			require.Equal(t, int64(1), r.Stats().Failed)
		})
	}
}

// TestEventWithoutObject records events about nil objects, of which some are nil pointers in an interface.
func TestEventWithoutObject(t *testing.T) {
	core, logs := zapobserver.New(zap.WarnLevel)
	bubble(t, events.Options{Logger: zap.New(core)}, func(t *testing.T, r *rig) {
		var none *metav1.ObjectMeta
		r.Warning(pods, none, "Failed", "no")
		r.Event(events.Event{Resource: pods, Reason: "Failed", Note: "no"})
		r.Event(events.Event{Resource: pods, Object: web, RelatedResource: nodes, Related: none, Reason: "Fine", Note: "yes"})
		all := stored[eventsv1.Event](t, r, eventResource, "shop")
		require.Len(t, all, 1)
		require.Nil(t, all[0].Related)
		require.Equal(t, events.Stats{Recorded: 3, Written: 1, Failed: 2}, r.Stats())
		require.Equal(t, 1, logs.FilterFieldKey("err").Len())
		require.Contains(t, logs.All()[0].ContextMap()["err"], "Event.Object is nil")
	})
}

// TestFailuresAreLoggedRarely has a server that rejects every request for three minutes.
func TestFailuresAreLoggedRarely(t *testing.T) {
	core, logs := zapobserver.New(zap.WarnLevel)
	bubble(t, events.Options{Logger: zap.New(core)}, func(t *testing.T, r *rig) {
		r.server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"create"}}, Effect: faults.Fail{Code: http.StatusNotFound}})
		for i := range 180 {
			r.Warning(pods, &metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("p", i)}, "Failed", "no")
			<-time.After(time.Second)
		}
		synctest.Wait()
		require.Equal(t, int64(180), r.Stats().Failed)
		var others []int64
		for _, e := range logs.All() {
			require.Equal(t, "event not written", e.Message)
			others = append(others, e.ContextMap()["others"].(int64))
		}
		require.Equal(t, []int64{0, 59, 59}, others)
		r.server.Heal()
	})
}

func TestExpiredSeries(t *testing.T) {
	bubble(t, events.Options{}, func(t *testing.T, r *rig) {
		r.Warning(pods, web, "Failed", "no")
		all := stored[eventsv1.Event](t, r, eventResource, "shop")
		require.NoError(t, r.server.Delete(eventResource, api.Key{Namespace: "shop", Name: all[0].Name}))
		r.Warning(pods, web, "Failed", "no")
		all = stored[eventsv1.Event](t, r, eventResource, "shop")
		require.Len(t, all, 1)
		require.Equal(t, int32(2), all[0].Series.Count)
	})
}

func TestLongTexts(t *testing.T) {
	bubble(t, events.Options{}, func(t *testing.T, r *rig) {
		long := strings.Repeat("é", 2000)
		r.Event(events.Event{Resource: pods, Object: web, Reason: long, Action: long, Note: long})
		r.Normal(pods, &metav1.ObjectMeta{Namespace: "shop", Name: strings.Repeat("a.", 126) + "a"}, "R", "n")
		r.Normal(pods, &metav1.ObjectMeta{Namespace: "shop", Name: "system:node"}, "R", "n")
		all := stored[eventsv1.Event](t, r, eventResource, "shop")
		require.Len(t, all, 3, "%+v", r.Stats())
		for _, e := range all {
			require.LessOrEqual(t, len(e.Note), 1024)
			require.LessOrEqual(t, len(e.Reason), 128)
			require.LessOrEqual(t, len(e.Action), 128)
			require.LessOrEqual(t, len(e.Name), 253)
			require.NotContains(t, e.Name, "..")
			require.NotContains(t, e.Name, ":")
			require.NotContains(t, e.Note, "�")
		}
	})
}

// TestTextsThatAreNotUTF8 has texts with bytes that are not UTF-8. They become a character of three bytes.
func TestTextsThatAreNotUTF8(t *testing.T) {
	bubble(t, events.Options{}, func(t *testing.T, r *rig) {
		broken := strings.Repeat("\xff\xfe ", 300)
		r.Event(events.Event{Resource: pods, Object: web, Reason: broken, Action: broken, Note: broken})
		all := stored[eventsv1.Event](t, r, eventResource, "shop")
		require.Len(t, all, 1)
		require.LessOrEqual(t, len(all[0].Note), 1024)
		require.LessOrEqual(t, len(all[0].Reason), 128)
		require.LessOrEqual(t, len(all[0].Action), 128)
	})
}

// TestLostAnswer has a server that stores an Event and whose answer is lost.
func TestLostAnswer(t *testing.T) {
	bubble(t, events.Options{}, func(t *testing.T, r *rig) {
		r.server.Inject(faults.Fault{
			Match: faults.Match{Verbs: []string{"create"}}, Times: 1, Effect: faults.Cut{After: 10, Abrupt: true},
		})
		r.Warning(pods, web, "Failed", "no")
		<-time.After(2 * time.Second)
		written := stored[eventsv1.Event](t, r, eventResource, "shop")
		require.Len(t, written, 1, "the Event must be written once")
		require.Nil(t, written[0].Series, "kube-apiserver rejects a series with one event")
		r.Warning(pods, web, "Failed", "no")
		require.Equal(t, int32(2), stored[eventsv1.Event](t, r, eventResource, "shop")[0].Series.Count)
		require.Zero(t, r.Stats().Failed)
	})
}

// TestTheFieldManager writes an Event and its series under a name of its own.
func TestTheFieldManager(t *testing.T) {
	for _, core := range []bool{false, true} {
		bubble(t, events.Options{FieldManager: "mill", CoreV1: core}, func(t *testing.T, r *rig) {
			for range 2 {
				r.Normal(pods, web, "Ground", "flour")
				synctest.Wait()
				<-time.After(time.Minute)
			}
			<-time.After(time.Hour)
			created, patched := writes(r)
			require.Equal(t, 1, created)
			require.NotZero(t, patched)
			for _, q := range r.server.Requests() {
				require.Equal(t, "mill", q.Query.Get("fieldManager"), q.Verb)
			}
		})
	}
}
