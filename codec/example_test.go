package codec_test

import (
	"context"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// Machine is a projection of a Pod. It declares the fields that an agent needs; all others are skipped.
type Machine struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
}

func ExampleCodec_DecodeList() {
	answer := strings.NewReader(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"42"},"items":[
		{"metadata":{"name":"a","namespace":"shop"},"spec":{"nodeName":"n1","containers":[]}},
		{"metadata":{"name":"b","namespace":"shop"},"spec":{"nodeName":7}},
		{"metadata":{"name":"c","namespace":"shop"},"spec":{"nodeName":"n2"}}
	]}`)
	c := codec.New[*Machine](codec.Options{}) // once; use it for every answer
	o := api.Options[*Machine]{OnUndecodable: func(u *api.UndecodableError) error {
		fmt.Println("left out", u.Key)
		return nil
	}}
	meta, err := c.DecodeList(context.Background(), answer, "application/json", pods, o, func(m *Machine) error {
		fmt.Println(m.Name, "on", m.Spec.NodeName)
		return nil
	})
	fmt.Println(meta.ResourceVersion, err)
	// Output:
	// a on n1
	// left out shop/b
	// c on n2
	// 42 <nil>
}

func ExampleCodec_NewEventReader() {
	stream := strings.NewReader(`{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"1"}}}
{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5"}}}
{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410,"reason":"Expired","message":"too old"}}`)
	c := codec.New[*Machine](codec.Options{})
	events, err := c.NewEventReader(context.Background(), stream, "application/json", pods, api.Options[*Machine]{})
	for err == nil {
		var event api.Event[*Machine]
		if event, err = events.Next(); err == nil {
			fmt.Println(event.Type, event.ResourceVersion, event.Object != nil)
		}
	}
	fmt.Println(err, err == io.EOF)
	// Output:
	// ADDED 1 true
	// BOOKMARK 5 false
	// too old false
}

func ExampleMarshal() {
	b, err := codec.Marshal(&Machine{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, "application/json", pods)
	fmt.Printf("%s %v\n", b, err)
	// Output:
	// {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"nodeName":""}} <nil>
}
