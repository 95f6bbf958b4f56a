package testserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// AppendLog adds lines to the log of a container, with the present time and a line break each. Requests that follow the
// log get them at once. It fails with NotFound if the pod does not exist. The pod need not declare the container.
func (s *Server) AppendLog(pod api.Key, container string, lines ...string) error {
	return s.directly(podResource, func(c *store.Collection) error {
		r := c.Get(pod)
		if r == nil {
			return apierrors.NewNotFound(c.Definition().GroupResource(), pod.Name)
		}
		s.store.Logs().Append(r.UID(), container, lines)
		return nil
	})
}

var podResource = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}

// logOptions are the parameters of a request for a log: those of corev1.PodLogOptions, except for insecure connections
// and single streams, which need a kubelet.
type logOptions struct {
	container  string
	follow     bool
	timestamps bool
	since      time.Time
	tail       int64 // lines; negative means all
	limit      int64 // bytes; negative means no limit
}

func parseLogOptions(pod string, q url.Values) (logOptions, error) {
	o := logOptions{
		container: q.Get("container"), follow: wire.BoolParam(q, "follow"), timestamps: wire.BoolParam(q, "timestamps"),
		tail: -1, limit: -1,
	}
	var seconds int64
	var errs field.ErrorList
	for _, p := range []struct {
		name    string
		into    *int64
		least   int64
		problem string
	}{
		{"tailLines", &o.tail, 0, "must be greater than or equal to 0"},
		{"limitBytes", &o.limit, 1, "must be greater than 0"},
		{"sinceSeconds", &seconds, 1, "must be greater than 0"},
	} {
		text := q.Get(p.name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return o, apierrors.NewBadRequest(err.Error())
		}
		if n < p.least {
			errs = append(errs, field.Invalid(field.NewPath(p.name), n, p.problem))
		}
		*p.into = n
	}
	if text := q.Get("sinceTime"); text != "" {
		since, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return o, apierrors.NewBadRequest(err.Error())
		}
		if q.Get("sinceSeconds") != "" {
			errs = append(errs, field.Forbidden(field.NewPath(""), "at most one of `sinceTime` or `sinceSeconds` may be specified"))
		}
		o.since = since
	}
	if seconds > 0 {
		o.since = time.Now().Add(-time.Duration(seconds) * time.Second)
	}
	if len(errs) > 0 {
		return o, apierrors.NewInvalid(schema.GroupKind{Kind: "PodLogOptions"}, pod, errs)
	}
	return o, nil
}

// getLog answers with the log of a container. With follow, it continues with new lines until the pod is deleted. With
// previous, it fails, because containers do not restart here.
func (x *call) getLog() error {
	o, err := parseLogOptions(x.request.Name, x.request.Query)
	if err != nil {
		return err
	}
	x.store.Lock()
	pod, err := x.existing()
	x.store.Unlock()
	if err != nil {
		return err
	}
	if o.container, err = containerOf(pod, o.container); err != nil {
		return err
	}
	if !x.def.Untyped { // a pod is on a node
		if _, err := x.nodeOf(pod); err != nil {
			return err
		}
	}
	if wire.BoolParam(x.request.Query, "previous") {
		return apierrors.NewBadRequest(fmt.Sprintf("previous terminated container %q in pod %q not found", o.container, pod.Key.Name))
	}
	x.w.Header().Set("Content-Type", "text/plain")
	x.w.WriteHeader(http.StatusOK)
	x.streamLog(x.http.Context(), pod, o)
	return nil
}

// containerOf returns the name of the requested container: the one in the request, or the only one of the pod.
func containerOf(pod *store.Record, name string) (string, error) {
	spec := object.MapAt(pod.Tree(), "spec")
	var names []string
	for _, c := range slices.Concat(object.SliceAt(spec, "initContainers"), object.SliceAt(spec, "containers"), object.SliceAt(spec, "ephemeralContainers")) {
		if container, ok := c.(object.Tree); ok {
			names = append(names, object.StringAt(container, "name"))
		}
	}
	switch {
	case name == "" && len(names) > 1:
		return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: [%s]",
			pod.Key.Name, strings.Join(names, " ")))
	case name == "" && len(names) == 1:
		return names[0], nil
	case name != "" && len(names) > 0 && !slices.Contains(names, name):
		return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.Key.Name))
	}
	return name, nil
}

// streamLog writes lines until the log is complete or the client disconnects.
func (x *call) streamLog(ctx context.Context, pod *store.Record, o logOptions) {
	logs := x.store.Logs()
	log := logs.Open(pod.UID(), o.container)
	lines, more := logs.From(log, 0)
	next := len(lines)
	if o.tail >= 0 {
		lines = lines[max(0, len(lines)-int(min(o.tail, int64(len(lines))))):]
	}
	out := limitedWriter{w: x.w, left: o.limit}
	for there := true; ; {
		for _, line := range lines {
			if !out.put(line, o) {
				return
			}
		}
		if !o.follow || !there || http.NewResponseController(x.w).Flush() != nil {
			return
		}
		var changed <-chan struct{}
		if there, changed = x.stillThere(pod); there {
			select {
			case <-more:
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
		lines, more = logs.From(log, next) // after the delete of the pod, once more for the last lines
		next += len(lines)
	}
}

// stillThere reports whether a pod exists, and returns a channel that closes when that may have changed.
func (x *call) stillThere(pod *store.Record) (bool, <-chan struct{}) {
	x.store.Lock()
	defer x.store.Unlock()
	now, err := x.existing()
	return err == nil && now.UID() == pod.UID(), x.c.Changed()
}

// limitedWriter writes lines up to a number of bytes.
type limitedWriter struct {
	w    io.Writer
	left int64 // bytes; negative means no limit
}

// put writes a line. It returns false if more lines are useless.
func (l *limitedWriter) put(line store.LogLine, o logOptions) bool {
	if line.At.Before(o.since) {
		return true
	}
	var text bytes.Buffer
	if o.timestamps {
		text.WriteString(line.At.UTC().Format(metav1.RFC3339Micro) + " ")
	}
	text.WriteString(line.Text)
	b := text.Bytes()
	if l.left >= 0 {
		b = b[:min(int64(len(b)), l.left)]
		l.left -= int64(len(b))
	}
	_, err := l.w.Write(b)
	return err == nil && l.left != 0
}
