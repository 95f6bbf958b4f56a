package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/leatproject/leat/bench/runner"
)

// chart is a figure with bars. Shorter is better. The defaults of each library come first, and forced settings last.
type chart struct {
	name, title, row, metric string
	entrants                 []string
	shown                    map[string]string // another text for the label of an entrant
}

var chartsOf = []chart{
	{
		name: "events", title: "Processor time for one event of a watch, µs", row: "events", metric: "cpu us/event",
		entrants: []string{"leat, corev1.Pod, protobuf", "client-go, corev1.Pod, protobuf", "leat, 8 fields, protobuf", "leat, 8 fields, JSON", "leat, corev1.Pod, JSON", "client-go, corev1.Pod, JSON"},
		shown: map[string]string{
			"leat, corev1.Pod, protobuf": "leat, corev1.Pod", "client-go, corev1.Pod, protobuf": "client-go, corev1.Pod",
			"leat, corev1.Pod, JSON": "leat, corev1.Pod, forced JSON", "client-go, corev1.Pod, JSON": "client-go, corev1.Pod, forced JSON",
		},
	},
	{
		name: "memory", title: "Memory of a cached pod, bytes", row: "cache", metric: "live B/object",
		entrants: []string{"leat, corev1.Pod", "client-go, corev1.Pod", "client-go, corev1.Pod, stripped", "leat, metadata", "client-go, metadata", "client-go, metadata, stripped", "leat, 8 fields, JSON"},
	},
	{
		name: "peak", title: "Peak memory while a cache is filled, MB", row: "cache", metric: "peak MB",
		entrants: []string{"leat, corev1.Pod", "client-go, corev1.Pod", "client-go, corev1.Pod, stripped", "leat, 8 fields, JSON"},
	},
	{
		name: "relist", title: "A list without changes: highest heap, in live heaps", row: "relist", metric: "peak/live",
		entrants: []string{"leat, corev1.Pod", "client-go, corev1.Pod", "client-go, corev1.Pod, stripped", "leat, 8 fields, JSON"},
	},
	{
		name: "binary", title: "A program that watches pods, stripped, MB", row: "agents", metric: "binary MB",
		entrants: []string{"leat, corev1.Pod", "client-go, corev1.Pod", "controller-runtime, corev1.Pod", "leat, own struct"},
	},
	{
		name: "servers", title: "An API server for tests: 10,000 creates, processor time in s", row: "servers", metric: "10 k creates cpu s",
		entrants: []string{"leat serve", "leat-server", "etcd and kube-apiserver"},
	},
}

func chartTitle(name string) string {
	for _, c := range chartsOf {
		if c.name == name {
			return c.title
		}
	}
	return name
}

// Charts returns all charts that a run has figures for, by name.
func Charts(r *runner.Result) map[string]string {
	drawn := map[string]string{}
	for _, c := range chartsOf {
		row, ran := r.Row(c.row)
		if !ran {
			continue
		}
		var bars []bar
		for _, label := range c.entrants {
			if figure, err := figureOf(row, label, c.metric); err == nil {
				bars = append(bars, bar{label: cmp.Or(c.shown[label], label), value: figure, own: strings.HasPrefix(label, "leat")})
			}
		}
		if len(bars) > 1 {
			drawn[c.name] = draw(c.title, bars)
		}
	}
	return drawn
}

// ChartNames returns the names of the drawn charts in their order.
func ChartNames(drawn map[string]string) (names []string) {
	for _, c := range chartsOf {
		if drawn[c.name] != "" {
			names = append(names, c.name)
		}
	}
	return names
}

type bar struct {
	label string
	value float64
	own   bool
}

const (
	chartWidth  = 720
	labelWidth  = 250
	figureWidth = 80
	barHeight   = 22
	barStep     = 30
	top         = 44
)

// style works on white and on black: the text follows the reader's color scheme, and the bars are visible on both.
const style = `<style>
text { font: 14px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 15px }
.own { fill: #1a7f64 } .peer { fill: #8c959f }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .own { fill: #3fb68b } .peer { fill: #7d8590 } }
</style>`

// draw returns horizontal bars, with a label before each and its figure behind it.
func draw(title string, bars []bar) string {
	longest := 0.0
	for _, b := range bars {
		longest = max(longest, b.value)
	}
	height := top + barStep*len(bars) + 8
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n%s\n",
		chartWidth, height, escape(title), style)
	fmt.Fprintf(&s, `<text class="title" x="0" y="22">%s</text>`+"\n", escape(title))
	for i, b := range bars {
		y, class := top+i*barStep, "peer"
		if b.own {
			class = "own"
		}
		width := max(2, b.value/longest*(chartWidth-labelWidth-figureWidth))
		fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="end">%s</text>`, labelWidth-10, y+16, escape(b.label))
		fmt.Fprintf(&s, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d" rx="3"/>`, class, labelWidth, y, width, barHeight)
		fmt.Fprintf(&s, `<text x="%.1f" y="%d">%s</text>`+"\n", labelWidth+width+8, y+16, escape(number(b.value)))
	}
	s.WriteString("</svg>\n")
	return s.String()
}

func escape(text string) string {
	var s strings.Builder
	if err := xml.EscapeText(&s, []byte(text)); err != nil {
		panic("report: " + err.Error()) // a Builder does not fail
	}
	return s.String()
}
