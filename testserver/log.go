package testserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

// podLogs are the logs of the containers, which in a cluster the kubelets have.
type podLogs struct {
	mu         sync.Mutex // guards the fields below, and the lines of each log
	containers map[containerID]*containerLog
}

// containerID identifies a container of one pod. A later pod with the same name has other containers.
type containerID struct {
	pod       types.UID
	container string
}

type containerLog struct {
	lines   []logLine
	written signal
}

type logLine struct {
	at   time.Time
	text string // with a line break
}

// AppendLog adds lines to the log of a container, with the present time and a line break each. Requests that follow the
// log get them at once. It fails with NotFound if the pod does not exist. The pod need not declare the container.
func (s *Server) AppendLog(pod api.Key, container string, lines ...string) error {
	return s.directly(podResource, func(c *collection) error {
		r := c.root.get(pathOf(pod))
		if r == nil {
			return apierrors.NewNotFound(c.def.GroupResource(), pod.Name)
		}
		s.store.logs.append(containerID{pod: r.uid, container: container}, lines)
		return nil
	})
}

var podResource = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}

func (l *podLogs) append(id containerID, lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	log := l.log(id)
	for _, line := range lines {
		log.lines = append(log.lines, logLine{at: time.Now(), text: line + "\n"})
	}
	log.written.fire()
}

// log returns the log of a container, and creates it if necessary. The caller holds the lock.
func (l *podLogs) log(id containerID) *containerLog {
	if l.containers == nil {
		l.containers = map[containerID]*containerLog{}
	}
	log := l.containers[id]
	if log == nil {
		log = &containerLog{}
		l.containers[id] = log
	}
	return log
}

// open returns a log for reading. It stays readable after the pod is deleted.
func (l *podLogs) open(id containerID) *containerLog {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log(id)
}

// from returns the lines of a log from index n on, and a channel that closes when lines are added.
func (l *podLogs) from(log *containerLog, n int) ([]logLine, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(log.lines[n:]), log.written.wait()
}

// forget deletes the logs of a pod that was deleted.
func (l *podLogs) forget(pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.containers, func(id containerID, _ *containerLog) bool { return id.pod == pod })
}

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

func parseLogOptions(q url.Values) (logOptions, error) {
	o := logOptions{
		container: q.Get("container"), follow: boolParam(q, "follow"), timestamps: boolParam(q, "timestamps"),
		tail: -1, limit: -1,
	}
	seconds := int64(-1)
	for name, into := range map[string]*int64{"tailLines": &o.tail, "limitBytes": &o.limit, "sinceSeconds": &seconds} {
		text := q.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n == 0 && name != "tailLines" {
			return o, apierrors.NewBadRequest(fmt.Sprintf("%s: invalid value %q", name, text))
		}
		*into = n
	}
	if seconds > 0 {
		o.since = time.Now().Add(-time.Duration(seconds) * time.Second)
	}
	if text := q.Get("sinceTime"); text != "" {
		since, err := time.Parse(time.RFC3339, text)
		if err != nil || seconds > 0 {
			return o, apierrors.NewBadRequest(fmt.Sprintf("sinceTime: invalid value %q, or sinceSeconds beside it", text))
		}
		o.since = since
	}
	return o, nil
}

// getLog answers with the log of a container. With follow, it continues with new lines until the pod is deleted. With
// previous, it fails, because containers do not restart here.
func (x *call) getLog() error {
	o, err := parseLogOptions(x.request.Query)
	if err != nil {
		return err
	}
	x.store.mu.Lock()
	pod, err := x.existing()
	x.store.mu.Unlock()
	if err != nil {
		return err
	}
	if o.container, err = containerOf(pod, o.container); err != nil {
		return err
	}
	if boolParam(x.request.Query, "previous") {
		return apierrors.NewBadRequest(fmt.Sprintf("previous terminated container %q in pod %q not found", o.container, pod.key.Name))
	}
	x.w.Header().Set("Content-Type", "text/plain")
	x.w.WriteHeader(http.StatusOK)
	x.streamLog(x.http.Context(), pod, o)
	return nil
}

// containerOf returns the name of the requested container: the one in the request, or the only one of the pod.
func containerOf(pod *record, name string) (string, error) {
	spec := mapAt(pod.tree(), "spec")
	var names []string
	for _, c := range slices.Concat(sliceAt(spec, "initContainers"), sliceAt(spec, "containers"), sliceAt(spec, "ephemeralContainers")) {
		if container, ok := c.(object); ok {
			names = append(names, stringAt(container, "name"))
		}
	}
	switch {
	case name == "" && len(names) > 1:
		return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: [%s]",
			pod.key.Name, strings.Join(names, " ")))
	case name == "" && len(names) == 1:
		return names[0], nil
	case name != "" && len(names) > 0 && !slices.Contains(names, name):
		return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.key.Name))
	}
	return name, nil
}

// streamLog writes lines until the log is complete or the client disconnects.
func (x *call) streamLog(ctx context.Context, pod *record, o logOptions) {
	logs := &x.store.logs
	log := logs.open(containerID{pod: pod.uid, container: o.container})
	lines, more := logs.from(log, 0)
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
		lines, more = logs.from(log, next) // after the delete of the pod, once more for the last lines
		next += len(lines)
	}
}

// stillThere reports whether a pod exists, and returns a channel that closes when that may have changed.
func (x *call) stillThere(pod *record) (bool, <-chan struct{}) {
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	now, err := x.existing()
	return err == nil && now.uid == pod.uid, x.c.wake.wait()
}

// limitedWriter writes lines up to a number of bytes.
type limitedWriter struct {
	w    io.Writer
	left int64 // bytes; negative means no limit
}

// put writes a line. It returns false if more lines are useless.
func (l *limitedWriter) put(line logLine, o logOptions) bool {
	if line.at.Before(o.since) {
		return true
	}
	var text bytes.Buffer
	if o.timestamps {
		text.WriteString(line.at.UTC().Format(metav1.RFC3339Micro) + " ")
	}
	text.WriteString(line.text)
	b := text.Bytes()
	if l.left >= 0 {
		b = b[:min(int64(len(b)), l.left)]
		l.left -= int64(len(b))
	}
	_, err := l.w.Write(b)
	return err == nil && l.left != 0
}
