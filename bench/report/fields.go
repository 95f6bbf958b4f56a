package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/bench/load"
	"github.com/leatproject/leat/codec"
)

// reader is a program that reads pods.
type reader struct {
	name, note string
	// fields are the paths of its mask. Nil means that it writes or logs whole pods.
	fields []string
}

// readers are programs with the fields of examples/nodeagent and of PodFields in bench/projects/*/fields_generated.go,
// and programs that can mask no pods: docs/fields.md has the reasons.
var readers = []reader{
	{name: "CronJob operator", fields: []string{`metadata.labels["batch.bench.example/cronjob"]`}},
	{name: "Node agent", fields: []string{"metadata.labels", "spec.nodeName", "status.phase", "status.podIP"}},
	{name: "LeaderWorkerSet", fields: []string{
		`metadata.annotations["leaderworkerset.sigs.k8s.io/leader-name"]`,
		`metadata.annotations["leaderworkerset.sigs.k8s.io/leader-requests-tpus"]`,
		`metadata.annotations["leaderworkerset.sigs.k8s.io/size"]`,
		`metadata.annotations["leaderworkerset.sigs.k8s.io/subgroup-size"]`,
		`metadata.annotations["scheduling.k8s.io/group-name"]`,
		"metadata.labels", "spec.containers.env[name,value]", "spec.containers.resources[limits,requests]",
		"spec.initContainers.env[name,value]", "spec.initContainers.resources[limits,requests]", "spec.nodeName",
		"spec.subdomain", "status.conditions[status,type]", "status.containerStatuses.restartCount",
		"status.initContainerStatuses.restartCount", "status.phase",
	}},
	{name: "JobSet", note: "writes whole pods"},
	{name: "Training Operator", note: "logs whole pods"},
}

// parts are the fields of a Pod that the picture shows, in its order. Other fields belong to the last part of their
// first field.
var parts = []string{
	"metadata.managedFields", "metadata.labels", "metadata", "spec.containers", "spec.volumes", "spec",
	"status.containerStatuses", "status.conditions", "status",
}

// Fields returns a picture of the bytes of a pod of the bench in JSON, and of those that programs read.
func Fields() (string, error) {
	pod := load.NewSet(load.Seed, 1).Append(nil, load.JSON, 0, load.State{Version: load.FirstVersion})
	whole, err := sizes(pod)
	if err != nil {
		return "", err
	}
	const left, width, step = 160, 420, 34
	total := 0
	for _, n := range whole {
		total += n
	}
	height := 64 + step*len(readers) + 56
	var s strings.Builder
	title := fmt.Sprintf("A pod of %s bytes in JSON, and what programs read of it", number(float64(total)))
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n%s\n", chartWidth, height, escape(title), style)
	fmt.Fprintf(&s, `<text class="title" x="0" y="22">%s</text>`+"\n", escape(title))
	for row, r := range readers {
		kept, y := whole, 44+row*step
		if r.fields != nil {
			if kept, err = masked(pod, r.fields); err != nil {
				return "", err
			}
		}
		fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="end">%s</text>`, left-10, y+16, escape(r.name))
		x, sum := float64(left), 0
		for i := range parts {
			room := float64(whole[i]) / float64(total) * width
			fmt.Fprintf(&s, `<rect class="peer" opacity="0.35" x="%.1f" y="%d" width="%.1f" height="%d"/>`, x, y, max(0, room-2), barHeight)
			fmt.Fprintf(&s, `<rect class="own" x="%.1f" y="%d" width="%.1f" height="%d"/>`, x, y, max(0, room-2)*min(1, float64(kept[i])/float64(max(1, whole[i]))), barHeight)
			x, sum = x+room, sum+kept[i]
		}
		note := r.note
		if note == "" {
			note = fmt.Sprintf("%s B", number(float64(sum)))
		}
		fmt.Fprintf(&s, `<text x="%d" y="%d">%s</text>`+"\n", left+width+4, y+16, escape(note))
	}
	legend(&s, whole, total, 44+step*len(readers), left, width)
	s.WriteString("</svg>\n")
	return s.String(), nil
}

// legend names the parts below their places, in three lines so that narrow ones have room.
func legend(s *strings.Builder, whole []int, total, y, left, width int) {
	x := float64(left)
	for i, name := range parts {
		room := float64(whole[i]) / float64(total) * float64(width)
		if short := name[strings.LastIndexByte(name, '.')+1:]; room > 12 {
			line := y + 14 + i%3*18
			fmt.Fprintf(s, `<rect class="peer" x="%.1f" y="%d" width="1" height="%d"/>`, x, y-6, line-y-2)
			fmt.Fprintf(s, `<text x="%.1f" y="%d" style="font-size:11px">%s</text>`+"\n", x, line+4, escape(short))
		}
		x += room
	}
}

// masked returns the bytes of each part of a pod that is read with a mask.
func masked(pod []byte, fields []string) ([]int, error) {
	mask, err := codec.NewMask[*corev1.Pod](fields...)
	if err != nil {
		return nil, err
	}
	resource := api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	read, err := codec.NewMasked[*corev1.Pod](mask, codec.Options{}).
		DecodeObject(context.Background(), bytes.NewReader(pod), "application/json", resource)
	if err != nil {
		return nil, err
	}
	read.ManagedFields = nil // the mark
	text, err := json.Marshal(read)
	if err != nil {
		return nil, err
	}
	return sizes(text)
}

// sizes returns the bytes of each part of a pod in JSON, without empty fields.
func sizes(pod []byte) ([]int, error) {
	var content map[string]json.RawMessage
	if err := json.Unmarshal(pod, &content); err != nil {
		return nil, err
	}
	out := make([]int, len(parts))
	for _, field := range []string{"metadata", "spec", "status"} {
		var below map[string]json.RawMessage
		if err := json.Unmarshal(content[field], &below); err != nil {
			return nil, err
		}
		for name, value := range below {
			at := slices.Index(parts, field+"."+name)
			if at < 0 {
				at = slices.Index(parts, field)
			}
			if string(value) != "null" && string(value) != "{}" {
				out[at] += len(name) + len(value) + len(`"":,`)
			}
		}
	}
	return out, nil
}
