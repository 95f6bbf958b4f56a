package store

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/testserver/internal/signal"
)

// Logs are the logs of containers, which in a cluster the kubelets have.
type Logs struct {
	mu         sync.Mutex // guards the fields below, and the lines of each log
	containers map[containerID]*Log
}

// containerID identifies a container of one pod. A later pod with the same name has other containers.
type containerID struct {
	pod       types.UID
	container string
}

// Log is the log of one container.
type Log struct {
	lines   []LogLine
	written signal.Signal
}

// LogLine is one line of a log.
type LogLine struct {
	At   time.Time
	Text string // with a line break
}

// Append adds lines to the log of a container, with the present time and a line break each.
func (l *Logs) Append(pod types.UID, container string, lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	log := l.log(pod, container)
	for _, line := range lines {
		log.lines = append(log.lines, LogLine{At: time.Now(), Text: line + "\n"})
	}
	log.written.Fire()
}

// log returns the log of a container, and creates it if necessary. The caller holds the lock.
func (l *Logs) log(pod types.UID, container string) *Log {
	id := containerID{pod: pod, container: container}
	if l.containers == nil {
		l.containers = map[containerID]*Log{}
	}
	log := l.containers[id]
	if log == nil {
		log = &Log{}
		id.pod = types.UID(strings.Clone(string(pod))) // pod keeps the metadata of a record in memory
		l.containers[id] = log
	}
	return log
}

// Open returns a log for reading. It stays readable after the pod is deleted.
func (l *Logs) Open(pod types.UID, container string) *Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log(pod, container)
}

// From returns the lines of a log from index n on, and a channel that closes when lines are added.
func (l *Logs) From(log *Log, n int) ([]LogLine, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(log.lines[n:]), log.written.Wait()
}

// copies returns copies of all logs.
func (l *Logs) copies() map[containerID]*Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[containerID]*Log, len(l.containers))
	for id, log := range l.containers {
		out[id] = &Log{lines: slices.Clip(log.lines)}
	}
	return out
}

// forget deletes the logs of a pod that was deleted.
func (l *Logs) forget(pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.containers, func(id containerID, _ *Log) bool { return id.pod == pod })
}
