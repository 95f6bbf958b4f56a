//go:build unix

package codec_test

import (
	"encoding/json"
	"reflect"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	sigsjson "sigs.k8s.io/json"

	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

// These benchmarks measure the figures of decision 0002. They report processor time, which other load on the machine
// disturbs less than elapsed time.

func benchmarkCPU(b *testing.B, size int, f func() error) {
	b.SetBytes(int64(size))
	b.ReportAllocs()
	before := processorTime(b)
	for b.Loop() {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
}

func processorTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func BenchmarkDecode(b *testing.B) {
	raw := mustJSON(newPod(1))
	for name, typ := range map[string]reflect.Type{"type=pod": reflect.TypeFor[corev1.Pod](), "type=small": reflect.TypeFor[small]()} {
		decode := codec.DecodeInto(typ)
		b.Run(name+"/how=leat", func(b *testing.B) {
			benchmarkCPU(b, len(raw), func() error { return must.Err(decode(raw)) })
		})
		b.Run(name+"/how=sigs", func(b *testing.B) {
			benchmarkCPU(b, len(raw), func() error {
				return sigsjson.UnmarshalCaseSensitivePreserveInts(raw, reflect.New(typ).Interface())
			})
		})
		b.Run(name+"/how=encoding-json", func(b *testing.B) {
			benchmarkCPU(b, len(raw), func() error { return json.Unmarshal(raw, reflect.New(typ).Interface()) })
		})
	}
}
