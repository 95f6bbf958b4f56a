package runner

import "github.com/leatproject/leat/bench/subject"

// instruments measures what a recording adds to each event.
func instruments(z Sizes) Row {
	// There are so many events that a recorder has little left at the end.
	spec := subject.Spec{Work: subject.Events, Objects: z.Watched, Events: 10 * z.Events}
	tapped := spec
	tapped.Tap = true
	return Row{
		Name: "instruments", Title: "Recordings", Columns: eventColumns,
		Rounds: 2*z.Rounds + 1, // the bound is close
		Note: "The row Events of a watch, with eight fields in JSON and ten times as many events. The tap records to a file, and " +
			"the client waits for it, so that nothing is lost.",
		Entrants: []Entrant{
			entrant("leat", leat, spec, subject.Struct, subject.JSON),
			entrant("leat, tap", leat, tapped, subject.Struct, subject.JSON),
		},
	}
}
