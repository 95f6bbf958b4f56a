package main

import (
	"bytes"
	_ "embed" // of the page
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leatproject/leat/cmd/leat/internal/endpoint"
	"github.com/leatproject/leat/docs"
)

//go:embed explore.html
var explorePage string

// counterexample is the way to a broken promise, from docs.Counterexamples.
type counterexample struct {
	Name, Rule, Promise, Failure string
	Steps                        []exploredStep
}

// exploredStep is what happens, and what each part has afterwards.
type exploredStep struct {
	Number, Previous, Next int // Next is 0 in the last step
	What                   string
	Parts                  []exploredPart
}

type exploredPart struct {
	Name, State string
	Changed     bool // in this step
}

func newExplore() *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "explore [NAME | --page]",
		Short: "Show step by step how a promise breaks without one of leat's rules",
		Long: `Show counterexamples that the exhaustive exploration has found. In each, one rule or one condition of leat is broken on
purpose, and the steps are the shortest way from there to a broken promise. Without a name, list them. With one, print its
steps, and what each part has after each. A star marks what the step has changed. With --page, serve a page that goes
through the steps, until an interrupt. See docs/exploration.md.`,
		Example: `  leat explore
  leat explore forgotten_doubt
  leat explore --page`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && address != "" {
				return usagef("%s takes one name, or --page", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := counterexamples()
			if err != nil {
				return err
			}
			out := newLines(cmd.OutOrStdout())
			switch {
			case address != "":
				return servePageOf(cmd, out, all, address)
			case len(args) == 1:
				i := slices.IndexFunc(all, func(c counterexample) bool { return c.Name == args[0] })
				if i < 0 {
					return usagef("there is no counterexample %q; leat explore lists them", args[0])
				}
				all[i].print(out)
			default:
				for _, c := range all {
					out.printf("%-20s  %s\n", c.Name, c.Rule)
				}
			}
			return out.flush()
		},
	}
	cmd.Flags().StringVar(&address, "page", "", "serve a page of all counterexamples, on a free port or at an address: --page=127.0.0.1:8090 (default: none)")
	cmd.Flags().Lookup("page").NoOptDefVal = endpoint.FreePort
	return cmd
}

func counterexamples() (all []counterexample, err error) {
	files, err := docs.Counterexamples.ReadDir("counterexamples")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := docs.Counterexamples.ReadFile("counterexamples/" + file.Name())
		if err != nil {
			return nil, err
		}
		all = append(all, parseCounterexample(strings.TrimSuffix(file.Name(), ".txt"), string(text)))
	}
	return all, nil
}

var stepStart = regexp.MustCompile(`(?m)^\d+\. `)

// parseCounterexample reads a file of docs.Counterexamples.
func parseCounterexample(name, text string) counterexample {
	c := counterexample{Name: name}
	head, steps, _ := strings.Cut(text, "\n\n")
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Rule":
			c.Rule = value
		case "Promise":
			c.Promise = value
		case "Failure":
			c.Failure = value
		}
	}
	before := map[string]string{}
	for i, step := range stepStart.Split(steps, -1)[1:] {
		what, parts, _ := strings.Cut(step, "\n")
		s := exploredStep{Number: i, Previous: i - 1, Next: i + 1, What: what}
		for line := range strings.Lines(parts) {
			part, state, _ := strings.Cut(strings.TrimSpace(line), ": ")
			s.Parts = append(s.Parts, exploredPart{part, state, i > 0 && before[part] != state})
			before[part] = state
		}
		c.Steps = append(c.Steps, s)
	}
	if n := len(c.Steps); n > 0 {
		c.Steps[n-1].Next = 0
	}
	return c
}

func (c *counterexample) print(out *lines) {
	out.printf("What is wrong: %s\nThe promise: %s\n", c.Rule, c.Promise)
	for _, s := range c.Steps {
		out.printf("\n%d. %s\n", s.Number, s.What)
		for _, p := range s.Parts {
			mark := " "
			if p.Changed {
				mark = "*"
			}
			out.printf(" %s %-22s %s\n", mark, p.Name, p.State)
		}
	}
	out.printf("\nThe promise is broken: %s.\n", c.Failure)
}

// servePageOf serves a page without scripts: each step is a section, and the fragment of the URL chooses it.
func servePageOf(cmd *cobra.Command, out *lines, all []counterexample, address string) error {
	var page bytes.Buffer
	if err := template.Must(template.New("page").Parse(explorePage)).Execute(&page, all); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--page: %w", err)
	}
	server, err := endpoint.NewServer("page", listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(page.Bytes()) // the client may have gone
	}))
	if err != nil {
		return err
	}
	out.printf("page of the counterexamples on http://%s/\n", listener.Addr())
	if err := out.flush(); err != nil {
		return errors.Join(err, listener.Close())
	}
	return server.Run(cmd.Context())
}
