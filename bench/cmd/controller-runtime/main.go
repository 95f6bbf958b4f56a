// Command controller-runtime is controller-runtime as a subject of the bench.
package main

import (
	"github.com/leatproject/leat/bench/engine/controllerruntime"
	"github.com/leatproject/leat/bench/subject"
)

func main() { subject.Main(controllerruntime.Library()) }
