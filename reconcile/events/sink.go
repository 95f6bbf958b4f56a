package events

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

// sink writes series to one of the two APIs.
type sink interface {
	create(ctx context.Context, s *series) error
	update(ctx context.Context, s *series) error
}

func newSink(c *apiclient.Client, o Options) sink {
	r := api.Resource{Group: "events.k8s.io", Version: "v1", Kind: "Event", Plural: "events", Namespaced: true}
	if !o.CoreV1 {
		return &eventsSink{o: o, events: apiclient.NewTyped[*event](c, r, "")}
	}
	r.Group = ""
	return &coreSink{o: o, events: apiclient.NewTyped[*coreEvent](c, r, "")}
}

// event is an Event of events.k8s.io/v1, with the fields that this package writes.
type event struct {
	metav1.ObjectMeta   `json:"metadata"`
	EventTime           metav1.MicroTime `json:"eventTime"`
	Series              *eventSeries     `json:"series,omitempty"`
	ReportingController string           `json:"reportingController"`
	ReportingInstance   string           `json:"reportingInstance"`
	Action              string           `json:"action"`
	Reason              string           `json:"reason"`
	Regarding           reference        `json:"regarding"`
	Related             *reference       `json:"related,omitempty"`
	Note                string           `json:"note"`
	Type                Type             `json:"type"`
}

type eventSeries struct {
	Count            int32            `json:"count"`
	LastObservedTime metav1.MicroTime `json:"lastObservedTime"`
}

type eventsSink struct {
	o      Options
	events *apiclient.TypedClient[*event]
}

func (k *eventsSink) create(ctx context.Context, s *series) error {
	e := &event{
		ObjectMeta:          metadata(s),
		EventTime:           metav1.NewMicroTime(s.first),
		ReportingController: shorten(k.o.Controller, maxWord),
		ReportingInstance:   shorten(k.o.Instance, maxWord),
		Action:              s.action,
		Reason:              s.reason,
		Regarding:           s.regarding,
		Related:             optional(s.related),
		Note:                s.note,
		Type:                s.kind,
	}
	if s.count > 1 {
		e.Series = seriesOf(s)
	}
	_, err := k.events.Create(ctx, e, metav1.CreateOptions{FieldManager: k.o.FieldManager})
	return err
}

func (k *eventsSink) update(ctx context.Context, s *series) error {
	return patch(ctx, &k.events.PartialClient, k.o, s, map[string]any{"series": seriesOf(s)})
}

func seriesOf(s *series) *eventSeries {
	return &eventSeries{Count: s.count, LastObservedTime: metav1.NewMicroTime(s.last)}
}

// coreEvent is an Event of the core API, with the fields that this package writes.
type coreEvent struct {
	metav1.ObjectMeta  `json:"metadata"`
	InvolvedObject     reference   `json:"involvedObject"`
	Related            *reference  `json:"related,omitempty"`
	Action             string      `json:"action,omitempty"`
	Reason             string      `json:"reason"`
	Message            string      `json:"message"`
	Source             coreSource  `json:"source"`
	FirstTimestamp     metav1.Time `json:"firstTimestamp"`
	LastTimestamp      metav1.Time `json:"lastTimestamp"`
	Count              int32       `json:"count"`
	Type               Type        `json:"type"`
	ReportingComponent string      `json:"reportingComponent"`
	ReportingInstance  string      `json:"reportingInstance"`
}

type coreSource struct {
	Component string `json:"component"`
	Host      string `json:"host,omitempty"`
}

type coreSink struct {
	o      Options
	events *apiclient.TypedClient[*coreEvent]
}

func (k *coreSink) create(ctx context.Context, s *series) error {
	controller, instance := shorten(k.o.Controller, maxWord), shorten(k.o.Instance, maxWord)
	_, err := k.events.Create(ctx, &coreEvent{
		ObjectMeta:         metadata(s),
		InvolvedObject:     s.regarding,
		Related:            optional(s.related),
		Action:             s.action,
		Reason:             s.reason,
		Message:            s.note,
		Source:             coreSource{Component: controller, Host: instance},
		FirstTimestamp:     metav1.NewTime(s.first),
		LastTimestamp:      metav1.NewTime(s.last),
		Count:              s.count,
		Type:               s.kind,
		ReportingComponent: controller,
		ReportingInstance:  instance,
	}, metav1.CreateOptions{FieldManager: k.o.FieldManager})
	return err
}

func (k *coreSink) update(ctx context.Context, s *series) error {
	return patch(ctx, &k.events.PartialClient, k.o, s, map[string]any{"count": s.count, "lastTimestamp": metav1.NewTime(s.last)})
}

func patch[T api.Object](ctx context.Context, events *apiclient.PartialClient[T], o Options, s *series, change map[string]any) error {
	p, err := apiclient.MergePatch(change)
	if err != nil {
		return err
	}
	_, err = events.Patch(ctx, api.Key{Namespace: namespaceOf(s), Name: s.name}, p, apiclient.PatchOptions{FieldManager: o.FieldManager})
	return err
}

func metadata(s *series) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespaceOf(s), Name: s.name}
}

// namespaceOf returns the namespace of an Event: that of its object, or "default" for a cluster-scoped object.
func namespaceOf(s *series) string {
	if s.regarding.Namespace == "" {
		return metav1.NamespaceDefault
	}
	return s.regarding.Namespace
}

func optional(r reference) *reference {
	if r == (reference{}) {
		return nil
	}
	return &r
}
