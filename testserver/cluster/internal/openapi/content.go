package openapi

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
)

// content is an encoded document.
type content struct {
	json     []byte
	hash     string
	protobuf func() ([]byte, error) // encodes when it is first called
}

// The encodings in protobuf.
var (
	protobufV2 = handler.ToProtoBinary
	protobufV3 = handler3.ToV3ProtoBinary
)

func newContent(document any, protobuf func(json []byte) ([]byte, error)) (*content, error) {
	data, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("testserver: encode an OpenAPI document: %w", err)
	}
	return &content{
		json: data, hash: fmt.Sprintf("%X", sha512.Sum512(data)),
		protobuf: sync.OnceValues(func() ([]byte, error) { return protobuf(data) }),
	}, nil
}
