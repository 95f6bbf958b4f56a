package warmstart

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
)

// sealer encrypts frames. The nil sealer leaves them as they are.
type sealer struct{ aead cipher.AEAD }

func newSealer(key []byte) (*sealer, error) {
	if len(key) == 0 {
		return nil, nil
	}
	if len(key) != 32 {
		return nil, fmt.Errorf("it has %d bytes, and must have 32", len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &sealer{aead}, nil
}

// position binds a frame to its place in the file, so that frames cannot change places.
func position(at int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(at)) }

func (s *sealer) seal(payload []byte, at int64) []byte {
	if s == nil {
		return payload
	}
	return s.aead.Seal(nil, nil, payload, position(at))
}

func (s *sealer) open(stored []byte, at int64) ([]byte, error) {
	if s == nil {
		return stored, nil
	}
	return s.aead.Open(nil, nil, stored, position(at))
}
