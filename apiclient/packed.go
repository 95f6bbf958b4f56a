package apiclient

import (
	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// Packed returns a client that lists and watches the same objects with the Codec that from returns, and so keeps them
// as bytes. from gets the options of the client. Package packed uses it. It is a method of a type without parameters,
// so that programs without packed objects do not link it.
func (e endpoint) Packed(from func(codec.Options) *codec.Codec[*codec.Packed]) api.ListerWatcher[*codec.Packed] {
	return &PartialClient[*codec.Packed]{endpoint: e, codec: from(e.client.codecOptions())}
}
