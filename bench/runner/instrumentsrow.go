package runner

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/leatproject/leat/bench/subject"
)

// instruments measures what a recording and the page add to each event.
func instruments(z Sizes) Row {
	// There are so many events that the seconds between two requests of a viewer count, and a recorder has little left
	// at the end.
	spec := subject.Spec{Work: subject.Events, Objects: z.Watched, Events: 10 * z.Events}
	file, ring := spec, spec
	file.Tap, ring.Tap = subject.File, subject.Ring
	return Row{
		Name: "instruments", Title: "Recordings and the page", Columns: eventColumns,
		Rounds: 2*z.Rounds + 1, // the bounds are a few percent
		Note: "The row Events of a watch, with eight fields in JSON and ten times as many events. The tap records to a file or " +
			"to a ring of 16 MiB, and the client waits for it, so that nothing is lost. A viewer requests the state of the page every " +
			"second, from another process.",
		Entrants: instrumented(spec, []Entrant{
			{Label: "leat"},
			{Label: "leat, tap", Spec: file},
			{Label: "leat, page", Page: mounted},
			{Label: "leat, page, one viewer", Page: viewed},
			{Label: "leat, ring", Spec: ring, Extra: true},
		}),
	}
}

// uptimes measures whether memory grows while a program is recorded or shown.
func uptimes(z Sizes) Row {
	spec := subject.Spec{Work: subject.Uptime, Objects: z.Watched, Events: 2 * z.Events}
	ring := spec
	ring.Tap = subject.Ring
	return Row{
		Name: "uptime", Title: "Memory of recordings and the page over time", Rounds: min(3, z.Rounds),
		Columns: []string{"live MB", "later MB", "growth B/event"},
		Note:    "The live heap a second after a number of events, and after three times as many.",
		Entrants: instrumented(spec, []Entrant{
			{Label: "leat, ring", Spec: ring}, {Label: "leat, page, one viewer", Page: viewed},
		}),
	}
}

// instrumented fills in the parts that are the same in all entrants.
func instrumented(spec subject.Spec, entrants []Entrant) []Entrant {
	for i := range entrants {
		tap := entrants[i].Spec.Tap
		entrants[i].Spec, entrants[i].Program = spec, leat
		entrants[i].Spec.Tap, entrants[i].Spec.Form, entrants[i].Spec.Wire = tap, subject.Struct, subject.JSON
	}
	return entrants
}

// page says whether a subject has a page.
type page byte

const (
	none    page = iota
	mounted      // without a viewer
	viewed       // by one viewer
)

// freeAddress returns an address on loopback that no process listens on.
func freeAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// viewer requests the state of a page, as a browser that shows it.
type viewer struct {
	url    string
	client http.Client
}

// look requests the state once.
func (v *viewer) look(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := v.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err = io.Copy(io.Discard, response.Body); err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("runner: the page answers %s", response.Status)
	}
	return err
}

// watch requests the state every second until ctx ends or the page is gone.
func (v *viewer) watch(ctx context.Context) {
	defer v.client.CloseIdleConnections()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for v.look(ctx) == nil {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
