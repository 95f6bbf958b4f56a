package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/visible"
)

// syncedLine is the type of the line after the first list.
const syncedLine = "SYNCED"

// eventNames are the words of kubectl get --watch.
var eventNames = map[api.ChangeType]watch.EventType{
	api.Added:   watch.Added,
	api.Updated: watch.Modified,
	api.Deleted: watch.Deleted,
}

// printer writes a line for each event.
type printer[T api.Object] struct {
	format   string
	resource api.Resource

	mu sync.Mutex // guards the field below
	w  io.Writer
}

func newPrinter[T api.Object](format string, r api.Resource, w io.Writer) *printer[T] {
	return &printer[T]{format: format, resource: r, w: w}
}

func (p *printer[T]) event(n api.Change[T]) error {
	kind, key := eventNames[n.Type], api.FormatKey(api.KeyOf(n.Object))
	switch p.format {
	case "json":
		return p.json(jsonEvent{Type: string(kind), Object: n.Object})
	case "name":
		return p.printf("%s\n", key)
	default:
		return p.line(string(kind), key, n.Object.GetResourceVersion())
	}
}

// synced writes the line after the first list.
func (p *printer[T]) synced(objects int, version string) error {
	switch p.format {
	case "json":
		return p.json(jsonEvent{Type: syncedLine, Objects: &objects, ResourceVersion: version})
	case "name":
		return nil
	default:
		return p.line(syncedLine, fmt.Sprintf("%s (%d)", p.resource, objects), version)
	}
}

// jsonEvent is a frame of a watch, as a server writes it. SYNCED is a type that no server sends.
type jsonEvent struct {
	Type            string `json:"type"`
	Object          any    `json:"object,omitempty"`
	Objects         *int   `json:"objects,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

func (p *printer[T]) json(e jsonEvent) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return p.printf("%s\n", line)
}

func (p *printer[T]) line(kind, what, version string) error {
	return p.printf("%-9s %-60s %s\n", kind, what, version)
}

func (p *printer[T]) printf(format string, args ...any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := visible.Fprintf(p.w, format, args...)
	return err
}

// printTable writes rows with columns of equal width.
func printTable(w io.Writer, rows [][]string) error {
	table := tabwriter.NewWriter(w, 6, 4, 3, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = visible.Text(cell)
		}
		_, _ = io.WriteString(table, strings.Join(cells, "\t")+"\n") // Flush returns the error
	}
	return table.Flush()
}
