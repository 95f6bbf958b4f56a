package warmstart

import (
	"crypto/aes"
	"crypto/cipher"
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

// seal encrypts a payload, and binds it to its link.
func (s *sealer) seal(payload []byte, l *link) []byte {
	if s == nil {
		return payload
	}
	return s.aead.Seal(nil, nil, payload, l[:])
}

// open is the reverse of seal.
func (s *sealer) open(stored []byte, l *link) ([]byte, error) {
	if s == nil {
		return stored, nil
	}
	return s.aead.Open(nil, nil, stored, l[:])
}
