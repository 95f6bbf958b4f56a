package server

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/bench/load"
)

// watcher writes the events of one watch.
type watcher struct {
	*Server
	asked
	w http.ResponseWriter
	b []byte // the event that is being written
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request, a asked) {
	s.mu.Lock()
	expired := s.expired
	s.mu.Unlock()
	watching := watcher{Server: s, asked: a, w: w}
	from := a.from
	if a.streaming {
		p := s.page(asked{shard: a.shard})
		if watching.initial(&p) != nil {
			return // the client has gone
		}
		from = p.version
	}
	_ = http.NewResponseController(w).Flush()
	s.note(a.noted(r))
	for at := s.place(from); ; {
		changes, grown, expires := s.since(at, expired)
		if watching.events(at, changes) != nil {
			return // the client has gone
		}
		if expires {
			_ = watching.gone() // an error does not matter here
			return
		}
		at += len(changes)
		select {
		case <-grown:
		case <-r.Context().Done():
			return
		}
	}
}

// place returns the index in the log of the first change after a version. A client with a version of another server
// gets all changes.
func (s *Server) place(version uint64) int {
	return int(max(version, s.version(0)) - s.version(0))
}

// since returns the changes after an index in the log, and the channel to wait for after sending them.
func (s *Server) since(at, expired int) (changes []change, grown <-chan struct{}, expires bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log[min(at, len(s.log)):len(s.log):len(s.log)], s.grown, s.expired > expired
}

// initial sends the whole collection and the final bookmark (KEP-3157).
func (w *watcher) initial(p *page) error {
	for place := p.first; place < p.last; place++ {
		pod, state := p.at(place)
		if err := w.event("ADDED", pod, state); err != nil {
			return err
		}
	}
	return w.bookmark(p.version)
}

// events sends changes; at is the index of the first one in the log.
func (w *watcher) events(at int, changes []change) error {
	if len(changes) == 0 {
		return nil
	}
	for i, c := range changes {
		if !w.selects(w.shard, int(c.pod)) {
			continue
		}
		sent := time.Now().UnixNano()
		if err := w.event("MODIFIED", int(c.pod), load.State{Version: w.version(at + i + 1), Restarts: c.restarts}); err != nil {
			return err
		}
		w.mu.Lock()
		w.sent[at+i] = sent
		w.mu.Unlock()
	}
	return http.NewResponseController(w.w).Flush()
}

// event sends one pod, in one write.
func (w *watcher) event(event string, i int, state load.State) error {
	form := w.form()
	if w.protobuf {
		w.beginFrame(event, w.set.Size(form, i))
		w.b = w.set.Append(w.b, form, i, state)
	} else {
		w.b = append(append(append(w.b[:0], `{"type":"`...), event...), `","object":`...)
		w.b = append(w.set.Append(w.b, form, i, state), "}\n"...)
	}
	_, err := w.w.Write(w.b)
	return err
}

// kind returns the kind of the objects in the events.
func (w *watcher) kind() (apiVersion, kind string) {
	if w.metadata {
		return "meta.k8s.io/v1", "PartialObjectMetadata"
	}
	return "v1", "Pod"
}

// beginFrame writes a frame of protobuf up to the object, which has size bytes: a length, and a metav1.WatchEvent with
// a runtime.RawExtension with a runtime.Unknown.
func (w *watcher) beginFrame(event string, size int) {
	apiVersion, kind := w.kind()
	unknown := sizeUnknown(apiVersion, kind, size)
	extension := sizeField(1, unknown)
	frame := sizeField(1, len(event)) + sizeField(2, extension)
	w.b = binary.BigEndian.AppendUint32(w.b[:0], uint32(frame))
	w.b = appendText(w.b, 1, event)
	w.b = appendField(w.b, 2, extension)
	w.b = appendField(w.b, 1, unknown)
	w.b = beginUnknown(w.b, apiVersion, kind, size)
}

// bookmark ends the initial events.
func (w *watcher) bookmark(version uint64) error {
	if w.protobuf {
		metadata := metav1.ObjectMeta{
			ResourceVersion: fmt.Sprint(version), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}
		object, err := metadata.Marshal()
		if err != nil {
			return err
		}
		w.beginFrame("BOOKMARK", sizeField(1, len(object)))
		w.b = append(appendField(w.b, 1, len(object)), object...)
	} else {
		apiVersion, kind := w.kind()
		w.b = fmt.Appendf(w.b[:0], `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d",`+
			`"creationTimestamp":null,"annotations":{%q:"true"}}}}`+"\n", kind, apiVersion, version, metav1.InitialEventsAnnotationKey)
	}
	_, err := w.w.Write(w.b)
	return err
}

// gone sends the error 410, which ends the watch.
func (w *watcher) gone() error {
	const message = "too old resource version"
	if w.protobuf {
		status := metav1.Status{Status: metav1.StatusFailure, Message: message, Reason: metav1.StatusReasonExpired, Code: http.StatusGone}
		object, err := status.Marshal()
		if err != nil {
			return err
		}
		extension := sizeField(1, sizeUnknown("v1", "Status", len(object)))
		w.b = binary.BigEndian.AppendUint32(w.b[:0], uint32(sizeField(1, len("ERROR"))+sizeField(2, extension)))
		w.b = appendField(appendText(w.b, 1, "ERROR"), 2, extension)
		w.b = appendField(w.b, 1, sizeUnknown("v1", "Status", len(object)))
		w.b = append(beginUnknown(w.b, "v1", "Status", len(object)), object...)
	} else {
		w.b = fmt.Appendf(w.b[:0], `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",`+
			`"message":%q,"reason":"Expired","code":410}}`+"\n", message)
	}
	_, err := w.w.Write(w.b)
	return err
}
