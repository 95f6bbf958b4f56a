package load

import (
	"bytes"
	"math/bits"
)

// A mark is a place in an encoded pod whose bytes differ between replicas or versions. All values of a kind have the
// same length, so one encoding serves all of them, and the lengths of protobuf stay valid.
type mark struct {
	at   int32
	kind byte
	nth  uint16 // index among the marks of its kind, if there are several
}

// The kinds of marks. A template has '~', the letter of the kind, and more '~'.
const (
	markName      = 'n' // the end of a pod's name
	markUID       = 'u'
	markVersion   = 'v'
	markNode      = 'h' // the number of the host
	markIP        = 'i' // all but the first octet of the pod's address
	markContainer = 'c' // a container's id
	markRestarts  = 'r' // changes with each version
	markFresh     = 'f' // the end of each text of a fresh pod; changes with each version
)

// widths are the lengths of the values.
var widths = map[byte]int{
	markName: 5, markUID: 36, markVersion: 10, markNode: 4, markIP: 11, markContainer: 64, markRestarts: 9, markFresh: 6,
}

// placeholder returns the text of a mark in a template.
func placeholder(kind byte) string {
	return "~" + string(kind) + string(bytes.Repeat([]byte{'~'}, widths[kind]-2))
}

// findMarks returns the marks of a template. A '~' that begins no placeholder is a length in protobuf.
func findMarks(template []byte) []mark {
	var marks []mark
	seen := map[byte]uint16{}
	for at := 0; at < len(template); at++ {
		if template[at] != '~' || at+1 == len(template) {
			continue
		}
		kind := template[at+1]
		width, known := widths[kind]
		if !known || !bytes.HasPrefix(template[at:], []byte(placeholder(kind))) {
			continue
		}
		marks = append(marks, mark{at: int32(at), kind: kind, nth: seen[kind]})
		seen[kind]++
		at += width - 1
	}
	return marks
}

// State is the part of a pod that its changes change.
type State struct {
	Version  uint64 // at least FirstVersion
	Restarts uint32
}

// FirstVersion is the lowest resource version. All later ones have the same number of digits.
const FirstVersion = 1_000_000_000

// fill writes the value of a mark of pod i.
func (m mark) fill(dst []byte, i int, s State) {
	switch m.kind {
	case markName:
		fillName(dst[:5], i)
	case markUID:
		fillUID(dst[:36], i)
	case markVersion:
		fillDecimal(dst[:10], s.Version)
	case markNode:
		fillDecimal(dst[:4], mix(uint64(i), 1)%Nodes)
	case markIP:
		fillIP(dst[:11], i)
	case markContainer:
		for j := range 4 {
			fillHex(dst[16*j:16*j+16], mix(uint64(i), 16*uint64(m.nth)+uint64(j)+2))
		}
	case markRestarts:
		fillDecimal(dst[:9], uint64(s.Restarts))
	case markFresh:
		fillName(dst[:6], int(mix(s.Version, uint64(m.nth))>>1))
	}
}

// letters are the letters in names that Kubernetes generates.
const letters = "bcdfghjklmnpqrstvwxz2456789"

func fillName(dst []byte, i int) {
	for j := len(dst) - 1; j >= 0; j-- {
		dst[j] = letters[i%len(letters)]
		i /= len(letters)
	}
}

func fillUID(dst []byte, i int) {
	var b [32]byte
	fillHex(b[:16], mix(uint64(i), 98))
	fillHex(b[16:], mix(uint64(i), 99))
	copy(dst[0:], b[0:8])
	dst[8] = '-'
	copy(dst[9:], b[8:12])
	dst[13] = '-'
	copy(dst[14:], b[12:16])
	dst[18] = '-'
	copy(dst[19:], b[16:20])
	dst[23] = '-'
	copy(dst[24:], b[20:32])
	dst[14], dst[19] = '4', 'a' // version 4, variant 10
}

// fillIP writes three octets of three digits each. 150 values of each are enough for three million pods.
func fillIP(dst []byte, i int) {
	for j := 2; j >= 0; j-- {
		fillDecimal(dst[4*j:4*j+3], 100+uint64(i%150))
		if j > 0 {
			dst[4*j-1] = '.'
		}
		i /= 150
	}
}

func fillDecimal(dst []byte, v uint64) {
	for j := len(dst) - 1; j >= 0; j-- {
		dst[j] = byte('0' + v%10)
		v /= 10
	}
}

func fillHex(dst []byte, v uint64) {
	for j := len(dst) - 1; j >= 0; j-- {
		dst[j] = "0123456789abcdef"[v&15]
		v >>= 4
	}
}

// mix spreads (v, salt) over 64 bits. With one salt, different v have different results.
func mix(v, salt uint64) uint64 {
	v += salt * 0x9e3779b97f4a7c15
	v = (v ^ bits.RotateLeft64(v, 25) ^ bits.RotateLeft64(v, 50)) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>30) * 0x94d049bb133111eb
	return v ^ v>>31
}
