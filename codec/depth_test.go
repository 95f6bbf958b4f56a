package codec_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// recursive nests like the schema of a CustomResourceDefinition. Its Unmarshal recurses like generated ones.
type recursive struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Items *recursive
	depth int
}

func (s *recursive) Unmarshal(b []byte) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 || typ != protowire.BytesType {
			return errors.New("bad message")
		}
		v, m := protowire.ConsumeBytes(b[n:])
		if m < 0 {
			return errors.New("bad message")
		}
		b = b[n+m:]
		switch num {
		case 1:
			if err := s.ObjectMeta.Unmarshal(v); err != nil {
				return err
			}
		case 2:
			s.Items = &recursive{depth: s.depth + 1}
			if err := s.Items.Unmarshal(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// nestedMessage builds the message from the inside out, so backwards.
func nestedMessage(depth int) []byte {
	named := mustMarshal(&metav1.ObjectMeta{Name: "a"})
	var b []byte
	for range depth {
		length := protowire.AppendVarint(nil, uint64(len(b)))
		slices.Reverse(length)
		b = append(append(b, length...), 0x12)
	}
	slices.Reverse(b)
	return append(append([]byte{0x0a, byte(len(named))}, named...), b...)
}

// A stack overflow ends the process, so no answer may cause one.
func TestNestingIsBounded(t *testing.T) {
	crds := api.Resource{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions"}
	c := codec.New[*recursive](codec.Options{})
	require.True(t, c.Protobuf())
	decode := func(depth int) (*recursive, error) {
		return c.DecodeObject(context.Background(), strings.NewReader(string(sealedBytes(crds.GroupVersion().String(), crds.Kind, nestedMessage(depth)))), asProtobuf, crds)
	}
	s, err := decode(5000)
	require.NoError(t, err)
	for range 5000 {
		s = s.Items
	}
	require.Equal(t, 5000, s.depth)
	for _, depth := range []int{10001, 50000} {
		_, err = decode(depth)
		var undecodable *api.UndecodableError
		require.ErrorAs(t, err, &undecodable)
		require.ErrorContains(t, err, "nested deeper than 10000 levels")
	}
}

func TestCodecIsSafeForConcurrentUse(t *testing.T) {
	type tolerated struct {
		metav1.ObjectMeta `json:"metadata"`

		//lint:ignore SA5008 encoding/json takes it for a name
		Dash string `json:"-,"`
	}
	c := codec.New[*tolerated](codec.Options{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				items, _, err := collect(c, `{"items":[{"metadata":{"name":"a"},"-":"b"}]}`, asJSON, pods, api.Options[*tolerated]{})
				if err != nil || items[0].Name != "a" || items[0].Dash != "b" {
					t.Error(items, err)
				}
			}
		})
	}
	wg.Wait()
}
